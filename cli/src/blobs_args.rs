//! The options of a controller about the object store that has its blobs.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Args;
use periapt_blobs::{
    CredentialsFrom, S3Credentials, S3Endpoint, S3Error, S3Options, S3Timeouts, S3Url, SharedStore,
};
use periapt_host_api::member::BlobsPlace;
use periapt_transport::{Readers, read_file, write_file};
use serde::{Deserialize, Serialize};

use crate::error::{Explain as _, Failure, Result, with_source};

/// The variables with credentials, as Amazon's tools name them.
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

/// The options. The client's file keeps them, so that the controller is started again with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BlobsArgs {
    /// The object store for charms and resources, which all controllers reach: s3://BUCKET/PREFIX; without one they are
    /// on the controllers' disks
    #[arg(long, value_name = "URL", value_parser = url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs: Option<String>,
    /// The URL of the object store's server, if it is not Amazon's: https://HOST:PORT
    #[arg(long, value_name = "URL", value_parser = endpoint, requires = "blobs")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs_endpoint: Option<String>,
    /// The region of the bucket, by default us-east-1
    #[arg(long, value_name = "REGION", requires = "blobs")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs_region: Option<String>,
    /// The file with the certificates of the authorities to check the object store's certificate by, if not this
    /// machine's
    #[arg(long, value_name = "FILE", requires = "blobs")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs_ca: Option<PathBuf>,
    /// The file with the credentials, as Amazon's tools write it, which only its owner may read; without one they are
    /// $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY and $AWS_SESSION_TOKEN
    #[arg(long, value_name = "FILE", requires = "blobs")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs_credentials: Option<PathBuf>,
}

fn url(text: &str) -> Result<String, S3Error> {
    text.parse::<S3Url>().map(|url| url.to_string())
}

fn endpoint(text: &str) -> Result<String, S3Error> {
    text.parse::<S3Endpoint>().map(|endpoint| endpoint.to_string())
}

impl BlobsArgs {
    /// Returns true if an object store is named.
    pub(crate) fn is_given(&self) -> bool {
        self.blobs.is_some()
    }

    /// Writes what a joining controller is told into its directory, and returns its options.
    pub(crate) fn of(place: &BlobsPlace, directory: &Path) -> Result<Self> {
        let ca = place.authority.as_ref().map(|text| {
            let path = directory.join("blobs-ca.pem");
            write_file(&path, text, Readers::All).map_err(with_source)?;
            Ok::<_, Failure>(path)
        });
        let credentials = directory.join("blobs-credentials");
        write_file(&credentials, &place.credentials, Readers::Owner).map_err(with_source)?;
        Ok(Self {
            blobs: Some(place.url.clone()),
            blobs_endpoint: place.endpoint.clone(),
            blobs_region: place.region.clone(),
            blobs_ca: ca.transpose()?,
            blobs_credentials: Some(credentials),
        })
    }

    /// Returns the options with absolute paths, for a process that runs elsewhere and is started again later; none if no
    /// object store is named. Credentials of the environment are written into a file in the controller's directory.
    pub(crate) fn kept_in(&self, directory: &Path) -> Result<Option<Self>> {
        if !self.is_given() {
            return Ok(None);
        }
        let absolute = |path: &PathBuf| std::path::absolute(path).explain(|| path.display().to_string());
        let credentials = match &self.blobs_credentials {
            Some(path) => absolute(path)?,
            None => {
                let path = directory.join("blobs-credentials");
                write_file(&path, of_environment()?.to_text(), Readers::Owner).map_err(with_source)?;
                path
            }
        };
        Ok(Some(Self {
            blobs_ca: self.blobs_ca.as_ref().map(absolute).transpose()?,
            blobs_credentials: Some(credentials),
            ..self.clone()
        }))
    }

    /// Returns the options as the words of a command line, which has no secrets.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let text = |text: &Option<String>| text.as_ref().map(OsString::from);
        let path = |path: &Option<PathBuf>| path.as_ref().map(OsString::from);
        let all = [
            ("--blobs", text(&self.blobs)),
            ("--blobs-endpoint", text(&self.blobs_endpoint)),
            ("--blobs-region", text(&self.blobs_region)),
            ("--blobs-ca", path(&self.blobs_ca)),
            ("--blobs-credentials", path(&self.blobs_credentials)),
        ];
        let words = all.into_iter().filter_map(|(name, value)| Some([OsString::from(name), value?]));
        words.flatten().collect()
    }

    /// Returns the way to the object store, after a check that it can be written and read; none if none is named.
    pub(crate) async fn open(&self) -> Result<Option<(S3Options, SharedStore)>> {
        let Some(options) = self.options()? else { return Ok(None) };
        let store = SharedStore::of(&options).map_err(with_source)?;
        store.check().await.map_err(with_source)?;
        Ok(Some((options, store)))
    }

    fn options(&self) -> Result<Option<S3Options>> {
        let Some(url) = &self.blobs else { return Ok(None) };
        let authority = self.blobs_ca.as_ref().map(|path| {
            let text = read_file(path, Readers::All).map_err(with_source)?;
            text.ok_or_else(|| Failure::new(format!("{}: no such file", path.display())))
        });
        let credentials = match &self.blobs_credentials {
            Some(path) => CredentialsFrom::File(path.clone()),
            None => CredentialsFrom::Given(of_environment()?),
        };
        let endpoint = self.blobs_endpoint.as_ref().map(|endpoint| endpoint.parse::<S3Endpoint>());
        Ok(Some(S3Options {
            url: url.parse().map_err(with_source)?,
            endpoint: endpoint.transpose().map_err(with_source)?,
            region: self.blobs_region.clone(),
            authority: authority.transpose()?,
            credentials,
            timeouts: S3Timeouts::default(),
        }))
    }
}

/// Returns the credentials of the environment.
fn of_environment() -> Result<S3Credentials> {
    let read = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let needed = |name: &str| {
        read(name).ok_or_else(|| {
            Failure::new(format!("no credentials of the object store: {name} is not set"))
                .with_hint("--blobs-credentials FILE names a file with them")
        })
    };
    Ok(S3Credentials { key_id: needed(KEY_ID)?, secret: needed(SECRET)?, token: read(TOKEN) })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        blobs: BlobsArgs,
    }

    fn read(words: &[&str]) -> Result<BlobsArgs, clap::Error> {
        Line::try_parse_from([&["periapt"], words].concat()).map(|line| line.blobs)
    }

    #[test]
    fn options_are_read_back_from_their_words_and_kept() {
        let words = [
            "--blobs",
            "s3://charms/prod",
            "--blobs-endpoint",
            "https://s3.example:9000",
            "--blobs-region",
            "here",
            "--blobs-ca",
            "/ca.pem",
            "--blobs-credentials",
            "/credentials",
        ];
        let given = read(&words).unwrap();
        assert_eq!(given.words(), words);
        let kept: BlobsArgs = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
        assert_eq!(kept, given);
        assert_eq!(read(&[]).unwrap().kept_in(Path::new("/nowhere")).unwrap(), None);
    }

    #[test]
    fn options_without_an_object_store_and_places_that_are_none_are_refused() {
        for bad in [
            &["--blobs-endpoint", "https://s3.example"][..],
            &["--blobs-credentials", "/credentials"],
            &["--blobs", "charms"],
            &["--blobs", "s3://charms", "--blobs-endpoint", "s3.example"],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
