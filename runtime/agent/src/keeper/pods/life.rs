//! The life of one pod: starts, restarts with pauses, and the end.

use std::{sync::Arc, time::Duration};

use periapt_client::Backoff;
use periapt_host_api::ModelUuid;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    ListeningPods, ModelTraffic, PodDial, PodId, PodReasons, StreamRequest, WorkloadStates,
    held::HeldPod,
    limits::SetLimits,
    memory::PromisedMemory,
    process::{PodEvent, PodProcess, opened},
    room::StorageRoom,
    setup::{HeldImage, SetupFailure, mounts},
    starter::{PodSoftware, PodStarter},
    usage,
};

/// The shortest and the longest pause before a pod that ended is started again, as for containers in Kubernetes.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// A pod that listened for so long has started successfully.
const LIVED: Duration = Duration::from_secs(60);

/// The time in which a pod listens: longer than a container may take to be set up.
const READY_WITHIN: Duration = Duration::from_secs(45);

/// The state of all pods of a model that the life of each one changes.
#[derive(Debug, Clone)]
pub(super) struct PodBoard {
    /// The model.
    pub(super) model: ModelUuid,
    /// The pods that listen.
    pub(super) listening: Arc<watch::Sender<ListeningPods>>,
    /// The reasons why others do not run.
    pub(super) reasons: Arc<PodReasons>,
    /// The states of all, for the controller.
    pub(super) states: Arc<WorkloadStates>,
    /// The traffic of units.
    pub(super) traffic: ModelTraffic,
    /// The calls of workloads.
    pub(super) dials: mpsc::Sender<PodDial>,
}

/// Keeps a pod running until `ends`, and takes over the one of an earlier keeper. Then its process has ended, or is left to
/// the next keeper.
pub(super) async fn keep(
    starter: &PodStarter,
    (pod, software): (&PodId, &PodSoftware),
    mut limits: watch::Receiver<SetLimits>,
    (mut image, mut held): (HeldImage, Option<HeldPod>),
    mut requests: mpsc::Receiver<StreamRequest>,
    board: &PodBoard,
    ends: &CancellationToken,
) {
    let PodBoard { listening, .. } = board;
    let room = StorageRoom::of(software, starter.counter().clone());
    let mut pauses = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let born = Instant::now();
        let files = (&mut image, &mut held);
        let started = tokio::select! {
            () = ends.cancelled() => Err(SetupFailure::Temporary("it is not wanted".to_owned())),
            started = started((starter, board), (pod, software), &mut limits, &room, files, &mut requests) => started,
        };
        // Whatever keeps the next one from starting keeps nobody from ending this one.
        if let Some(mut earlier) = held.take() {
            earlier.end().await;
        }
        let (why, is_final) = match started {
            Ok(started) => {
                match serve(started, (pod, software, &room), &mut limits, &mut requests, board, ends).await {
                    Some(why) => (why, false),
                    None => return,
                }
            }
            Err(SetupFailure::Temporary(error)) => (format!("it could not be started: {error}"), false),
            Err(SetupFailure::Final(why)) => (why, true),
        };
        if ends.is_cancelled() {
            return;
        }
        listening.send_if_modified(|listening| listening.ended(pod));
        if born.elapsed() >= LIVED {
            pauses.succeeded();
        }
        let pause = pauses.failed();
        let (unit, container) = pod;
        if is_final {
            tracing::warn!(%unit, %container, why, "a pod cannot be started");
        } else {
            tracing::warn!(%unit, %container, why, ?pause, "a pod ended, and is started again");
        }
        board.note(pod, Some(&why));
        board.states.down(pod, &why);
        let rest = async {
            match is_final {
                // Other needs are another pod.
                true => std::future::pending().await,
                false => sleep(pause).await,
            }
        };
        tokio::pin!(rest);
        loop {
            tokio::select! {
                () = ends.cancelled() => return,
                () = &mut rest => break,
                // A hook that asks meanwhile is told at once why nobody listens.
                Some(request) = requests.recv() => {
                    refuse(request, &format_args!("the container does not run: {why}"));
                }
            }
        }
    }
}

