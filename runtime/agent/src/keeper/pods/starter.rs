//! The start of a pod: what its process needs, by what runs in it.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::future::BoxFuture;
use periapt_host_api::{Digest, ModelUuid, UnitName, charm::WorkloadMeta, container::ReportedDriver};

use super::{
    PodId,
    counter::StorageCounter,
    held::{HeldPod, HeldPods},
    lock::{self, PodLocks},
    memory::HostMemory,
    needs::{PodMounts, PodNeeds},
    note::PodNote,
    process::{PodProcess, PodProgram},
};
use crate::{
    keeper::{
        directories::{Directories, private_directory},
        held::PodHolder,
        temporary::Temporary,
    },
    options::{ContainerDriver, HostGaps, PodDrivers, WorkloadDriver},
};

/// The software of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PodSoftware {
    /// A container on the host's files.
    Container,
    /// A container on an image.
    Image(PodNeeds),
    /// A WebAssembly workload, whose component is in the charm.
    Workload {
        /// The charm.
        charm: Digest,
        /// The component and its port.
        workload: WorkloadMeta,
        /// Its storage, or what it waits for.
        mounts: Result<PodMounts, String>,
    },
}

impl PodSoftware {
    /// Returns the content of the resource with its image.
    pub(super) fn content(&self) -> Option<Digest> {
        match self {
            Self::Image(PodNeeds::Met(files)) => Some(files.image.digest),
            Self::Container | Self::Image(PodNeeds::Unmet(_)) | Self::Workload { .. } => None,
        }
    }
}

/// The files that pods need.
pub(crate) trait PodFiles: Send + Sync + 'static {
    /// Returns the path of a workload's component, which is fetched first if needed. The error is in words.
    fn component<'a>(&'a self, charm: Digest, path: &'a str) -> BoxFuture<'a, Result<PathBuf, String>>;
}

/// Starts the pods of all models.
pub(crate) struct PodStarter {
    program: PodProgram,
    drivers: PodDrivers,
    files: Arc<dyn PodFiles>,
    /// The memory of the host for pods.
    memory: Arc<HostMemory>,
    /// The directory for files of pods that run.
    directory: PathBuf,
    locks: PodLocks,
    next: AtomicU64,
    /// The holder of pods, for the next keeper.
    holder: PodHolder,
    /// The pods of an earlier keeper.
    held: Arc<HeldPods>,
    /// The counter of their storage.
    counter: StorageCounter,
}

/// The command of a pod.
enum PodCommand {
    /// A container, with its arguments.
    Container(Vec<OsString>),
    /// A WebAssembly workload, with the arguments that do not depend on its directory.
    Workload { component: PathBuf, port: Option<u16>, more: Vec<OsString> },
}

impl PodCommand {
    /// Returns the digest of all that decides what the pod of a name runs.
    fn digest(&self, name: &str) -> Digest {
        let (kind, words) = match self {
            Self::Container(arguments) => ("container", arguments.clone()),
            Self::Workload { component, port, more } => {
                let own: [OsString; 2] = [component.clone().into(), format!("{port:?}").into()];
                ("workload", own.into_iter().chain(more.iter().cloned()).collect())
            }
        };
        let mut all = Vec::new();
        for word in
            [OsStr::new(kind), OsStr::new(name)].into_iter().chain(words.iter().map(|word| word.as_os_str()))
        {
            all.extend(u64::try_from(word.len()).unwrap_or(u64::MAX).to_be_bytes());
            all.extend(word.as_bytes());
        }
        Digest::of(&all)
    }
}

impl std::fmt::Debug for PodStarter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodStarter").field("drivers", &self.drivers).finish_non_exhaustive()
    }
}

impl PodStarter {
    /// Creates the starter of pods with these drivers, and with the directories of their files and of their locks.
    pub(crate) fn new(
        program: PodProgram,
        drivers: PodDrivers,
        files: Arc<dyn PodFiles>,
        memory: Arc<HostMemory>,
        (directory, locks): (PathBuf, PathBuf),
    ) -> Self {
        let (locks, next) = (PodLocks::new(locks), AtomicU64::default());
        let (holder, held) = (PodHolder::default(), Arc::default());
        let counter = StorageCounter::default();
        Self { program, drivers, files, memory, directory, locks, next, holder, held, counter }
    }

