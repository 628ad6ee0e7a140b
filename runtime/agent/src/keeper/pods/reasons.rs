//! The reasons why pods do not run, for the logs of their units.

use std::collections::BTreeMap;

use periapt_client::Backoff;
use periapt_host_api::{Incarnation, ModelUuid, agent::RunnerCommand};
use tokio::{sync::watch, time::sleep};

use super::PodId;
use crate::keeper::controller::{Controller, ControllerError};

/// The pods that do not run, each with the last reason.
pub(crate) type PodReasons = BTreeMap<PodId, String>;

/// Tells the controller of each new reason, for ever. A reason that a pod has again and again is told once, until the pod
/// has run.
pub(crate) async fn tell<C: Controller>(
    controller: C,
    model: ModelUuid,
    mut incarnation: watch::Receiver<Option<Incarnation>>,
    mut reasons: watch::Receiver<PodReasons>,
) {
    let mut told = PodReasons::new();
    let mut backoff = Backoff::network();
    loop {
        let now = reasons.borrow_and_update().clone();
        told.retain(|pod, _| now.contains_key(pod));
        let mut all_told = true;
        for (pod, reason) in now {
            if told.get(&pod) == Some(&reason) {
                continue;
            }
            // Without a runner of this keeper, nobody has the right to tell.
            let Ok(Some(incarnation)) = incarnation.wait_for(Option::is_some).await.map(|found| *found)
            else {
                return;
            };
            let (unit, container) = pod.clone();
            let command = RunnerCommand::Container { unit, container, incarnation, reason: reason.clone() };
            match controller.commands(model, vec![command].into()).await {
                // A refused one would be refused again.
                Ok(_) | Err(ControllerError::Refused(_)) => {
                    backoff.succeeded();
                    told.insert(pod, reason);
                }
                Err(ControllerError::Away(_) | ControllerError::Unusable(_)) => all_told = false,
            }
        }
        if all_told {
            if reasons.changed().await.is_err() {
                return;
            }
        } else {
            sleep(backoff.failed()).await;
        }
    }
}
