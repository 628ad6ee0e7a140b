//! Tests of the code of idle charms.

use std::time::Duration;

use super::stage::{CharmUse, RunnerAction, Stage, is_idle};

/// A time after which an idle charm is released, and an idle runner has not ended.
const A_WHILE: Duration = Duration::from_secs(40);

fn hooks(did: &[RunnerAction]) -> usize {
    did.iter().filter(|did| matches!(did, RunnerAction::Started(..))).count()
}

#[tokio::test(start_paused = true)]
async fn an_idle_charm_is_unmapped_and_asked_for_again_before_its_next_hook() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    let [CharmUse::Asked(digest), ..] = *stage.code else { panic!("{:?}", stage.code) };
    let before = hooks(&stage.did);
    stage.code.clear();
    stage.serve_for(A_WHILE).await;
    assert_eq!(stage.code, [CharmUse::Released(digest)]);
    stage.configure("app").await;
    stage.until(|did| hooks(did) > before).await;
    assert_eq!(stage.code.get(1), Some(&CharmUse::Asked(digest)));
}

#[tokio::test(start_paused = true)]
async fn a_charm_whose_hooks_follow_each_other_stays_ready() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    stage.code.clear();
    for _ in 0..6 {
        let before = hooks(&stage.did);
        stage.configure("app").await;
        stage.until(|did| hooks(did) > before).await;
        // The runner sends something every five seconds, so this ends at its second message.
        stage.serve_for(Duration::from_secs(9)).await;
    }
    assert_eq!(stage.code, []);
}
