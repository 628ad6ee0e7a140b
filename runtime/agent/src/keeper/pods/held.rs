//! The pods that an earlier keeper of this agent's directory left.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use periapt_host_api::{Digest, ModelUuid};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    PodId,
    note::{HeldPlace, PROCESS, PodNote, SOCKET},
    process::PodProcess,
};
use crate::keeper::{
    held::{HeldItem, PodHolder},
    process_handle::ProcessHandle,
    temporary::Temporary,
};

/// A pod of an earlier keeper.
#[derive(Debug)]
pub(super) struct HeldPod {
    pub(super) process: PodProcess,
    software: Digest,
    /// The start of which the unit's charm was told; none if the present unit was told of none.
    told: Option<String>,
}

/// The pods of an earlier keeper.
#[derive(Debug, Default)]
pub(crate) struct HeldPods {
    /// The pods that this keeper has not taken yet.
    pods: Mutex<BTreeMap<(ModelUuid, PodId), HeldPod>>,
    /// The pods that nobody wanted. The token of each is cancelled once it has ended.
    ending: Mutex<BTreeMap<(ModelUuid, PodId), CancellationToken>>,
}

/// A pod that nobody wanted.
#[derive(Debug)]
pub(super) struct EndingPod {
    pod: HeldPod,
    _ended: DropGuard,
}

impl HeldPod {
    /// Takes the pod over if it runs this software for the present unit. Otherwise the reason says why not.
    pub(super) async fn adopt(&mut self, software: &Digest) -> Result<(), String> {
        if self.software != *software {
            return Err("it runs other software than its unit needs".to_owned());
        }
        let told = self.told.as_ref().ok_or("its unit does not know it")?;
        let boot_id = self.process.take_over().await?;
        match boot_id == *told {
            true => Ok(()),
            false => Err("its unit knows another start of it".to_owned()),
        }
    }

    /// Ends the pod. Cancellation loses nothing: the end may be waited for again.
    pub(super) async fn end(&mut self) {
        self.process.end().await;
    }
}

impl HeldPods {
    /// Takes what an earlier keeper handed over. The files of pods are in the directories below `files`.
    pub(crate) fn new(holder: &PodHolder, items: Vec<HeldItem>, files: &Path) -> Self {
        let mut items: BTreeMap<_, _> = items.into_iter().map(|item| (item.name.clone(), item)).collect();
        let mut pods = BTreeMap::new();
        let names: Vec<String> =
            items.keys().filter_map(|name| name.strip_suffix(PROCESS)).map(str::to_owned).collect();
        for name in names {
            let Some(process) = items.remove(&format!("{name}{PROCESS}")) else { continue };
            let socket = items.remove(&format!("{name}{SOCKET}")).map(|item| item.descriptor);
            match held(holder, process, socket, files) {
                Ok((id, pod)) => drop(pods.insert(id, pod)),
                Err(error) => {
                    tracing::warn!(%error, name, "a pod of an earlier keeper is lost, and was killed")
                }
            }
        }
        Self { pods: Mutex::new(pods), ending: Mutex::default() }
    }

    /// Returns true if all pods were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.pods.lock().is_empty()
    }

    /// Returns the directories of the pods' files.
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        let pods = self.pods.lock();
        pods.values().filter_map(|pod| pod.process.directory().map(Path::to_owned)).collect()
    }

    /// Takes the pod of a unit's container. `told` is the start of which the unit's charm was told.
    pub(super) fn take(&self, model: ModelUuid, pod: &PodId, told: Option<&String>) -> Option<HeldPod> {
        let mut pods = self.pods.lock();
        if pods.is_empty() {
            return None;
        }
        let mut held = pods.remove(&(model, pod.clone()))?;
        held.told = told.cloned();
        Some(held)
    }

    /// Takes the pods of some models, to end them.
    pub(super) fn unwanted(&self, of: impl Fn(&ModelUuid) -> bool) -> Vec<EndingPod> {
        let mut pods = self.pods.lock();
        let mut ending = self.ending.lock();
        let taken = pods.extract_if(.., |(model, _), _| of(model));
        let unwanted = taken.map(|(id, pod)| {
            let (model, (unit, container)) = &id;
            tracing::info!(%model, %unit, %container, "a pod of an earlier keeper is not wanted, and ends");
            let ended = CancellationToken::new();
            ending.insert(id, ended.clone());
            EndingPod { pod, _ended: ended.drop_guard() }
        });
        unwanted.collect()
    }

    /// Waits until the pod of a unit's container has ended, if nobody wanted it.
    pub(super) async fn unwanted_ended(&self, model: ModelUuid, pod: &PodId) {
        let ending = self.ending.lock().get(&(model, pod.clone())).cloned();
        if let Some(ended) = ending {
            ended.cancelled().await;
        }
    }

    /// Ends the pods of all models but these.
    pub(crate) async fn end_others(&self, models: &BTreeSet<ModelUuid>) {
        end(self.unwanted(|model| !models.contains(model))).await;
    }

    /// Ends all pods that were not taken.
    pub(crate) async fn end_all(&self) {
        end(self.unwanted(|_| true)).await;
    }
}