impl PodBoard {
    /// Notes why a pod does not run; none while it does.
    pub(super) fn note(&self, pod: &PodId, reason: Option<&str>) {
        self.reasons.note(pod, reason);
    }
}

/// The process of a pod that was started, with the memory that it may have.
struct StartedPod {
    process: PodProcess,
    memory: PromisedMemory,
}

/// Serves one process of the pod until it ends. Returns the reason; none if it was to end.
async fn serve(
    StartedPod { mut process, mut memory }: StartedPod,
    (pod, software, room): (&PodId, &PodSoftware, &StorageRoom),
    limits: &mut watch::Receiver<SetLimits>,
    requests: &mut mpsc::Receiver<StreamRequest>,
    board: &PodBoard,
    ends: &CancellationToken,
) -> Option<String> {
    let PodBoard { listening, states, traffic, dials, .. } = board;
    let origin = process.origin();
    let ready = tokio::select! {
        () = ends.cancelled() => {
            process.end().await;
            return None;
        }
        ready = timeout(READY_WITHIN, process.report()) => ready,
    };
    match ready {
        Ok(Ok(Some(PodEvent::Ready { boot_id, .. }))) => {
            tracing::info!(unit = %pod.0, container = %pod.1, boot_id, "a pod listens");
            states.runs(pod, &boot_id);
            listening.send_modify(|listening| listening.listens(pod, boot_id));
            board.note(pod, None);
        }
        Ok(Ok(Some(PodEvent::Failed(reason)))) => {
            process.gone().await;
            return Some(reason);
        }
        Ok(Ok(Some(_))) => {
            process.kill().await;
            return Some("it speaks before it listens".to_owned());
        }
        Ok(Ok(None)) => return Some(process.gone().await),
        Ok(Err(error)) => {
            process.kill().await;
            return Some(format!("its reports are unreadable: {error}"));
        }
        Err(_) => {
            process.kill().await;
            return Some("it did not listen in time".to_owned());
        }
    }
    let id = process.id();
    let mut exceeded = std::pin::pin!(room.exceeded(id));
    let mut sampled = std::pin::pin!(async {
        if let Some(id) = id {
            usage::sample(pod, (id, origin), room, (states.as_ref(), traffic)).await;
        }
        std::future::pending::<()>().await;
    });
    loop {
        tokio::select! {
            () = ends.cancelled() => {
                process.end().await;
                return None;
            }
            reason = exceeded.as_mut() => {
                process.end().await;
                return Some(reason);
            }
            () = sampled.as_mut() => {}
            Ok(()) = limits.changed() => {
                let limits = *limits.borrow_and_update();
                let changed = match (memory.change(limits.memory), process.id()) {
                    (Ok(()), Some(id)) => limits.bind(software, id).await,
                    (changed, _) => changed,
                };
                if let Err(reason) = changed {
                    process.end().await;
                    return Some(format!("its limits cannot be changed while it runs: {reason}"));
                }
            }
            report = process.report() => match report {
                Ok(Some(PodEvent::Ready { .. } | PodEvent::Failed(_))) => {}
                // Without a place in the queue, the stream ends here, which refuses the call.
                Ok(Some(PodEvent::Dial(order, stream))) => {
                    let _ = dials.try_send(PodDial { unit: pod.0.clone(), order, stream });
                }
                Ok(Some(PodEvent::ServiceEnded { service, reason })) => {
                    let (unit, container) = pod;
                    tracing::warn!(%unit, %container, service, reason, "a service of a workload ended");
                }
                Ok(Some(PodEvent::State(state))) => states.pod(pod, state),
                Ok(Some(PodEvent::Notice(number, notice))) if notice.is_within_bounds() => {
                    listening.send_modify(|listening| {
                        if let Some(dropped) = listening.add_notice(pod, number, notice) {
                            let (unit, container) = pod;
                            tracing::warn!(%unit, %container, ?dropped, "a notice of a workload is not told: too many wait");
                        }
                    });
                }
                Ok(Some(PodEvent::Notice(..))) => {
                    process.kill().await;
                    return Some("it reported a notice that is too long".to_owned());
                }
                Ok(None) => return Some(process.gone().await),
                Err(error) => {
                    process.kill().await;
                    return Some(format!("its reports are unreadable: {error}"));
                }
            },
            // A caller that has left is not asked for.
            Some(request) = requests.recv() => if !request.answer.is_closed() { match process.send(request.target).await {
                Ok(stream) => {
                    tokio::spawn(async move {
                        // The caller may have stopped waiting.
                        let _ = request.answer.send(opened(stream).await);
                    });
                }
                Err(error) => refuse(request, &error),
            } },
        }
    }
}

