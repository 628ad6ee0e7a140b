//! Credentials of an object store: given, or from a file that is read again, so that keys can be changed while the
//! controller runs.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use object_store::{CredentialProvider, aws::AwsCredential};
use parking_lot::Mutex;
use periapt_transport::{Readers, read_file};
use tokio::time::Instant;

use super::S3Error;

/// The time for which a file's content is used without another look.
const READ_EVERY: Duration = Duration::from_secs(10);

/// The credentials of a user of an object store. Debug output shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Credentials {
    /// The id of the access key.
    pub key_id: String,
    /// The secret access key.
    pub secret: String,
    /// The token of a session, for credentials that end.
    pub token: Option<String>,
}

/// The source of credentials.
#[derive(Debug, Clone)]
pub enum CredentialsFrom {
    /// Credentials that stay the same for as long as the controller runs.
    Given(S3Credentials),
    /// A file, which only its owner can read. A change is noticed within seconds.
    File(PathBuf),
}

impl S3Credentials {
    /// Parses the text of a file as Amazon's tools write it: `aws_access_key_id = ...` and so on, in the section
    /// `[default]` or in none.
    ///
    /// # Errors
    /// A key is missing. The error shows nothing of the text.
    pub fn parse(text: &str) -> Result<Self, S3Error> {
        let (mut id, mut secret, mut token) = (None, None, None);
        let mut is_ours = true;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                is_ours = section.trim_end_matches(']').trim() == "default";
            } else if let Some((name, value)) = line.split_once('=')
                && is_ours
            {
                let value = Some(value.trim()).filter(|value| !value.is_empty());
                match name.trim() {
                    "aws_access_key_id" => id = value,
                    "aws_secret_access_key" => secret = value,
                    "aws_session_token" => token = value,
                    _ => {}
                }
            }
        }
        let missing = |name: &str| S3Error::Credentials(format!("{name} is missing"));
        Ok(Self {
            key_id: id.ok_or_else(|| missing("aws_access_key_id"))?.to_owned(),
            secret: secret.ok_or_else(|| missing("aws_secret_access_key"))?.to_owned(),
            token: token.map(str::to_owned),
        })
    }

    /// Returns the text of a file with these credentials.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
            self.key_id, self.secret
        );
        if let Some(token) = &self.token {
            text += &format!("aws_session_token = {token}\n");
        }
        text
    }
}

impl CredentialsFrom {
    /// Reads the credentials.
    ///
    /// # Errors
    /// There is no such file, others can read it, or a key is missing.
    pub fn read(&self) -> Result<S3Credentials, S3Error> {
        match self {
            Self::Given(given) => Ok(given.clone()),
            Self::File(path) => {
                let text = read_file(path, Readers::Owner)
                    .map_err(|error| S3Error::Credentials(error.to_string()))?;
                let named = |what: &str| S3Error::Credentials(format!("{}: {what}", path.display()));
                let text = text.ok_or_else(|| named("no such file"))?;
                S3Credentials::parse(&text).map_err(|error| match error {
                    S3Error::Credentials(what) => named(&what),
                    other => other,
                })
            }
        }
    }
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Credentials").finish_non_exhaustive()
    }
}

/// The source of credentials for each request.
#[derive(Debug)]
pub(super) struct Provider {
    from: CredentialsFrom,
    last: Mutex<(Instant, Arc<AwsCredential>)>,
}

impl Provider {
    /// Reads the credentials for the first time.
    pub(super) fn new(from: CredentialsFrom) -> Result<Self, S3Error> {
        let first = credential(from.read()?);
        Ok(Self { from, last: Mutex::new((Instant::now(), first)) })
    }

    fn current(&self) -> Arc<AwsCredential> {
        let mut last = self.last.lock();
        if let CredentialsFrom::File(path) = &self.from
            && last.0.elapsed() >= READ_EVERY
        {
            last.0 = Instant::now();
            match self.from.read() {
                Ok(read) => last.1 = credential(read),
                // It may be written at this moment.
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "the last credentials stay in use")
                }
            }
        }
        Arc::clone(&last.1)
    }
}

impl CredentialProvider for Provider {
    type Credential = AwsCredential;

    fn get_credential<'life, 'made>(
        &'life self,
    ) -> futures_util::future::BoxFuture<'made, object_store::Result<Arc<AwsCredential>>>
    where
        'life: 'made,
        Self: 'made,
    {
        Box::pin(async move { Ok(self.current()) })
    }
}

fn credential(S3Credentials { key_id, secret, token }: S3Credentials) -> Arc<AwsCredential> {
    Arc::new(AwsCredential { key_id, secret_key: secret, token })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_is_read_back_and_one_that_lacks_a_key_or_is_open_to_others_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let from = CredentialsFrom::File(path.clone());
        assert!(from.read().unwrap_err().to_string().ends_with("credentials: no such file"));
        for token in [None, Some("token".to_owned())] {
            let given = S3Credentials { key_id: "id".into(), secret: "se=cret".into(), token };
            write(&given.to_text(), 0o600);
            assert_eq!(from.read().unwrap(), given);
            assert!(!format!("{given:?} {from:?}").contains("cret\""));
        }
        write("[other]\naws_access_key_id = id\n[default]\naws_secret_access_key = hidden\n", 0o600);
        let error = from.read().unwrap_err().to_string();
        assert!(error.ends_with("aws_access_key_id is missing") && !error.contains("hidden"), "{error}");
        write("aws_access_key_id = id\naws_secret_access_key = s\n", 0o644);
        assert!(from.read().unwrap_err().to_string().contains("chmod 600"));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_are_changed_in_the_file_are_used_soon() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials");
        let write = |id: &str| {
            let given = S3Credentials { key_id: id.into(), secret: "s".into(), token: None };
            fs::write(&path, given.to_text()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("one");
        let provider = Provider::new(CredentialsFrom::File(path.clone())).unwrap();
        write("two");
        assert_eq!(provider.current().key_id, "one");
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(provider.current().key_id, "two");
        fs::remove_file(&path).unwrap();
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(provider.current().key_id, "two", "the last ones stay");
    }
}
