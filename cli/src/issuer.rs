//! The options of a controller about the issuer of identities at which external users log in.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use periapt_controller::{ClientSecret, IssuerUrl, IssuerUrlError, OidcOptions};
use periapt_transport::{Readers, read_file};
use serde::{Deserialize, Serialize};

use crate::error::{Explain as _, Failure, Result, with_source};

/// The options. The client's file keeps them, so that the controller is started again with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct IssuerArgs {
    /// The URL of an OpenID Connect issuer, at which users log in who were granted access as NAME@DOMAIN
    #[arg(long, value_name = "URL", value_parser = issuer, requires = "oidc_client_id")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oidc_issuer: Option<String>,
    /// The name by which the issuer knows the controller as its client
    #[arg(long, value_name = "ID", requires = "oidc_issuer")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oidc_client_id: Option<String>,
    /// The file with the client's secret, which only its owner may read; without one the client is public
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oidc_client_secret_file: Option<PathBuf>,
    /// A scope to ask the issuer for, by default openid, email and profile; may be repeated
    #[arg(long = "oidc-scope", value_name = "SCOPE", requires = "oidc_issuer")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    oidc_scopes: Vec<String>,
    /// The claim that names the user, by default email; a name without a domain gets the issuer's host as its domain
    #[arg(long, value_name = "CLAIM", requires = "oidc_issuer")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oidc_user_claim: Option<String>,
    /// The file with the certificates of the authorities to check the issuer's certificate by, if not this machine's
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oidc_ca_cert: Option<PathBuf>,
}

fn issuer(text: &str) -> Result<String, IssuerUrlError> {
    text.parse::<IssuerUrl>().map(|url| url.to_string())
}

impl IssuerArgs {
    /// Returns true if an issuer is named.
    pub(crate) fn is_given(&self) -> bool {
        self.oidc_issuer.is_some()
    }

    /// Returns the options with absolute paths, for a process that runs elsewhere; none if no issuer is named.
    pub(crate) fn absolute(&self) -> Result<Option<Self>> {
        if !self.is_given() {
            return Ok(None);
        }
        let absolute = |path: &Option<PathBuf>| {
            let made = |path: &PathBuf| std::path::absolute(path).explain(|| path.display().to_string());
            path.as_ref().map(made).transpose()
        };
        Ok(Some(Self {
            oidc_client_secret_file: absolute(&self.oidc_client_secret_file)?,
            oidc_ca_cert: absolute(&self.oidc_ca_cert)?,
            ..self.clone()
        }))
    }

    /// Returns the options as the words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let text = |text: &Option<String>| text.iter().map(OsString::from).collect::<Vec<_>>();
        let path = |path: &Option<PathBuf>| path.iter().map(OsString::from).collect::<Vec<_>>();
        let all = [
            ("--oidc-issuer", text(&self.oidc_issuer)),
            ("--oidc-client-id", text(&self.oidc_client_id)),
            ("--oidc-client-secret-file", path(&self.oidc_client_secret_file)),
            ("--oidc-scope", self.oidc_scopes.iter().map(OsString::from).collect()),
            ("--oidc-user-claim", text(&self.oidc_user_claim)),
            ("--oidc-ca-cert", path(&self.oidc_ca_cert)),
        ];
        let words = |(name, values): (&'static str, Vec<OsString>)| {
            values.into_iter().flat_map(move |value| [OsString::from(name), value])
        };
        all.into_iter().flat_map(words).collect()
    }

    /// Reads the named files, and returns the controller's options; none if no issuer is named.
    pub(crate) fn options(&self) -> Result<Option<OidcOptions>> {
        let (Some(issuer), Some(client_id)) = (&self.oidc_issuer, &self.oidc_client_id) else {
            return Ok(None);
        };
        let read = |path: &PathBuf, readers: Readers| {
            let text = read_file(path, readers).map_err(with_source)?;
            text.ok_or_else(|| Failure::new(format!("{}: no such file", path.display())))
        };
        let secret = |path: &PathBuf| {
            let secret = ClientSecret::new(&read(path, Readers::Owner)?);
            secret.ok_or_else(|| Failure::new(format!("{} has no secret", path.display())))
        };
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Ok(Some(OidcOptions {
            issuer: issuer.parse().map_err(with_source)?,
            client_id: client_id.clone(),
            client_secret: self.oidc_client_secret_file.as_ref().map(secret).transpose()?,
            scopes: match self.oidc_scopes.as_slice() {
                [] => own(OidcOptions::SCOPES),
                scopes => scopes.to_vec(),
            },
            user_claim: self.oidc_user_claim.clone().unwrap_or_else(|| OidcOptions::USER_CLAIM.to_owned()),
            authorities: self.oidc_ca_cert.as_ref().map(|path| read(path, Readers::All)).transpose()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        issuer: IssuerArgs,
    }

    fn read(words: &[&str]) -> Result<IssuerArgs, clap::Error> {
        Line::try_parse_from([&["periapt"], words].concat()).map(|line| line.issuer)
    }

    #[test]
    fn options_are_read_back_from_their_words_and_kept() {
        let words = [
            "--oidc-issuer",
            "https://id.example",
            "--oidc-client-id",
            "periapt",
            "--oidc-client-secret-file",
            "/secret",
            "--oidc-scope",
            "openid",
            "--oidc-scope",
            "groups",
            "--oidc-user-claim",
            "preferred_username",
            "--oidc-ca-cert",
            "/ca.pem",
        ];
        let given = read(&words).unwrap();
        assert_eq!(given.words(), words);
        let kept: IssuerArgs = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
        assert_eq!(kept, given);
        assert_eq!(read(&[]).unwrap().absolute().unwrap(), None);
    }

    #[test]
    fn an_issuer_and_its_client_are_named_together() {
        for bad in [
            &["--oidc-issuer", "https://id.example"][..],
            &["--oidc-client-id", "periapt"],
            &["--oidc-issuer", "http://id.example", "--oidc-client-id", "periapt"],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secret");
        let path = file.to_str().unwrap();
        let words = [
            "--oidc-issuer",
            "https://id.example",
            "--oidc-client-id",
            "periapt",
            "--oidc-client-secret-file",
            path,
        ];
        let given = read(&words).unwrap();
        assert!(given.options().unwrap_err().to_string().contains("no such file"));
        std::fs::write(&file, "hush").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(given.options().unwrap_err().to_string().contains("has mode 644"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let options = given.options().unwrap().unwrap();
        assert!(options.client_secret.is_some());
        assert_eq!(options.scopes, OidcOptions::SCOPES);
    }
}
