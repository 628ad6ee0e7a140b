//! The reasons why pods do not run, for the logs of their units.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_client::Backoff;
use periapt_host_api::{Incarnation, ModelUuid, agent::RunnerCommand};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

use super::PodId;
use crate::keeper::controller::{Controller, ControllerError};

/// The most reasons of one call.
const CALL_REASONS: usize = 32;

/// The pods that do not run, each with the last reason.
#[derive(Debug, Default)]
pub(crate) struct PodReasons {
    reasons: Mutex<Reasons>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Reasons {
    now: BTreeMap<PodId, String>,
    /// The pods that have changed since the last look.
    changed: BTreeSet<PodId>,
}

impl PodReasons {
    /// Notes why a pod does not run; none while it does.
    pub(super) fn note(&self, pod: &PodId, reason: Option<&str>) {
        let mut reasons = self.reasons.lock();
        if reasons.now.get(pod).map(String::as_str) == reason {
            return;
        }
        match reason {
            Some(reason) => reasons.now.insert(pod.clone(), reason.to_owned()),
            None => reasons.now.remove(pod),
        };
        reasons.changed.insert(pod.clone());
        drop(reasons);
        self.changed.notify_one();
    }

    /// Takes the pods that have changed since the last call, with their reasons.
    fn take_changed(&self) -> Vec<(PodId, Option<String>)> {
        let mut reasons = self.reasons.lock();
        let Reasons { now, changed } = &mut *reasons;
        let changed = std::mem::take(changed).into_iter();
        let with_reason = changed.map(|pod| {
            let reason = now.get(&pod).cloned();
            (pod, reason)
        });
        with_reason.collect()
    }

    /// Records that the controller was not told of some pods, which are looked at again.
    fn not_told(&self, pods: &[(PodId, String)]) {
        self.reasons.lock().changed.extend(pods.iter().map(|(pod, _)| pod.clone()));
    }
}

/// Tells the controller of each new reason, for ever. A reason that a pod has again and again is told once, until the pod
/// has run. What one pod costs does not depend on the number of others.
pub(crate) async fn tell<C: Controller>(
    controller: C,
    model: ModelUuid,
    mut incarnation: watch::Receiver<Option<Incarnation>>,
    reasons: Arc<PodReasons>,
) {
    let mut told: BTreeMap<PodId, String> = BTreeMap::new();
    let mut backoff = Backoff::network();
    loop {
        let mut news = Vec::new();
        for (pod, reason) in reasons.take_changed() {
            match reason {
                None => {
                    told.remove(&pod);
                }
                Some(reason) if told.get(&pod) == Some(&reason) => {}
                Some(reason) => news.push((pod, reason)),
            }
        }
        let mut all_told = true;
        for part in news.chunks(CALL_REASONS) {
            // Without a runner of this keeper, nobody has the right to tell.
            let Ok(Some(incarnation)) = incarnation.wait_for(Option::is_some).await.map(|found| *found)
            else {
                return;
            };
            let command = |((unit, container), reason): &(PodId, String)| {
                let (unit, container, reason) = (unit.clone(), container.clone(), reason.clone());
                RunnerCommand::Container { unit, container, incarnation, reason }
            };
            let commands: Vec<_> = part.iter().map(command).collect();
            let answered = match controller.commands(model, commands.into()).await {
                // A refused one would be refused again.
                Ok(answered) => answered.results.len(),
                Err(ControllerError::Refused(refusal)) if !refusal.code.is_temporary() => part.len(),
                Err(
                    ControllerError::Refused(_) | ControllerError::Away(_) | ControllerError::Unusable(_),
                ) => 0,
            };
            let (answered, unanswered) = part.split_at(answered.min(part.len()));
            told.extend(answered.iter().cloned());
            if unanswered.is_empty() {
                backoff.succeeded();
            } else {
                reasons.not_told(unanswered);
                all_told = false;
            }
        }
        if all_told {
            reasons.changed.notified().await;
        } else {
            sleep(backoff.failed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keeper::tests::fake::{FakeController, obliging};

    fn pod(number: u32) -> PodId {
        (format!("app/{number}").parse().unwrap(), "web".parse().unwrap())
    }

    /// Returns the pods and reasons of the calls that are made within a minute.
    async fn calls(telling: &mut (impl Future<Output = ()> + Unpin), made: &Made) -> Vec<Vec<String>> {
        tokio::select! {
            () = telling => panic!("it tells for ever"),
            () = sleep(Duration::from_secs(60)) => {}
        }
        std::mem::take(&mut *made.lock())
    }

    type Made = Arc<Mutex<Vec<Vec<String>>>>;

    fn shown(command: &RunnerCommand) -> String {
        match command {
            RunnerCommand::Container { unit, reason, .. } => format!("{unit}: {reason}"),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_new_reason_is_told_once_in_calls_of_bounded_size() {
        let (reasons, made) = (Arc::<PodReasons>::default(), Made::default());
        let (controller, asked) = (FakeController::without_models(), Arc::clone(&made));
        let answer = move |commands: &[RunnerCommand]| {
            let mut asked = asked.lock();
            asked.push(commands.iter().map(shown).collect::<Vec<_>>());
            match asked.len() {
                1 => Err(ControllerError::Away("it starts again".to_owned())),
                _ => obliging(commands),
            }
        };
        controller.answers(Arc::new(answer));
        let incarnation = watch::Sender::new(Some(Incarnation(7)));
        let model = "11111111-2222-4333-8444-555555555555".parse().unwrap();
        let telling = tell(controller, model, incarnation.subscribe(), Arc::clone(&reasons));
        let mut telling = std::pin::pin!(telling);
        for number in 0..100 {
            reasons.note(&pod(number), Some("no image"));
        }
        let first = calls(&mut telling, &made).await;
        let sizes: Vec<_> = first.iter().map(Vec::len).collect();
        assert_eq!(sizes, [32, 32, 32, 4, 32], "the first part was not told, and comes again");
        assert_eq!(first.first(), first.last());
        // From now on no call is the first.
        made.lock().push(Vec::new());
        reasons.note(&pod(70), Some("another image"));
        reasons.note(&pod(71), None);
        reasons.note(&pod(72), Some("for a moment"));
        reasons.note(&pod(72), Some("no image"));
        assert_eq!(reasons.reasons.lock().changed.len(), 3, "and no look at others");
        let next = calls(&mut telling, &made).await;
        assert_eq!(next, [vec![], vec!["app/70: another image".to_owned()]]);
        made.lock().push(Vec::new());
        reasons.note(&pod(71), Some("no image"));
        let next = calls(&mut telling, &made).await;
        assert_eq!(next, [vec![], vec!["app/71: no image".to_owned()]], "it has run since");
    }
}
