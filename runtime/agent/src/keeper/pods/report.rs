//! The reports of workloads' states to the controller (decision 93).

use std::{sync::Arc, time::Duration};

use periapt_client::Backoff;
use periapt_host_api::{
    ErrorCode, Incarnation, ModelUuid, UnitName, agent::RunnerCommand, command::CommandResult,
    container::WorkloadsReport,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::states::{DueStates, WorkloadStates};
use crate::keeper::controller::{Controller, ControllerError};

/// The time in which changes of all units become one call: a container that starts changes several times.
const GATHERED: Duration = Duration::from_secs(1);

/// Tells the controller the states of a model's workloads as they change, for ever.
pub(crate) async fn report<C: Controller>(
    controller: C,
    model: ModelUuid,
    mut incarnation: watch::Receiver<Option<Incarnation>>,
    states: Arc<WorkloadStates>,
) {
    let mut backoff = Backoff::network();
    let mut again = None;
    loop {
        let later = async {
            match again {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = states.changed() => {}
            () = later => {}
        }
        sleep(GATHERED).await;
        // Without a runner of this keeper, nobody has the right to tell.
        let Ok(Some(incarnation)) = incarnation.wait_for(Option::is_some).await.map(|found| *found) else {
            return;
        };
        let due = states.take_due(Instant::now());
        again = due.again;
        if due.units.is_empty() {
            continue;
        }
        match tell(&controller, model, incarnation, &states, due).await {
            Told::All => backoff.succeeded(),
            Told::NotAll => again = Some(Instant::now() + backoff.failed()),
        }
    }
}

/// The completeness of a call.
enum Told {
    All,
    NotAll,
}

async fn tell<C: Controller>(
    controller: &C,
    model: ModelUuid,
    incarnation: Incarnation,
    states: &WorkloadStates,
    due: DueStates,
) -> Told {
    let command = |(unit, report): &(UnitName, WorkloadsReport)| {
        let (unit, report) = (unit.clone(), Box::new(report.clone()));
        RunnerCommand::Workloads { unit, incarnation, report }
    };
    let commands: Vec<_> = due.units.iter().map(command).collect();
    let answered = controller.commands(model, commands.into()).await;
    let mut results = match answered {
        Ok(answered) => answered.results,
        Err(ControllerError::Refused(refusal)) => vec![CommandResult::Error(refusal); due.units.len()],
        Err(ControllerError::Away(_) | ControllerError::Unusable(_)) => Vec::new(),
    }
    .into_iter();
    let mut told = Told::All;
    for (unit, report) in due.units {
        let is_told = match results.next() {
            Some(CommandResult::Ok(_)) => true,
            // A unit that is gone stays so. All else may change: another runner may have begun, or each controller's
            // program may have been upgraded.
            Some(CommandResult::Error(refusal)) => {
                tracing::debug!(%unit, %refusal, "the state of a unit's workloads was refused");
                refusal.code == ErrorCode::PermissionDenied
            }
            None => false,
        };
        if is_told {
            states.told(&unit, report);
        } else {
            states.not_told(&unit);
            told = Told::NotAll;
        }
    }
    told
}
