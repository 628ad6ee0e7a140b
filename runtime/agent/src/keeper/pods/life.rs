//! The life of one pod: starts, restarts with pauses, and the end.

use std::time::Duration;

use periapt_client::Backoff;
use periapt_host_api::pod::PodReport;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    PodBoots, PodId, StreamRequest,
    process::{PodProcess, PodProgram, opened},
};

/// The shortest and the longest pause before a pod that ended is started again, as for containers in Kubernetes.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// A pod that listened for so long has started successfully.
const LIVED: Duration = Duration::from_secs(60);

/// The time in which a pod listens.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Keeps a pod running until `ends`. Then its process has ended.
pub(super) async fn keep(
    program: &PodProgram,
    pod: &PodId,
    mut requests: mpsc::Receiver<StreamRequest>,
    boots: &watch::Sender<PodBoots>,
    ends: &CancellationToken,
) {
    let mut pauses = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let born = Instant::now();
        let why = match program.start() {
            Ok(process) => match serve(process, pod, &mut requests, boots, ends).await {
                Some(why) => why,
                None => return,
            },
            Err(error) => format!("it could not be started: {error}"),
        };
        boots.send_if_modified(|boots| boots.remove(pod).is_some());
        if born.elapsed() >= LIVED {
            pauses.succeeded();
        }
        let pause = pauses.failed();
        let (unit, container) = pod;
        tracing::warn!(%unit, %container, why, ?pause, "a pod ended, and is started again");
        let rest = sleep(pause);
        tokio::pin!(rest);
        loop {
            tokio::select! {
                () = ends.cancelled() => return,
                () = &mut rest => break,
                // Whoever asks meanwhile is told at once that nobody listens.
                Some(request) = requests.recv() => refuse(request, &"the container is being restarted"),
            }
        }
    }
}

/// Serves one process of the pod until it ends. Returns the reason; none if it was to end.
async fn serve(
    mut process: PodProcess,
    pod: &PodId,
    requests: &mut mpsc::Receiver<StreamRequest>,
    boots: &watch::Sender<PodBoots>,
    ends: &CancellationToken,
) -> Option<String> {
    let ready = tokio::select! {
        () = ends.cancelled() => {
            process.end().await;
            return None;
        }
        ready = timeout(READY_WITHIN, process.report()) => ready,
    };
    match ready {
        Ok(Ok(Some(PodReport::Ready { boot_id }))) => {
            tracing::info!(unit = %pod.0, container = %pod.1, boot_id, "a pod listens");
            boots.send_modify(|boots| drop(boots.insert(pod.clone(), boot_id)));
        }
        Ok(Ok(None)) => return Some(process.gone().await),
        Ok(Err(error)) => return Some(format!("its reports are unreadable: {error}")),
        Err(_) => return Some("it did not listen in time".to_owned()),
    }
    loop {
        tokio::select! {
            () = ends.cancelled() => {
                process.end().await;
                return None;
            }
            report = process.report() => match report {
                Ok(Some(PodReport::Ready { .. })) => {}
                Ok(None) => return Some(process.gone().await),
                Err(error) => return Some(format!("its reports are unreadable: {error}")),
            },
            Some(request) = requests.recv() => match process.send(request.target).await {
                Ok(stream) => {
                    tokio::spawn(async move {
                        // The caller may have stopped waiting.
                        let _ = request.answer.send(opened(stream).await);
                    });
                }
                Err(error) => refuse(request, &error),
            },
        }
    }
}

fn refuse(request: StreamRequest, reason: &dyn std::fmt::Display) {
    let _ = request.answer.send(Err(format!("nobody listens: {reason}")));
}
