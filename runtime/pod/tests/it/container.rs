//! A pod in a container: this test's program, started again as its guard, which starts it again inside.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Permissions},
    os::{
        fd::AsFd as _,
        unix::{
            fs::{PermissionsExt as _, symlink},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use periapt_pod::{
    ContainerLimits, ContainerOptions, ContainerProgram, ContainerUser, MountAccess, MountedDirectory,
    run_contained, run_in_container,
};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    client::Client,
    commands::{begin, ended, output},
    pod::until,
};

/// The variable with the settings of a guard that this process is to be.
const GUARD: &str = "PERIAPT_TEST_GUARD";

/// The variable that a pod's process has.
const INSIDE: &str = "PERIAPT_TEST_INSIDE";

/// The variable with the fault of a network's process.
const NETWORK_FAULT: &str = "PERIAPT_TEST_NETWORK_FAULT";

/// The longest wait for a container.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The exit code of tools that cannot be had.
const NONE: i32 = 3;

/// The settings of a container in a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) memory: u64,
    pub(crate) disk: u64,
    pub(crate) processes: u32,
    pub(crate) require_confinement: bool,
    /// The directory of the network that it shares with others.
    pub(crate) unit_network: Option<PathBuf>,
    /// The ports of that network which lead to other workloads of the unit.
    pub(crate) forwarded_ports: BTreeSet<u16>,
    /// The fault of the process of that network: `ends` as it begins, or has `no-proc`.
    pub(crate) network_fault: Option<String>,
    /// The file that its guard's standard output is, and which its processes hold.
    pub(crate) lock: Option<PathBuf>,
    /// The user of the guard; the test's own by default.
    pub(crate) user: Option<u32>,
    /// The user and the group of the container; root by default.
    pub(crate) inside: Option<(u32, u32)>,
    pub(crate) directory: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            disk: 64 << 20,
            processes: 256,
            require_confinement: false,
            unit_network: None,
            forwarded_ports: BTreeSet::new(),
            network_fault: None,
            lock: None,
            user: None,
            inside: None,
            directory: PathBuf::new(),
        }
    }
}

/// The guard's process. Without the variable, nothing asks for one.
#[test]
fn the_guard_of_a_container() {
    let Ok(settings) = std::env::var(GUARD) else { return };
    let settings: Settings = serde_json::from_str(&settings).unwrap();
    let at = |name: &str| settings.directory.join(name);
    let options = ContainerOptions {
        socket: Some(at("socket")),
        keeper: None,
        lock: settings.lock.as_ref().map(|_| std::io::stdout().as_fd().try_clone_to_owned().unwrap()),
        http: None,
        layers: vec![at("root"), at("more")],
        mounts: [
            ("storage", "/var/lib/db", MountAccess::ReadWrite),
            ("config", "/srv/config", MountAccess::ReadOnly),
        ]
        .map(|(source, target, access)| MountedDirectory {
            source: at(source),
            target: target.to_owned(),
            access,
        })
        .to_vec(),
        host_name: "web-0".to_owned(),
        hosts: vec![([10, 77, 0, 9].into(), "other".to_owned())],
        name_servers: vec![[10, 77, 0, 53].into()],
        environment: BTreeMap::from([("IMAGE".to_owned(), "yes".to_owned())]),
        owners: Some(at("owners")),
        user: settings.inside.map(|(user_id, group_id)| ContainerUser { user_id, group_id }),
        first_id: None,
        unit_network: settings.unit_network.clone(),
        forwarded_ports: settings.forwarded_ports.clone(),
        limits: ContainerLimits {
            memory: settings.memory,
            disk: settings.disk,
            processes: settings.processes,
            cpu: None,
        },
        require_confinement: settings.require_confinement,
        program: ContainerProgram {
            path: "/proc/self/exe".into(),
            arguments: ["container::the_process_in_a_container", "--exact", "--nocapture"]
                .map(Into::into)
                .to_vec(),
            environment: [(INSIDE.into(), "1".into())]
                .into_iter()
                .chain(settings.network_fault.clone().map(|fault| (NETWORK_FAULT.into(), fault.into())))
                .collect(),
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let cancel = CancellationToken::new();
    let ended = runtime.block_on(async {
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        let stop = cancel.clone();
        tokio::spawn(async move {
            term.recv().await;
            stop.cancel();
        });
        run_in_container(options, cancel, |gaps| {
            let gaps: Vec<_> = gaps.iter().map(ToString::to_string).collect();
            fs::write(at("gaps.new"), json!(gaps).to_string()).unwrap();
            fs::rename(at("gaps.new"), at("gaps")).unwrap();
        })
        .await
    });
    let code = ended.unwrap_or_else(|error| {
        fs::write(at("error"), error.to_string()).unwrap();
        77
    });
    std::process::exit(code);
}

/// The pod's process. Without the variable, nothing asks for one.
#[test]
fn the_process_in_a_container() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let order = std::env::args().next_back().unwrap();
    if let (Ok(fault), true) = (std::env::var(NETWORK_FAULT), order.starts_with("{\"network\":")) {
        match fault.as_str() {
            "ends" => std::process::exit(1),
            _ => {
                let hidden = Command::new("mount").args(["-t", "tmpfs", "none", "/proc"]).status().unwrap();
                assert!(hidden.success());
            }
        }
    }
    let code = run_contained(&order);
    // The exit code has no number.
    std::process::exit(if code == std::process::ExitCode::SUCCESS { 0 } else { 1 });
}

/// Returns a static busybox; none where it cannot be had.
fn busybox() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let tool = format!("{}/../../tools/busybox", env!("CARGO_MANIFEST_DIR"));
        let found = Command::new(tool).stdin(Stdio::null()).output().unwrap();
        let reason = String::from_utf8_lossy(&found.stderr).into_owned();
        match found.status.code() {
            Some(0) => Some(String::from_utf8(found.stdout).unwrap().trim().into()),
            Some(NONE) => {
                skipped(&reason);
                None
            }
            _ => panic!("{reason}"),
        }
    });
    found.as_deref()
}

