//! Hooks that may have killed a runner.

use std::time::Duration;

use periapt_host_api::{CharmDigest, MachineId, OperationId, journal::HookOutcome};

use super::stage::{Did, Stage, Verdict, hooks, is_idle};
use crate::protocol::Suspect;

/// The operation of a new unit's first hook: its deployment is the one commit before it.
const INSTALL: u64 = 1;

fn suspect(unit: &str, deaths: u32) -> Suspect {
    Suspect { unit: unit.parse().unwrap(), operation: OperationId(INSTALL), deaths }
}

/// A runner of two units, of which the first is about to install.
async fn stage(deaths: u32) -> Stage {
    let suspects = vec![suspect("app/0", deaths)];
    let mut rehearsal = Stage::new(&["app/0"]).await;
    rehearsal.until(|did| matches!(did.last(), Some(Did::Started(..)))).await;
    let installing = rehearsal.view.units.iter().next().unwrap().1.record.clone();
    assert_eq!(installing.seq, INSTALL);
    let mut stage = Stage::with_suspects(&["app/0", "app/1"], suspects, 60_000).await;
    stage.meddle("app/0", |record| *record = installing);
    stage
}

#[tokio::test]
async fn a_suspect_runs_before_anything_else() {
    let mut stage = stage(2).await;
    stage.until(|did| is_idle(did, "app/0") && is_idle(did, "app/1")).await;
    let first =
        stage.did.iter().position(|did| matches!(did, Did::Ended(unit, INSTALL) if unit.number() == 0));
    let others = stage.did.iter().position(|did| match did {
        Did::Started(unit, _) | Did::Early(unit, _) => unit.number() == 1,
        Did::Committed(commit) => commit.unit.number() == 1,
        _ => false,
    });
    assert!(first.unwrap() < others.unwrap(), "{:?}", stage.did);
}

#[tokio::test]
async fn a_hook_that_killed_three_runners_fails_without_being_run() {
    let mut stage = stage(3).await;
    stage.until(|did| is_idle(did, "app/1")).await;
    let commits = stage.commits();
    let (name, outcome) = hooks(&commits).into_iter().next().unwrap();
    assert_eq!(name, "install");
    assert_eq!(outcome, HookOutcome::Failed { message: "the sandbox crashed".to_owned() });
    let ran = stage.did.iter().any(|did| matches!(did, Did::Started(unit, INSTALL) if unit.number() == 0));
    assert!(!ran, "{:?}", stage.did);
    assert!(stage.did.contains(&Did::Ended("app/0".parse().unwrap(), INSTALL)));
}

#[tokio::test]
async fn a_suspect_that_is_not_due_any_more_is_cleared() {
    let mut late = suspect("app/0", 3);
    late.operation = OperationId(77);
    let mut stage = Stage::with_suspects(&["app/0"], vec![late], 60_000).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    assert!(stage.did.contains(&Did::Ended("app/0".parse().unwrap(), 77)));
    assert!(
        hooks(&stage.commits()).iter().all(|(_, outcome)| !matches!(outcome, HookOutcome::Failed { .. }))
    );
}

fn has_started(did: &[Did], number: u32) -> bool {
    did.iter().any(|did| matches!(did, Did::Started(unit, _) if unit.number() == number))
}

#[tokio::test(start_paused = true)]
async fn a_suspect_whose_charm_does_not_arrive_holds_nobody_up_and_runs_alone_when_it_does() {
    let mut stage = stage(2).await;
    let other = CharmDigest::of(b"another");
    stage.meddle("app/0", |record| record.charm.as_mut().unwrap().digest = other);
    let mut meta = stage.view.charms.values().next().unwrap().clone();
    meta.digest = other;
    stage.view.charms.insert(other, meta);
    stage.away.insert(other, "it is damaged".to_owned());
    stage.until(|did| is_idle(did, "app/1")).await;
    let cleared = |stage: &Stage| stage.did.contains(&Did::Ended("app/0".parse().unwrap(), INSTALL));
    assert!(!cleared(&stage), "it stays a suspect");
    // A hook of the other unit runs while the charm arrives.
    stage.serve_for(Duration::from_secs(11)).await;
    let before = stage.commits().len();
    stage.verdicts.push_back(Verdict::Hold);
    stage.view.machines.get_mut(&MachineId(1)).unwrap().addresses_hash.push('+');
    stage.publish().await;
    stage.until(|did| did.iter().filter(|did| matches!(did, Did::Committed(_))).count() > before).await;
    stage.away.clear();
    stage.serve_for(Duration::from_secs(30)).await;
    assert!(!has_started(&stage.did, 0), "nothing runs beside it");
    stage.let_through().await;
    stage.until(|did| is_idle(did, "app/0")).await;
    assert!(cleared(&stage));
}