/// Ends pods, all at once.
pub(super) async fn end(pods: Vec<EndingPod>) {
    let ends = pods.into_iter().map(|mut ending| async move { ending.pod.end().await });
    futures_util::future::join_all(ends).await;
}

/// Reads a pod. One that cannot be taken is killed.
fn held(
    holder: &PodHolder,
    process: HeldItem,
    socket: Option<OwnedFd>,
    files: &Path,
) -> io::Result<((ModelUuid, PodId), HeldPod)> {
    let handle = ProcessHandle::new(process.descriptor)?;
    let note: PodNote = serde_json::from_str(&process.note).inspect_err(|_| handle.kill_and_forget())?;
    let socket = match socket {
        Some(socket) => UnixStream::from(socket),
        // Its keeper died while it handed the pod over: without its socket, the pod ends.
        None => UnixStream::pair()?.0,
    };
    let place = HeldPlace::new(holder, &note);
    if !note.is_understood() {
        handle.kill_and_forget();
        return Err(io::Error::other("its program speaks otherwise"));
    }
    let directory = note.directory.map(|name| Temporary::new(files.join(name)));
    let process = PodProcess::of_earlier(handle, socket, place, directory)?;
    Ok(((note.model, note.pod), HeldPod { process, software: note.software, told: None }))
}

#[cfg(test)]
mod tests {
    use std::{
        ffi::OsString,
        os::unix::net::UnixListener,
        thread::JoinHandle,
        time::{Duration, Instant},
    };

    use tokio::time::timeout;

    use super::*;
    use crate::{
        holder::hold_for,
        keeper::{
            held::{find_holder, open_holder},
            pods::process::{PodEvent, PodProgram},
        },
    };

    /// A pod that answers each keeper: its reports are cut off where the one before stopped to read.
    const POD: &str = r#"ready() { echo '{"ready":{"boot-id":"b1"}}' >&0; }
        ready
        echo '{"service-ended":{"service":"web","reason":"it is told twi' >&0
        head -c 3 <&0 >/dev/null
        echo 'ce"}}' >&0
        ready
        cat <&0 >/dev/null"#;

    fn pod() -> PodId {
        ("app/0".parse().unwrap(), "web".parse().unwrap())
    }

    fn model() -> ModelUuid {
        ModelUuid(uuid::Uuid::from_u128(1))
    }

    /// An agent's directory with a holder, which is a thread of the test.
    struct Stage {
        root: tempfile::TempDir,
        holder: JoinHandle<io::Result<()>>,
    }

    impl Stage {
        fn new(time: Duration) -> Self {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("holder.sock");
            let listener = UnixListener::bind(&path).unwrap();
            let holder = std::thread::spawn(move || hold_for(&listener, &path, time));
            Self { root, holder }
        }

        /// Returns what a keeper that starts now finds.
        async fn keeper(&self) -> (PodHolder, HeldPods) {
            let root = self.root.path().to_owned();
            let found = tokio::task::spawn_blocking(move || find_holder(&root)).await.unwrap();
            let (link, items) = found.unwrap().expect("a holder");
            let holder = PodHolder::new(link).unwrap();
            let pods = HeldPods::new(&holder, items, self.root.path());
            (holder, pods)
        }

        async fn ended(self) {
            let holder = self.holder;
            tokio::task::spawn_blocking(move || holder.join().unwrap().unwrap()).await.unwrap();
        }
    }

    fn start(holder: &PodHolder, script: &str, software: &[u8]) -> PodProcess {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = PodProgram { path: "/bin/sh".into(), arguments, environment };
        let note = PodNote::new(model(), &pod(), Digest::of(software), None);
        program.start(&[], None, None, Some((holder, note))).unwrap()
    }

    /// Ends a keeper as a kill does: nothing is ended, and nothing released.
    fn dies(holder: PodHolder, process: PodProcess) {
        holder.leave();
        drop(process);
    }

    async fn is_ready(process: &mut PodProcess) -> bool {
        matches!(process.report().await, Ok(Some(PodEvent::Ready { boot_id, .. })) if boot_id == "b1")
    }