/// Fetches what the pod needs, and starts it. A hook that asks meanwhile is told at once that nobody listens.
async fn started(
    (starter, board): (&PodStarter, &PodBoard),
    (pod, software): (&PodId, &PodSoftware),
    limits: &mut watch::Receiver<SetLimits>,
    room: &StorageRoom,
    (image, held): (&mut HeldImage, &mut Option<HeldPod>),
    requests: &mut mpsc::Receiver<StreamRequest>,
) -> Result<StartedPod, SetupFailure> {
    let takes_over = held.is_some();
    let start = async {
        let mut more = match software {
            PodSoftware::Image(needs) => {
                image.set_up(pod, needs, &starter.unit_network(board.model, &pod.0)).await?
            }
            PodSoftware::Workload { mounts: storage, .. } => {
                mounts(storage.as_ref().map_err(|reason| SetupFailure::Final(reason.clone()))?)
            }
            PodSoftware::Container => Vec::new(),
        };
        if let Some(reason) = room.exceeded_now().await {
            return Err(SetupFailure::Temporary(reason));
        }
        let limits = *limits.borrow_and_update();
        let memory = starter.memory().promise(limits.memory).map_err(SetupFailure::Temporary)?;
        more.extend(limits.arguments(software));
        let started = starter.start((board.model, pod), software, &more, held).await;
        started.map(|process| StartedPod { process, memory }).map_err(SetupFailure::Temporary)
    };
    let mut start = std::pin::pin!(start);
    loop {
        tokio::select! {
            started = start.as_mut() => return started,
            // Who asks for a pod that an earlier keeper has started waits until it is taken over.
            Some(request) = requests.recv(), if !takes_over => refuse(request, &"the container has not started yet"),
        }
    }
}

