//! The options of a controller about the log that it shares with others.

use std::{
    ffi::OsString,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use periapt_blobs::S3Options;
use periapt_controller::{LogBounds, ReplicationOptions};
use periapt_host_api::{Digest, LEVEL, Revision, StoreId, member::LogPlace};
use periapt_log_etcd::{
    BegunLog, EtcdLog, EtcdOptions, EtcdTls, EtcdUrl, EtcdUrlError, OpenError, RemoveError,
};
use periapt_transport::{Readers, read_file};
use serde::{Deserialize, Serialize};

use crate::error::{Explain as _, Failure, Result, with_source};

/// The MiB to which an operator may bound the log. More than half of it stays free of the entries that are always kept.
pub(crate) const BOUND: RangeInclusive<i64> = 256..=1_048_576;

/// Returns the identity of a new store and its log.
pub(crate) fn new_identity() -> Result<StoreId> {
    let mut seed = [0; 16];
    getrandom::fill(&mut seed).map_err(|error| Failure::new(format!("no randomness: {error}")))?;
    Ok(StoreId(uuid::Builder::from_random_bytes(seed).into_uuid()))
}

/// The options. The client's file keeps them, so that the controller is started again with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LogArgs {
    /// The log that several controllers share, in etcd: etcd://HOST:2379,HOST:2379,HOST:2379
    #[arg(long, value_name = "URL", value_parser = url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// The file with the certificate of the authority that issued etcd's, in PEM form; without one the connection to
    /// etcd is not encrypted
    #[arg(long, value_name = "FILE", requires = "log")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_ca: Option<PathBuf>,
    /// The file with this controller's certificate for etcd, in PEM form
    #[arg(long, value_name = "FILE", requires = "log_ca", requires = "log_key")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_cert: Option<PathBuf>,
    /// The file with the key of --log-cert, in PEM form, which only its owner may read
    #[arg(long, value_name = "FILE", requires = "log_cert")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_key: Option<PathBuf>,
    /// The name of this controller among those of the log, by default the machine's own
    #[arg(long, value_name = "NAME", value_parser = member, requires = "log")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<String>,
    /// The most MiB of entries that the log has, by default 512: older ones are trimmed even if a controller that is away
    /// still needs them, and it takes the state of the one that leads
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(BOUND), requires = "log")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_bound: Option<u32>,
}

/// The content of a controller's data directory, as far as its log depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptData {
    /// No keys: the controller begins a set of controllers, and no log of others is its own.
    Nothing,
    /// Keys and no store: the controller joins others, or a first start was interrupted.
    Keys,
    /// A store: the controller has a log, if it is one of several.
    Store,
}

impl KeptData {
    /// Returns the content of a directory, which need not exist.
    pub(crate) fn of(directory: &Path) -> Self {
        match (directory.join("store").exists(), directory.join("ca-key.pem").exists()) {
            (true, _) => Self::Store,
            (false, true) => Self::Keys,
            (false, false) => Self::Nothing,
        }
    }
}

fn url(text: &str) -> Result<String, EtcdUrlError> {
    text.parse::<EtcdUrl>().map(|url| url.to_string())
}

/// Reads the name of a controller: it stands in its certificate.
fn member(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has up to 64 letters, digits and the characters - _ .".to_owned()),
    }
}

impl LogArgs {
    /// Returns the options of a controller that joined.
    pub(crate) fn of(
        log: &str,
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        (member, log_bound): (&str, Option<u32>),
    ) -> Self {
        Self {
            log: Some(log.to_owned()),
            log_ca: ca,
            log_cert: cert,
            log_key: key,
            member: Some(member.to_owned()),
            log_bound,
        }
    }

    /// Returns true if a log is named.
    pub(crate) fn is_given(&self) -> bool {
        self.log.is_some()
    }

    /// Returns the options with absolute paths, for a process that runs elsewhere; none if no log is named.
    pub(crate) fn absolute(&self) -> Result<Option<Self>> {
        if !self.is_given() {
            return Ok(None);
        }
        let absolute = |path: &Option<PathBuf>| {
            let made = |path: &PathBuf| std::path::absolute(path).explain(|| path.display().to_string());
            path.as_ref().map(made).transpose()
        };
        Ok(Some(Self {
            log_ca: absolute(&self.log_ca)?,
            log_cert: absolute(&self.log_cert)?,
            log_key: absolute(&self.log_key)?,
            ..self.clone()
        }))
    }