    /// Lets pods outlive this keeper, and takes over those of an earlier one.
    pub(crate) fn holding(self, holder: PodHolder, held: Arc<HeldPods>) -> Self {
        Self { holder, held, ..self }
    }

    /// Has a helper count storage over which the keeper has no rights.
    pub(crate) fn counting(self, counter: StorageCounter) -> Self {
        Self { counter, ..self }
    }

    /// Returns the counter of their storage.
    pub(super) fn counter(&self) -> &StorageCounter {
        &self.counter
    }

    /// Returns the pods of an earlier keeper that were not taken yet.
    pub(crate) fn held(&self) -> &Arc<HeldPods> {
        &self.held
    }

    /// Leaves all pods to the next keeper. None is ended from now on.
    pub(crate) fn leave(&self) {
        self.holder.leave();
    }

    /// Returns the memory of the host for pods.
    pub(super) fn memory(&self) -> &Arc<HostMemory> {
        &self.memory
    }

    /// Returns the reason why this agent runs no such software, if it runs none.
    pub(super) fn lacks(&self, software: &PodSoftware) -> Option<&'static str> {
        match software {
            PodSoftware::Container | PodSoftware::Image(_) if self.drivers.containers.is_none() => {
                match self.drivers.workloads {
                    None => Some("this agent runs no workloads"),
                    Some(_) => Some("this agent runs WebAssembly workloads alone, and no containers"),
                }
            }
            PodSoftware::Workload { .. } if self.drivers.workloads.is_none() => {
                Some("this agent runs no WebAssembly workloads: it needs `--workloads wasm`")
            }
            PodSoftware::Container | PodSoftware::Image(_) | PodSoftware::Workload { .. } => None,
        }
    }

    /// Returns the driver that runs such software.
    pub(super) fn driver(&self, software: &PodSoftware) -> Option<ReportedDriver> {
        match software {
            PodSoftware::Container | PodSoftware::Image(_) => {
                self.drivers.containers.map(|driver| match driver {
                    ContainerDriver::Plain => ReportedDriver::Plain,
                    ContainerDriver::Namespaces(_) => ReportedDriver::Namespaces,
                })
            }
            PodSoftware::Workload { .. } => {
                self.drivers.workloads.map(|WorkloadDriver::Wasm| ReportedDriver::Wasm)
            }
        }
    }

    /// Starts a pod for a container or a workload, with more arguments for its process, or takes over the one that an earlier
    /// keeper has started with the same ones. Another one of an earlier keeper has ended before. The error is in words.
    pub(super) async fn start(
        &self,
        (model, pod): (ModelUuid, &PodId),
        software: &PodSoftware,
        more: &[OsString],
        held: &mut Option<HeldPod>,
    ) -> Result<PodProcess, String> {
        self.held.unwanted_ended(model, pod).await;
        let name = pod.1.as_str();
        let command = self.command(software, more).await?;
        let digest = command.digest(name);
        if let Some(earlier) = held {
            let (unit, container) = pod;
            match earlier.adopt(&digest).await {
                Ok(()) => {
                    tracing::info!(%unit, %container, "a pod of an earlier keeper goes on");
                    if let Some(HeldPod { process, .. }) = held.take() {
                        return Ok(process);
                    }
                }
                Err(reason) => {
                    tracing::info!(%unit, %container, reason, "a pod of an earlier keeper is not taken over");
                    earlier.end().await;
                    *held = None;
                }
            }
        }
        let note = |directory: Option<&Path>| {
            let directory =
                directory.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            (&self.holder, PodNote::new(model, pod, digest, directory))
        };
        let lock = self.locks.take(model, pod).await?;
        let started = match command {
            PodCommand::Container(arguments) => {
                self.program.start(&arguments, Some(lock), None, Some(note(None)))
            }
            PodCommand::Workload { component, port, more } => {
                let directory = self.directory().map_err(|error| format!("its directory: {error}"))?;
                let arguments = [&wasm(name, &component, port, directory.path())[..], &more[..]].concat();
                let kept = note(Some(directory.path()));
                self.program.start(&arguments, Some(lock), Some(directory), Some(kept))
            }
        };
        started.map_err(|error| error.to_string())
    }

    /// Returns the directory of the network that the containers of a unit share.
    pub(super) fn unit_network(&self, model: ModelUuid, unit: &UnitName) -> PathBuf {
        self.locks.of_unit(model, unit)
    }

    /// Forgets a pod that has ended and is not started again.
    pub(super) fn forget(&self, model: ModelUuid, pod: &PodId) {
        self.locks.forget(model, pod);
    }

    /// Returns the command of a pod, whose component is fetched first if needed.
    async fn command(&self, software: &PodSoftware, more: &[OsString]) -> Result<PodCommand, String> {
        match software {
            PodSoftware::Container | PodSoftware::Image(_) => {
                let driver = self.drivers.containers.ok_or("it has no driver")?;
                Ok(PodCommand::Container([&driver_arguments(driver)[..], more].concat()))
            }
            PodSoftware::Workload { charm, workload, .. } => {
                let WorkloadDriver::Wasm = self.drivers.workloads.ok_or("it has no driver")?;
                let component = self.files.component(*charm, &workload.component).await?;
                Ok(PodCommand::Workload { component, port: workload.http, more: more.to_vec() })
            }
        }
    }

    /// Creates a directory for a pod, with the place for its files.
    fn directory(&self) -> io::Result<Temporary> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let path = self.directory.join(number.to_string());
            match path.try_exists()? {
                // Of a pod of an earlier agent that has not ended yet.
                true => {}
                false => {
                    let made = Temporary::new(path);
                    private_directory(&made.path().join(ROOT))?;
                    return Ok(made);
                }
            }
        }
    }
}