fn refuse(request: StreamRequest, reason: &dyn std::fmt::Display) {
    let _ = request.answer.send(Err(format!("nobody listens: {reason}")));
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::PathBuf};

    use periapt_host_api::pod::PodStream;
    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        keeper::pods::{HostMemory, process::PodProgram, starter::tests::NoFiles},
        options::{ContainerDriver, PodDrivers},
    };

    /// A pod whose program is a shell with this script, and whose requests come from the test.
    struct Kept {
        listening: Arc<watch::Sender<ListeningPods>>,
        requests: mpsc::Sender<StreamRequest>,
        ends: CancellationToken,
        task: tokio::task::JoinHandle<()>,
        _locks: tempfile::TempDir,
    }

    fn keep_shell(script: &str) -> Kept {
        let arguments = ["-c", script].map(OsString::from).to_vec();
        let path = PathBuf::from("/bin/sh");
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let program = PodProgram { path, arguments, environment };
        let drivers = PodDrivers { containers: Some(ContainerDriver::Plain), workloads: None };
        let (memory, locks) = (HostMemory::new(None), tempfile::tempdir().unwrap());
        let starter = PodStarter::new(
            program,
            drivers,
            Arc::new(NoFiles),
            memory,
            ("/nonexistent".into(), locks.path().to_owned()),
        );
        let (requests, asked) = mpsc::channel(4);
        let (listening, ends): (Arc<watch::Sender<ListeningPods>>, _) =
            (Arc::default(), CancellationToken::new());
        let stop = ends.clone();
        let (dials, _) = mpsc::channel(1);
        let board = PodBoard {
            model: ModelUuid(uuid::Uuid::from_u128(1)),
            listening: Arc::clone(&listening),
            reasons: Arc::default(),
            states: Arc::default(),
            traffic: ModelTraffic::default(),
            dials,
        };
        let (_limits, limited) = watch::channel(SetLimits::of(&Default::default()));
        let pod: PodId = ("app/0".parse().unwrap(), "web".parse().unwrap());
        let task = tokio::spawn(async move {
            let software = PodSoftware::Container;
            keep(&starter, (&pod, &software), limited, (HeldImage::none(), None), asked, &board, &stop).await
        });
        Kept { listening, requests, ends, task, _locks: locks }
    }

    const READY: &str = r#"echo "{\"ready\":{\"boot-id\":\"$$\"}}" >&0; "#;

    #[tokio::test]
    async fn a_pod_that_ends_is_started_again_and_each_start_is_told() {
        let kept = keep_shell(&format!("{READY} exit 3"));
        let mut listening = kept.listening.subscribe();
        let third =
            timeout(Duration::from_secs(30), listening.wait_for(|listening| listening.told().version >= 3))
                .await;
        third.unwrap().unwrap();
        kept.ends.cancel();
        timeout(Duration::from_secs(60), kept.task).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_pod_ends_with_its_socket_and_until_it_listens_nobody_does() {
        let kept = keep_shell(&format!("{READY} cat <&0 >/dev/null"));
        let mut listening = kept.listening.subscribe();
        listening.wait_for(|listening| listening.told().version == 1).await.unwrap();
        let (answer, answered) = oneshot::channel();
        kept.requests.send(StreamRequest { target: PodStream::Pebble, answer }).await.unwrap();
        // This program takes the stream, and ends it without a word.
        assert!(answered.await.unwrap().unwrap_err().contains("nobody listens"));
        kept.ends.cancel();
        timeout(Duration::from_secs(60), kept.task).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_pod_whose_call_comes_without_a_stream_is_killed() {
        let dial = r#"echo "{\"dial\":{\"host\":\"db\",\"port\":80}}" >&0; "#;
        let kept = keep_shell(&format!("{READY} {dial} cat <&0 >/dev/null"));
        let mut listening = kept.listening.subscribe();
        let second =
            timeout(Duration::from_secs(30), listening.wait_for(|listening| listening.told().version >= 2))
                .await;
        second.unwrap().unwrap();
        kept.ends.cancel();
        timeout(Duration::from_secs(60), kept.task).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_notices_of_a_pod_wait_and_one_that_is_too_long_ends_it() {
        let notice = |number: u64, check: &str| {
            format!(
                r#"echo "{{\"notice\":{{\"number\":{number},\"notice\":{{\"check-failed\":{{\"check\":\"{check}\"}}}}}}}}" >&0; "#
            )
        };
        let script = format!("{READY}{}{}cat <&0 >/dev/null", notice(1, "up"), notice(2, &"x".repeat(300)));
        let kept = keep_shell(&script);
        let mut listening = kept.listening.subscribe();
        let known = periapt_uniter::WorkloadsKnown::default();
        let told = {
            let pods = listening.wait_for(|pods| pods.next_notices(known).is_some()).await.unwrap();
            pods.next_notices(known).unwrap()
        };
        assert_eq!(told.notices.iter().map(|it| it.number).collect::<Vec<_>>(), [1]);
        // The pod is killed, and what waited goes with it.
        timeout(Duration::from_secs(30), listening.wait_for(|pods| pods.are_quiet())).await.unwrap().unwrap();
        kept.ends.cancel();
        timeout(Duration::from_secs(60), kept.task).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_pod_that_says_something_else_is_killed() {
        let kept = keep_shell("while :; do echo nonsense >&0 || exit; sleep 0.1; done");
        let is_told = async {
            loop {
                let (answer, answered) = oneshot::channel();
                kept.requests.send(StreamRequest { target: PodStream::Port(80), answer }).await.unwrap();
                let reason = answered.await.unwrap().unwrap_err();
                if reason.contains("the container does not run: its reports are unreadable") {
                    return;
                }
                // While it starts, and while it starts again.
                assert!(reason.contains("the container has not started yet"), "{reason}");
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(30), is_told).await.unwrap();
        kept.ends.cancel();
        timeout(Duration::from_secs(60), kept.task).await.unwrap().unwrap();
        assert_eq!(kept.listening.borrow().told().version, 0);
    }
}
