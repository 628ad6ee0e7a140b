//! A pod in a process of its own: this test's program, started again.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use periapt_pod::{DriverKind, PodError, PodOptions, run};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::client::Client;

/// The variable with the socket of a pod that this process is to be.
const SOCKET: &str = "PERIAPT_TEST_POD";

/// The longest wait for a condition.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the path of the certificates that a pod trusts: the host's own would be those of any program.
fn certificates_beside(socket: &Path) -> String {
    socket.with_file_name("certificates.pem").to_str().unwrap().to_owned()
}

fn options(socket: PathBuf) -> PodOptions {
    let certificates = Some(certificates_beside(&socket));
    let (socket, driver) = (Some(socket), DriverKind::Plain);
    PodOptions { socket, keeper: None, http: None, driver, accepts_no_isolation: true, certificates }
}

/// The pod's process. Without the variable, nothing asks for a pod.
#[test]
fn the_process_of_a_pod() {
    let Ok(socket) = std::env::var(SOCKET) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let code = runtime.block_on(async {
        let cancel = CancellationToken::new();
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        let stop = cancel.clone();
        tokio::spawn(async move {
            term.recv().await;
            stop.cancel();
        });
        run(options(socket.into()), cancel, || ()).await.unwrap()
    });
    std::process::exit(code);
}

/// A pod, which ends with its test.
pub(crate) struct Pod {
    process: Child,
    directory: TempDir,
}

impl Pod {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join(".pebble.socket");
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["pod::the_process_of_a_pod", "--exact", "--nocapture"])
            .env(SOCKET, &socket)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pod = Self { process, directory };
        until("the pod listens", || std::os::unix::net::UnixStream::connect(pod.socket()).is_ok());
        pod
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(".pebble.socket")
    }

    /// Returns the path of the certificates that the pod trusts. There is no file at first.
    pub(crate) fn certificates(&self) -> String {
        certificates_beside(&self.socket())
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.socket())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    /// Returns the number of the pod's open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.signal(rustix::process::Signal::TERM);
            let until = Instant::now() + PATIENCE;
            while Instant::now() < until && matches!(self.process.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// Waits for a condition.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true if a process runs; one that has ended and is not reaped does not. While threads of it end, its main thread may
/// be shown as ended, and its files are still open.
pub(crate) fn lives(pid: u32) -> bool {
    let ended = |stat: &str| {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        // The third field, the state, and the twentieth, the number of threads.
        Some(fields.next()? == "Z" && fields.nth(16)?.parse::<u32>().ok()? <= 1)
    };
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| ended(&stat) != Some(true))
}

#[tokio::test]
async fn a_driver_without_isolation_is_refused_unless_that_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let options = PodOptions { accepts_no_isolation: false, ..options(directory.path().join("s")) };
    let refused = run(options, CancellationToken::new(), || panic!("it runs")).await;
    assert!(matches!(refused, Err(PodError::NoIsolation("plain"))), "{refused:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_socket_that_is_served_stays_and_that_of_a_killed_pod_is_replaced() {
    let mut pod = Pod::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let taken = |path| runtime.block_on(run(options(path), CancellationToken::new(), || panic!("it runs")));
    assert!(matches!(taken(pod.socket()), Err(PodError::Taken(_))));
    let file = pod.directory().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(taken(file.clone()), Err(PodError::Listen { .. })));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x");
    pod.signal(rustix::process::Signal::KILL);
    pod.wait();
    assert!(pod.socket().exists());
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["pod::the_process_of_a_pod", "--exact", "--nocapture"])
        .env(SOCKET, pod.socket())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    pod.process = again;
    until("the pod listens again", || std::os::unix::net::UnixStream::connect(pod.socket()).is_ok());
    pod.signal(rustix::process::Signal::TERM);
    assert_eq!(pod.wait(), Some(0));
    assert!(!pod.socket().exists());
}