/// Returns a file that is locked.
fn locked(path: &Path) -> File {
    let file = File::options().append(true).create(true).open(path).unwrap();
    file.try_lock().unwrap();
    file
}

/// Says that a test does nothing, and why. In CI it must do something.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub(crate) fn skipped(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "no container can be made here: {reason}");
    eprintln!("SKIPPED: {reason}");
}

/// A container, which ends with its test.
pub(crate) struct Container {
    pub(crate) guard: Child,
    directory: TempDir,
}

impl Container {
    /// Starts a container; none where that is not possible.
    pub(crate) fn start(settings: Settings) -> Option<Self> {
        Self::start_with(settings, |_| ())
    }

    /// Starts a container with more users than root; none where the host gives it none.
    pub(crate) fn with_users(change: impl FnOnce(&Path)) -> Option<Self> {
        let container = Self::start_with(Settings::default(), change)?;
        container.gap("users").is_none().then_some(container)
    }

    /// Starts a container whose layers are changed before.
    pub(crate) fn start_with(settings: Settings, change: impl FnOnce(&Path)) -> Option<Self> {
        let container = Self::launch(settings, change)?;
        container.has_begun().then_some(container)
    }

    /// Waits until the container has begun; false where that is not possible.
    pub(crate) fn has_begun(&self) -> bool {
        let until = Instant::now() + PATIENCE;
        let at = |name: &str| self.directory.path().join(name);
        while !at("gaps").exists() {
            if let Ok(error) = fs::read_to_string(at("error")) {
                let lacks =
                    ["user namespace", "cannot mount", "idmapped"].iter().any(|part| error.contains(part));
                assert!(lacks, "{error}");
                skipped(&error);
                return false;
            }
            assert!(Instant::now() < until, "the container does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Starts the guard alone; none where there are no files for a container.
    pub(crate) fn launch(settings: Settings, change: impl FnOnce(&Path)) -> Option<Self> {
        let busybox = busybox()?;
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["root/bin", "root/etc", "root/srv", "root/tmp", "more/srv", "storage", "config"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::copy(busybox, at("root/bin/busybox")).unwrap();
        fs::set_permissions(at("root/bin/busybox"), Permissions::from_mode(0o755)).unwrap();
        let applets = Command::new(busybox).arg("--list").output().unwrap().stdout;
        for applet in String::from_utf8(applets).unwrap().lines().filter(|it| *it != "busybox") {
            symlink("busybox", at("root/bin").join(applet)).unwrap();
        }
        fs::write(at("root/etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n").unwrap();
        fs::write(at("root/etc/group"), "root:x:0:\nwww:x:34:\n").unwrap();
        fs::write(at("root/srv/page"), "lower").unwrap();
        fs::write(at("more/srv/page"), "upper").unwrap();
        fs::write(at("config/page"), "configured").unwrap();
        fs::write(at("secret"), "of the host").unwrap();
        let owners = [
            "2775 33 34 srv",
            "600 584792 584792 etc/key",
            "700 0 0 not/there",
            "777 1 1 dev",
            "777 1 1 bin/sh",
        ];
        let owners = owners.map(|record| format!("{record}\0")).concat();
        fs::write(at("owners"), owners).unwrap();
        fs::write(at("root/etc/key"), "key").unwrap();
        change(directory.path());
        let mut program = std::env::current_exe().unwrap();
        if settings.user.is_some() {
            // A user without rights may not reach the directory of builds.
            fs::copy(&program, at("program")).unwrap();
            program = at("program");
        }
        if let Some(user) = settings.user {
            let given =
                Command::new("chown").args(["-Rh", &format!("{user}:{user}")]).arg(directory.path()).status();
            assert!(given.unwrap().success());
        }
        let settings = Settings { directory: directory.path().to_owned(), ..settings };
        let mut guard = Command::new(program);
        guard
            .args(["container::the_guard_of_a_container", "--exact", "--nocapture"])
            .env(GUARD, serde_json::to_string(&settings).unwrap())
            .stdin(Stdio::null())
            .stdout(settings.lock.as_ref().map_or_else(Stdio::null, |lock| locked(lock).into()));
        if let Some(user) = settings.user {
            guard.uid(user).gid(user).current_dir("/");
        }
        Some(Self { guard: guard.spawn().unwrap(), directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn client(&self) -> Client {
        Client(self.directory.path().join("socket"))
    }

    /// Returns the parts of the confinement that this host lacks.
    pub(crate) fn gaps(&self) -> Vec<String> {
        let gaps = fs::read_to_string(self.directory.path().join("gaps")).unwrap();
        serde_json::from_str(&gaps).unwrap()
    }

    /// Returns what this host lacks of a part; says so, if it does.
    #[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
    pub(crate) fn gap(&self, part: &str) -> Option<String> {
        let gap = self.gaps().into_iter().find(|gap| gap.starts_with(&format!("{part}: ")))?;
        eprintln!("SKIPPED in part: {gap}");
        Some(gap)
    }

    /// Waits for a container that does not begin, and returns the reason.
    pub(crate) fn refusal(mut self) -> String {
        assert_eq!(self.guard.wait().unwrap().code(), Some(77));
        assert!(!self.directory.path().join("socket").exists());
        fs::read_to_string(self.directory.path().join("error")).unwrap()
    }

    /// Runs a shell's script in the container, and returns its output and exit code.
    pub(crate) fn sh(&self, script: &str) -> (String, i64) {
        self.exec(json!({ "command": ["sh", "-c", script] }))
    }

    /// Runs a command in the container.
    pub(crate) fn exec(&self, body: Value) -> (String, i64) {
        let client = self.client();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut command = begin(&client, body).await;
            let text = output(&mut command.stdio).await;
            let change = ended(&client, &command.change);
            let code = change["tasks"][0]["data"]["exit-code"].as_i64();
            (text, code.unwrap_or_else(|| panic!("{change}")))
        })
    }

    /// Returns the script's output, which must succeed.
    pub(crate) fn told(&self, script: &str) -> String {
        let (text, code) = self.sh(script);
        assert_eq!(code, 0, "{script}: {text}");
        text.trim().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.guard.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Returns the host's numbers of the processes of the container: the pod's, the init, the workload's.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mut found = vec![i32::try_from(self.guard.id()).unwrap()];
        let mut at = 0;
        while let Some(parent) = found.get(at).copied() {
            found.extend(children(parent));
            at += 1;
        }
        found.split_off(1)
    }

    /// Returns the cgroups of the container.
    pub(crate) fn cgroups(&self) -> Vec<PathBuf> {
        let name = format!("periapt-container-{}", self.guard.id());
        let mut found = Vec::new();
        let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    found.extend((entry.file_name() == name.as_str()).then(|| entry.path()));
                    open.push(entry.path());
                }
            }
        }
        found
    }
}

/// Returns the children of all threads of a process.
fn children(parent: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    threads
        .flat_map(|it| of(it).split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// Returns true if a process runs.
pub(crate) fn runs(pid: i32) -> bool {
    crate::pod::lives(u32::try_from(pid).unwrap())
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Ok(None) = self.guard.try_wait() {
            self.signal(Signal::TERM);
            let end = Instant::now() + PATIENCE;
            while Instant::now() < end && matches!(self.guard.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.guard.kill();
            let _ = self.guard.wait();
        }
    }
}

/// Waits until none of some processes runs.
pub(crate) fn until_gone(processes: &[i32]) {
    until("all processes are gone", || !processes.iter().any(|pid| runs(*pid)));
}