/// Returns the arguments of a pod with this driver of containers.
pub(super) fn driver_arguments(driver: ContainerDriver) -> Vec<OsString> {
    let words: &[&str] = match driver {
        ContainerDriver::Plain => &["--driver", "plain", "--i-know-that-nothing-is-isolated"],
        ContainerDriver::Namespaces(HostGaps::Told) => &["--driver", "namespaces"],
        ContainerDriver::Namespaces(HostGaps::Refused) => {
            &["--driver", "namespaces", "--require-confinement"]
        }
    };
    words.iter().map(OsString::from).collect()
}

/// The directory of a pod that its workload reads as `/`.
const ROOT: &str = "root";

/// Returns the arguments of a pod with a WebAssembly workload.
fn wasm(name: &str, component: &Path, port: Option<u16>, directory: &Path) -> Vec<OsString> {
    let mut workload = OsString::from(format!("{name}="));
    workload.push(component);
    // The colon ends the path, whatever it has at its end.
    workload.push(":");
    workload.push(port.map(|port| port.to_string()).unwrap_or_default());
    let words: [OsString; 7] = [
        "--driver".into(),
        "wasm".into(),
        "--root".into(),
        directory.join(ROOT).into(),
        "--private-ports".into(),
        "--workload".into(),
        workload,
    ];
    words.into()
}