    /// Returns the options as the words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let text = |text: &Option<String>| text.as_ref().map(OsString::from);
        let path = |path: &Option<PathBuf>| path.as_ref().map(OsString::from);
        let all = [
            ("--log", text(&self.log)),
            ("--log-ca", path(&self.log_ca)),
            ("--log-cert", path(&self.log_cert)),
            ("--log-key", path(&self.log_key)),
            ("--member", text(&self.member)),
            ("--log-bound", self.log_bound.map(|bound| bound.to_string().into())),
        ];
        let words = all.into_iter().filter_map(|(name, value)| Some([OsString::from(name), value?]));
        words.flatten().collect()
    }

    /// Opens the log; none if no log is named. A controller that has a store has a log as well; for another one it is made,
    /// unless it is there. `fresh` is the identity of a new one, and `blobs` the object store that further controllers are
    /// told.
    pub(crate) async fn open(
        &self,
        fresh: StoreId,
        kept: KeptData,
        blobs: Option<S3Options>,
    ) -> Result<Option<ReplicationOptions>> {
        let Some(options) = self.options(fresh)? else { return Ok(None) };
        let name = self.name()?;
        let log = match kept {
            KeptData::Store => EtcdLog::open_present(&options).await,
            KeptData::Keys | KeptData::Nothing => EtcdLog::open(&options).await,
        };
        let log = log.map_err(unusable)?;
        let (authority, identity) = match options.tls {
            Some(EtcdTls { authority, identity }) => (Some(authority), identity),
            None => (None, None),
        };
        let place = LogPlace { url: options.url.to_string(), authority, identity };
        let log = Arc::new(log);
        let usual = LogBounds::default();
        let most = self.log_bound.map_or(usual.most, |mebibytes| u64::from(mebibytes) << 20);
        let bounds = LogBounds { most, ..usual };
        let level = LEVEL;
        Ok(Some(ReplicationOptions { log, member: name, place, blobs, bounds, level, observer: None }))
    }

    /// Returns true if the log can be read, or none is named.
    pub(crate) async fn answers(&self) -> bool {
        match self.options(StoreId(uuid::Uuid::nil())) {
            Ok(None) => true,
            Ok(Some(options)) => matches!(EtcdLog::is_free(&options).await, Err(OpenError::Present(_))),
            Err(_) => false,
        }
    }

    /// Refuses a place at which controllers have a log. Does nothing if no log is named.
    pub(crate) async fn is_free(&self) -> Result<()> {
        match self.options(StoreId(uuid::Uuid::nil()))? {
            Some(options) => EtcdLog::is_free(&options).await.map_err(unusable),
            None => Ok(()),
        }
    }

    /// Makes the log of a new set of controllers, which begins after a position. Does nothing if no log is named.
    pub(crate) async fn begin(&self, store: StoreId, after: Revision) -> Result<()> {
        let Some(options) = self.options(store)? else { return Ok(()) };
        self.name()?;
        EtcdLog::begin(&options, after).await.map_err(unusable)
    }

    /// Removes a log that was begun, if the controller of this name with these keys alone has written into it. It has ended.
    /// The failure says what is left.
    pub(crate) async fn remove(&self, store: StoreId, after: Revision, keys: Option<Digest>) -> Result<()> {
        let Some(options) = self.options(store)? else { return Ok(()) };
        // With a name that is none, it was never begun.
        let Ok(member) = self.name() else { return Ok(()) };
        let begun = BegunLog { after, member, keys };
        let prefix = format!("{}/", options.url.prefix);
        let left = |error| match error {
            RemoveError::Shared(reason) => {
                Failure::new(format!("the log below {prefix:?} stays in etcd: {reason}"))
            }
            RemoveError::Open(error) => Failure::new(format!(
                "its log may be left in etcd: {error}; unless other controllers use it by then, 'etcdctl del {prefix}id' \
                 and 'etcdctl del --prefix {prefix}00/' delete it",
            )),
        };
        EtcdLog::remove(&options, &begun).await.map_err(left)
    }

    /// Returns the name of the controller among those of the log.
    fn name(&self) -> Result<String> {
        let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = self.member.clone().unwrap_or_else(own);
        member(&name).map_err(|reason| {
            Failure::new(format!("controller name {name:?}: {reason}"))
                .with_hint("--member gives it another name")
        })
    }

    /// Reads the certificates; none if no log is named.
    fn options(&self, fresh_id: StoreId) -> Result<Option<EtcdOptions>> {
        let Some(url) = &self.log else { return Ok(None) };
        let read = |path: &PathBuf, readers: Readers| {
            let text = read_file(path, readers).map_err(with_source)?;
            text.ok_or_else(|| Failure::new(format!("{}: no such file", path.display())))
        };
        let identity = match (&self.log_cert, &self.log_key) {
            (Some(certificate), Some(key)) => {
                Some((read(certificate, Readers::All)?, read(key, Readers::Owner)?))
            }
            _ => None,
        };
        let authority = self.log_ca.as_ref().map(|path| read(path, Readers::All)).transpose()?;
        let tls = authority.map(|authority| EtcdTls { authority, identity });
        Ok(Some(EtcdOptions { url: url.parse().map_err(with_source)?, tls, fresh_id }))
    }
}

