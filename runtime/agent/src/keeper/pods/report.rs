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

/// The time between the calls of many states: those of 5,000 units take 16 seconds, and others of the agent come between.
const BETWEEN: Duration = Duration::from_millis(100);

/// Tells the controller the states of a model's workloads as they change, for ever.
pub(crate) async fn report<C: Controller>(
    controller: C,
    model: ModelUuid,
    mut incarnation: watch::Receiver<Option<Incarnation>>,
    states: Arc<WorkloadStates>,
) {
    let mut backoff = Backoff::network();
    let (mut again, mut pause) = (None, GATHERED);
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
        sleep(pause).await;
        // Without a runner of this keeper, nobody has the right to tell.
        let Ok(Some(incarnation)) = incarnation.wait_for(Option::is_some).await.map(|found| *found) else {
            return;
        };
        let now = Instant::now();
        let due = states.take_due(now);
        again = due.again;
        pause = if again == Some(now) { BETWEEN } else { GATHERED };
        if due.units.is_empty() {
            continue;
        }
        match tell(&controller, model, incarnation, &states, due).await {
            Told::All => backoff.succeeded(),
            Told::NotAll => (again, pause) = (Some(Instant::now() + backoff.failed()), GATHERED),
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::keeper::tests::fake::{FakeController, obliging};

    #[tokio::test(start_paused = true)]
    async fn the_first_states_of_many_units_are_told_in_parts_within_seconds() {
        let states = Arc::new(WorkloadStates::default());
        for number in 0..5_000 {
            let unit = UnitName::new("app".parse().unwrap(), number);
            states.start(&(unit, "web".parse().unwrap()), None, None);
        }
        let controller = FakeController::without_models();
        let parts = Arc::new(Mutex::new(Vec::new()));
        let (told, began) = (Arc::clone(&parts), Instant::now());
        controller.answers(Arc::new(move |commands| {
            told.lock().push((began.elapsed(), commands.len()));
            obliging(commands)
        }));
        let model = "11111111-2222-4333-8444-555555555555".parse().unwrap();
        let incarnation = watch::Sender::new(Some(Incarnation(7)));
        let telling = report(controller, model, incarnation.subscribe(), Arc::clone(&states));
        tokio::select! {
            () = telling => panic!("it tells for ever"),
            () = sleep(Duration::from_secs(60)) => {}
        }
        let parts = parts.lock();
        assert_eq!(parts.iter().map(|(_, units)| units).sum::<usize>(), 5_000);
        assert!(parts.iter().all(|(_, units)| *units <= 32), "{parts:?}");
        let (last, _) = parts.last().unwrap();
        assert!(*last <= Duration::from_secs(20), "{last:?}");
    }
}