/// Removes what pods of an earlier agent left. A pod that is held keeps its files.
pub(crate) fn forget_earlier(directories: &Directories, held: &HeldPods) {
    lock::forget_unheld(&directories.pod_locks());
    let kept = held.directories();
    for entry in fs::read_dir(directories.pods()).into_iter().flatten().flatten() {
        if !kept.contains(&entry.path()) {
            drop(Temporary::new(entry.path()));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// No files at all.
    pub(in crate::keeper::pods) struct NoFiles;

    impl PodFiles for NoFiles {
        fn component<'a>(&'a self, _: Digest, path: &'a str) -> BoxFuture<'a, Result<PathBuf, String>> {
            Box::pin(async move { Err(format!("there is no {path}")) })
        }
    }

    fn starter(drivers: PodDrivers, directory: &Path) -> PodStarter {
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = PodProgram { path: "/bin/true".into(), arguments: Vec::new(), environment };
        PodStarter::new(
            program,
            drivers,
            Arc::new(NoFiles),
            HostMemory::new(None),
            (directory.to_owned(), directory.to_owned()),
        )
    }

    fn workload() -> PodSoftware {
        let workload = WorkloadMeta { component: "web.wasm".to_owned(), http: Some(80) };
        PodSoftware::Workload { charm: Digest::of(b"charm"), workload, mounts: Ok(PodMounts::new()) }
    }

    #[test]
    fn an_agent_says_which_software_it_runs() {
        let directory = tempfile::tempdir().unwrap();
        let lacks = |containers, workloads| {
            let starter = starter(PodDrivers { containers, workloads }, directory.path());
            let told = |software| starter.lacks(&software).unwrap_or_default().to_owned();
            [told(PodSoftware::Container), told(workload())]
        };
        let wasm = "this agent runs no WebAssembly workloads: it needs `--workloads wasm`";
        assert_eq!(lacks(None, None), ["this agent runs no workloads", wasm]);
        assert_eq!(lacks(Some(ContainerDriver::Plain), None), ["", wasm]);
        let alone = "this agent runs WebAssembly workloads alone, and no containers";
        assert_eq!(lacks(None, Some(WorkloadDriver::Wasm)), [alone, ""]);
        assert_eq!(lacks(Some(ContainerDriver::Plain), Some(WorkloadDriver::Wasm)), ["", ""]);
    }

    #[tokio::test]
    async fn a_workload_whose_component_is_missing_is_an_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let drivers = PodDrivers { workloads: Some(WorkloadDriver::Wasm), ..PodDrivers::default() };
        let starter = starter(drivers, directory.path());
        let pod = ("app/0".parse().unwrap(), "web".parse().unwrap());
        let model = ModelUuid(uuid::Uuid::from_u128(1));
        let error = starter.start((model, &pod), &workload(), &[], &mut None).await.unwrap_err();
        assert_eq!(error, "there is no web.wasm");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_pod_is_known_by_its_whole_command() {
        let container = |words: &[&str]| PodCommand::Container(words.iter().map(OsString::from).collect());
        let workload = |port, more: &[&str]| PodCommand::Workload {
            component: "/charm/web.wasm".into(),
            port,
            more: more.iter().map(OsString::from).collect(),
        };
        let one = container(&["--root", "a"]).digest("web");
        assert_eq!(container(&["--root", "a"]).digest("web"), one);
        let others = [
            container(&["--root", "b"]).digest("web"),
            container(&["--roota"]).digest("web"),
            container(&["--root", "a"]).digest("side"),
            workload(Some(80), &[]).digest("web"),
            workload(Some(81), &[]).digest("web"),
            workload(None, &["--mount"]).digest("web"),
        ];
        let distinct: std::collections::BTreeSet<_> = others.iter().collect();
        assert!(distinct.len() == others.len() && !others.contains(&one));
    }

    #[test]
    fn each_start_has_a_directory_of_its_own_which_goes_with_it() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("0")).unwrap();
        let starter = starter(PodDrivers::default(), directory.path());
        let (one, other) = (starter.directory().unwrap(), starter.directory().unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
        assert!(one.path().join(ROOT).is_dir() && other.path().join(ROOT).is_dir());
        drop((one, other));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_end_of_a_components_path_is_no_port() {
        let told = |port| {
            let words = wasm("job", Path::new("/charm/job:80"), port, Path::new("/pods/1"));
            words.last().and_then(|word| word.to_str()).unwrap().to_owned()
        };
        assert_eq!(
            (told(None).as_str(), told(Some(9)).as_str()),
            ("job=/charm/job:80:", "job=/charm/job:80:9")
        );
    }
}