/// Creates the failure of a log that cannot be used, with what would be right.
fn unusable(error: OpenError) -> Failure {
    let hint = match &error {
        OpenError::Tls(_) | OpenError::Handshake(_) => Some(
            "--log-ca names the certificate of the authority that issued etcd's, --log-cert and --log-key a certificate \
             of an authority that etcd trusts",
        ),
        OpenError::Present(_) => Some(
            "a further controller of that set begins with `periapt controller join`, and a token of `periapt \
             controller-token`; a bootstrap that was killed leaves its log in etcd, which you delete before you repeat it",
        ),
        OpenError::Absent(_) => Some(
            "--log must name the log that the store of this controller was fed from; if that log is lost, or there was \
             none, `periapt bootstrap --restore` begins one with the directory of a controller",
        ),
        _ => None,
    };
    let failure = with_source(error);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        log: LogArgs,
    }

    fn read(words: &[&str]) -> Result<LogArgs, clap::Error> {
        Line::try_parse_from([&["periapt"], words].concat()).map(|line| line.log)
    }

    #[test]
    fn options_are_read_back_from_their_words_and_kept() {
        let words = [
            "--log",
            "etcd://a:2379,b:2379/prod",
            "--log-ca",
            "/ca.pem",
            "--log-cert",
            "/cert.pem",
            "--log-key",
            "/key.pem",
            "--member",
            "one",
            "--log-bound",
            "1024",
        ];
        let given = read(&words).unwrap();
        assert_eq!(given.words(), words);
        let kept: LogArgs = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
        assert_eq!(kept, given);
        assert_eq!(read(&[]).unwrap().absolute().unwrap(), None);
    }

    #[tokio::test]
    async fn a_log_that_does_not_answer_is_told_from_none() {
        assert!(read(&[]).unwrap().answers().await);
        assert!(!read(&["--log", "etcd://127.0.0.1:1"]).unwrap().answers().await);
    }

    #[test]
    fn a_directory_tells_if_its_controller_begins_joins_or_has_a_log() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        assert_eq!(KeptData::of(&data), KeptData::Nothing);
        std::fs::create_dir(&data).unwrap();
        assert_eq!(KeptData::of(&data), KeptData::Nothing);
        std::fs::write(data.join("ca-key.pem"), "").unwrap();
        assert_eq!(KeptData::of(&data), KeptData::Keys);
        std::fs::create_dir(data.join("store")).unwrap();
        assert_eq!(KeptData::of(&data), KeptData::Store);
    }

    #[test]
    fn options_without_a_log_and_logs_that_are_none_are_refused() {
        for bad in [
            &["--member", "one"][..],
            &["--log-ca", "/ca.pem"],
            &["--log", "etcd://a:1", "--log-cert", "/cert.pem"],
            &["--log", "etcd://a:1", "--member", "two words"],
            &["--log-bound", "512"],
            &["--log", "etcd://a:1", "--log-bound", "128"],
            &["--log", "etcd://a:1", "--log-bound", "2097152"],
            &["--log", "redis://a:1"],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
