//! Notices of workloads, as a keeper tells a runner of them.

use periapt_host_api::{event::Event, notice::WorkloadNotice};
use periapt_uniter::{NoticeTold, NoticesTold, WorkloadsTold};

use super::stage::{CommitDelivery, RunnerAction, Stage, charm_with, is_idle};
use crate::protocol::ToRunner;

fn listens(version: u64, boot_id: &str) -> ToRunner {
    let boots = [("web".parse().unwrap(), boot_id.to_owned())].into();
    ToRunner::Workloads(WorkloadsTold { version, boots: [("app/0".parse().unwrap(), boots)].into() })
}

fn notices(boot_id: &str, numbers: &[u64]) -> ToRunner {
    let told = |number: &u64| NoticeTold {
        unit: "app/0".parse().unwrap(),
        container: "web".parse().unwrap(),
        boot_id: boot_id.to_owned(),
        number: *number,
        arrival: *number,
        notice: WorkloadNotice::Custom { id: *number, key: format!("a.b/{number}") },
    };
    let notices: Vec<_> = numbers.iter().map(told).collect();
    ToRunner::Notices(NoticesTold { last: notices.last().unwrap().arrival, notices })
}

/// Returns the numbers of the notices in hooks that were sent to the controller, each commit once.
fn told(did: &[RunnerAction]) -> Vec<u64> {
    let mut told: Vec<_> = did
        .iter()
        .filter_map(|did| match did {
            RunnerAction::Committed(commit) => Some((commit.seq, commit.journal.as_ref()?)),
            _ => None,
        })
        .filter_map(|(seq, journal)| match &journal.event {
            Event::PebbleCustomNotice { workload, .. } => Some((seq, workload.number)),
            _ => None,
        })
        .collect();
    told.dedup();
    told.into_iter().map(|(_, number)| number).collect()
}

#[tokio::test]
async fn a_notice_is_told_once_whichever_runner_hears_of_it() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    stage.change(|lab| lab.refresh("app", &charm_with("containers: {web: {}}"))).await;
    stage.send(listens(1, "1")).await;
    stage.send(notices("1", &[1, 2])).await;
    stage.until(|did| told(did).len() == 2 && is_idle(did, "app/0")).await;
    assert_eq!(told(&stage.did), [1, 2]);
    // The answer to a commit is lost, and it is sent again.
    stage.deliveries = [CommitDelivery::Take, CommitDelivery::Lose].into();
    stage.send(notices("1", &[3])).await;
    stage.until(|did| told(did).len() == 3 && is_idle(did, "app/0")).await;
    assert_eq!(told(&stage.did), [1, 2, 3]);

    // The next runner is told of all that the keeper still has, and its units know what was told.
    let mut stage = stage.again().await;
    stage.send(listens(1, "1")).await;
    stage.send(notices("1", &[2, 3, 4])).await;
    stage.until(|did| !told(did).is_empty() && is_idle(did, "app/0")).await;
    assert_eq!(told(&stage.did), [4]);
    // Notices of a start that has ended concern nobody; those of the next one follow its pebble-ready.
    stage.send(listens(2, "2")).await;
    stage.send(notices("1", &[5])).await;
    stage.send(notices("2", &[6])).await;
    stage.until(|did| told(did).len() == 2 && is_idle(did, "app/0")).await;
    assert_eq!(told(&stage.did), [4, 6]);
}
