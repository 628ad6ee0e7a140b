//! The server: the gateway of JuiceFS, over a directory. It ends with the value.

use std::{
    fs::File,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use object_store::aws::AmazonS3Builder;
use periapt_transport::testing::free_ports;
use tempfile::TempDir;

use crate::{CredentialsFrom, S3Credentials, S3Options, S3Timeouts, s3::Connector};

/// The timeout of the start. No start takes this long, even on a slow machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

const USER: &str = "periapt-tests";
const SECRET: &str = "not-a-secret-at-all";

/// The bucket that there is.
const BUCKET: &str = "blobs";

/// A server that speaks S3, with one bucket.
#[derive(Debug)]
pub struct TestS3 {
    process: Child,
    endpoint: String,
    directory: TempDir,
}

impl TestS3 {
    /// Starts a server, and waits until it answers.
    ///
    /// # Panics
    /// Panics if there is none, or it does not start: this is for tests.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn start() -> Self {
        Self::started().expect("a server that speaks S3 can be started")
    }

    fn started() -> anyhow::Result<Self> {
        let (program, directory) = (program()?, TempDir::new()?);
        let data = directory.path().join("data");
        std::fs::create_dir(&data)?;
        // The bucket is a directory of the file system that the gateway shows.
        let (meta, bucket) = (
            format!("sqlite3://{}", directory.path().join("meta.db").display()),
            format!("{}/", data.display()),
        );
        let log = || File::options().append(true).create(true).open(directory.path().join("log"));
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command.args(arguments).stdin(Stdio::null()).stdout(log()?).stderr(log()?);
            command.env("MINIO_ROOT_USER", USER).env("MINIO_ROOT_PASSWORD", SECRET);
            Ok::<_, std::io::Error>(command)
        };
        let formatted =
            run(&["format", "--storage=file", "--bucket", &bucket, "--trash-days=0", &meta, BUCKET])?
                .status()?;
        ensure!(formatted.success(), "{}", std::fs::read_to_string(directory.path().join("log"))?);
        let [port, metrics] = free_ports(2)?[..] else { bail!("there are no two ports") };
        let (address, metrics) = (format!("127.0.0.1:{port}"), format!("127.0.0.1:{metrics}"));
        let own = |name: &str| directory.path().join(name).display().to_string();
        let process = run(&[
            "gateway",
            "--no-usage-report",
            "--no-banner",
            "--no-bgjob",
            "--backup-meta=0",
            "--metrics",
            &metrics,
            "--cache-dir",
            &own("cache"),
            "--log",
            &own("gateway.log"),
            &meta,
            &address,
        ])?
        .spawn()?;
        let mut server = Self { process, endpoint: format!("http://{address}"), directory };
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if server.process.try_wait()?.is_some() || begun.elapsed() > READY_WITHIN {
                bail!("{}", std::fs::read_to_string(server.directory.path().join("log"))?);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Returns the options for blobs under a prefix.
    ///
    /// # Panics
    /// Panics if the prefix is none.
    pub fn options(&self, prefix: &str) -> S3Options {
        self.options_at(&self.endpoint, prefix)
    }

    /// Returns the options for blobs under a prefix, through a proxy.
    ///
    /// # Panics
    /// Panics if the prefix or the endpoint is none.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn options_at(&self, endpoint: &str, prefix: &str) -> S3Options {
        let given = S3Credentials { key_id: USER.into(), secret: SECRET.into(), token: None };
        S3Options {
            url: format!("s3://{BUCKET}/{prefix}").parse().expect("a prefix"),
            endpoint: Some(endpoint.parse().expect("an endpoint")),
            region: None,
            authority: None,
            credentials: CredentialsFrom::Given(given),
            timeouts: S3Timeouts::default(),
        }
    }

    /// Returns the server's URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the id and the secret of its user.
    pub fn user(&self) -> (&'static str, &'static str) {
        (USER, SECRET)
    }

    /// Returns a client of the bucket, which knows nothing of blobs.
    ///
    /// # Panics
    /// Panics if it cannot be made.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn bucket(&self) -> impl object_store::ObjectStore {
        let connector =
            Connector::new(None, S3Timeouts::default()).expect("this host trusts some authorities");
        AmazonS3Builder::new()
            .with_bucket_name(BUCKET)
            .with_endpoint(&self.endpoint)
            .with_allow_http(true)
            .with_access_key_id(USER)
            .with_secret_access_key(SECRET)
            .with_disable_bulk_delete(true)
            .with_http_connector(connector)
            .build()
            .expect("a client can be made")
    }
}

impl Drop for TestS3 {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the path of the program, which `tools/s3-server` finds or fetches.
fn program() -> anyhow::Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/s3-server");
    let found = Command::new(tool).stdin(Stdio::null()).output().context("tools/s3-server cannot be run")?;
    let path = String::from_utf8(found.stdout)?.trim().to_owned();
    if !found.status.success() || path.is_empty() {
        bail!("{}", String::from_utf8_lossy(&found.stderr));
    }
    Ok(FOUND.get_or_init(|| path.into()).clone())
}