    #[tokio::test]
    async fn the_next_keeper_takes_a_pod_over_and_hears_all_from_its_start() {
        let stage = Stage::new(Duration::from_secs(600));
        let (holder, none) = stage.keeper().await;
        assert!(none.take(model(), &pod(), None).is_none());
        let mut process = start(&holder, POD, b"one");
        assert!(is_ready(&mut process).await);
        dies(holder, process);

        let (holder, pods) = stage.keeper().await;
        let mut held = pods.take(model(), &pod(), Some(&"b1".to_owned())).expect("a pod");
        held.adopt(&Digest::of(b"one")).await.unwrap();
        assert!(is_ready(&mut held.process).await);
        // It ends in order, though the holder has its socket, and is known no more.
        held.end().await;
        drop(held);
        holder.leave();
        let (_holder, pods) = stage.keeper().await;
        assert!(pods.unwanted(|_| true).is_empty());
    }

    #[tokio::test]
    async fn a_pod_of_other_software_or_of_an_earlier_unit_is_not_taken_over() {
        let stage = Stage::new(Duration::from_secs(600));
        let cases = [
            ("other", Some("b1"), "other software"),
            ("one", None, "its unit does not know it"),
            ("one", Some("b0"), "another start"),
        ];
        for (software, told, expected) in cases {
            let (holder, _) = stage.keeper().await;
            let mut process = start(&holder, POD, b"one");
            assert!(is_ready(&mut process).await);
            dies(holder, process);
            let (holder, pods) = stage.keeper().await;
            let told = told.map(str::to_owned);
            let mut held = pods.take(model(), &pod(), told.as_ref()).expect("a pod");
            let reason = held.adopt(&Digest::of(software.as_bytes())).await.unwrap_err();
            assert!(reason.contains(expected), "{reason}");
            held.end().await;
            assert!(held.process.end_is_known());
            holder.leave();
        }
    }

    #[tokio::test]
    async fn pods_that_nobody_wants_end_before_others_of_their_units_begin() {
        let stage = Stage::new(Duration::from_secs(600));
        let (holder, _) = stage.keeper().await;
        let mut process = start(&holder, POD, b"one");
        assert!(is_ready(&mut process).await);
        let mut watched = ProcessHandle::new(process.process_descriptor()).unwrap();
        dies(holder, process);
        let (_holder, pods) = stage.keeper().await;
        pods.end_others(&BTreeSet::from([model()])).await;
        let unwanted = pods.unwanted(|of| *of == model());
        assert_eq!(unwanted.len(), 1, "it was spared with its model");
        let (id, ends) = (pod(), end(unwanted));
        tokio::join!(ends, async {
            pods.unwanted_ended(model(), &id).await;
            assert!(timeout(Duration::from_secs(60), watched.ended()).await.is_ok());
        });
        // Of another one nothing is known.
        pods.unwanted_ended(model(), &("app/1".parse().unwrap(), "web".parse().unwrap())).await;
    }

    #[tokio::test]
    async fn without_a_keeper_in_time_all_pods_end() {
        let stage = Stage::new(Duration::from_secs(5));
        let (holder, _) = stage.keeper().await;
        let mut process = start(&holder, POD, b"one");
        assert!(is_ready(&mut process).await);
        let mut watched = ProcessHandle::new(process.process_descriptor()).unwrap();
        let began = Instant::now();
        dies(holder, process);
        watched.ended().await;
        assert!(began.elapsed() >= Duration::from_secs(4), "it waited for the next keeper");
        stage.ended().await;
    }

    #[tokio::test]
    async fn a_holder_without_its_directory_ends_and_one_that_is_gone_is_replaced() {
        let stage = Stage::new(Duration::from_secs(600));
        let (holder, _) = stage.keeper().await;
        let mut process = start(&holder, POD, b"one");
        assert!(is_ready(&mut process).await);
        let mut watched = ProcessHandle::new(process.process_descriptor()).unwrap();
        std::fs::remove_file(stage.root.path().join("holder.sock")).unwrap();
        dies(holder, process);
        watched.ended().await;
        let root = stage.root.path().to_owned();
        // A program that is no holder: the error says so, and nothing waits for it.
        let program = periapt_helper::Program {
            path: "/bin/true".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        };
        let opened =
            tokio::task::spawn_blocking(move || open_holder(&root, &program, Duration::from_secs(1)));
        assert!(opened.await.unwrap().is_err());
        stage.ended().await;
    }

    #[test]
    fn a_note_is_what_the_next_keeper_reads() {
        let note = PodNote::new(model(), &pod(), Digest::of(b"one"), Some("7".to_owned()));
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(serde_json::from_str::<PodNote>(&text).unwrap(), note);
    }
}
