//! Tests of the times of leadership claims.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{
    ErrorCode, Refusal,
    agent::{RunnerAnswer, RunnerCommand},
    status::Life,
};
use tokio::time::Instant;

use super::fake::{OpenedWatch, PlayedRunner, Scene, frame, led_by, obliging, unit};

/// The least time between two claims for a unit.
const ROUND: Duration = Duration::from_millis(100);

async fn attached(scene: &mut Scene) -> (PlayedRunner, OpenedWatch) {
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    (runner, watch)
}

/// Returns the units of the next claims.
async fn claimed(scene: &mut Scene) -> Vec<String> {
    let claims = scene.claims().await;
    claims
        .iter()
        .map(|command| match command {
            RunnerCommand::Claim(claim) => claim.unit.to_string(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_new_unit_is_claimed_for_at_once_however_short_ago_the_last_claims_were() {
    let mut scene = Scene::new();
    let (_runner, watch) = attached(&mut scene).await;
    for number in 0..5_u64 {
        let name = format!("app{number}/0");
        let from = (number > 0).then_some(number);
        let told_at = Instant::now();
        let led_by_another = led_by(&format!("app{number}"), &format!("app{number}/9"));
        let puts = vec![led_by_another, unit(&name, Life::Alive)];
        watch.frames.send(Ok(frame(from, number + 1, puts))).await.unwrap();
        assert!(claimed(&mut scene).await.contains(&name));
        assert!(told_at.elapsed() < ROUND, "{name} waited for {:?}", told_at.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_controller_cannot_answer_now_is_claimed_again_soon() {
    let mut scene = Scene::new();
    scene.controller.answers(Arc::new(|commands| {
        let claims = commands.iter().any(|command| matches!(command, RunnerCommand::Claim(_)));
        match claims {
            true => Ok(vec![Err(Refusal::new(ErrorCode::TooManyRequests, "later"))]),
            false => obliging(commands),
        }
    }));
    let (_runner, watch) = attached(&mut scene).await;
    watch
        .frames
        .send(Ok(frame(None, 1, vec![led_by("app", "app/9"), unit("app/0", Life::Alive)])))
        .await
        .unwrap();
    assert_eq!(claimed(&mut scene).await, ["app/0"]);
    let refused_at = Instant::now();
    assert_eq!(claimed(&mut scene).await, ["app/0"]);
    assert!(refused_at.elapsed() <= Duration::from_secs(2), "{:?}", refused_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_application_that_another_unit_leads_is_not_claimed_before_the_next_renewal() {
    let mut scene = Scene::new();
    scene.controller.answers(Arc::new(|commands| {
        let answers = obliging(commands)?.into_iter().map(|answer| {
            answer.map(|answer| match answer {
                RunnerAnswer::Granted { .. } => RunnerAnswer::Held { holder: "app/9".parse().unwrap() },
                other => other,
            })
        });
        Ok(answers.collect())
    }));
    let (_runner, watch) = attached(&mut scene).await;
    let puts = vec![led_by("app", "app/9"), unit("app/0", Life::Alive)];
    watch.frames.send(Ok(frame(None, 1, puts))).await.unwrap();
    assert_eq!(claimed(&mut scene).await, ["app/0"]);
    // A unit of another application causes no further claim for this one.
    let first = Instant::now();
    watch
        .frames
        .send(Ok(frame(Some(1), 2, vec![led_by("web", "web/9"), unit("web/0", Life::Alive)])))
        .await
        .unwrap();
    assert_eq!(claimed(&mut scene).await, ["web/0"]);
    assert_eq!(claimed(&mut scene).await, ["app/0", "web/0"]);
    assert!(first.elapsed() > Duration::from_secs(10), "{:?}", first.elapsed());
}

#[tokio::test(start_paused = true)]
async fn new_units_whose_claims_fail_do_not_postpone_the_renewals_of_others() {
    let mut scene = Scene::new();
    let (_runner, watch) = attached(&mut scene).await;
    let puts = vec![led_by("app", "app/0"), unit("app/0", Life::Alive)];
    watch.frames.send(Ok(frame(None, 1, puts))).await.unwrap();
    assert_eq!(claimed(&mut scene).await, ["app/0"]);
    scene.controller.answers(Arc::new(|commands| {
        let claims = commands.iter().any(|command| matches!(command, RunnerCommand::Claim(_)));
        match claims {
            true => Ok(vec![Err(Refusal::new(ErrorCode::TooManyRequests, "later")); commands.len()]),
            false => obliging(commands),
        }
    }));
    let news = async {
        for number in 1..60_u64 {
            let puts = vec![
                led_by(&format!("app{number}"), &format!("app{number}/9")),
                unit(&format!("app{number}/0"), Life::Alive),
            ];
            watch.frames.send(Ok(frame(Some(number), number + 1, puts))).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    let renewed = async {
        let mut renewals = 0;
        loop {
            if claimed(&mut scene).await.contains(&"app/0".to_owned()) {
                renewals += 1;
            }
            if renewals == 6 {
                break;
            }
        }
    };
    tokio::select! {
        () = renewed => {}
        () = news => panic!("for 18 s only new units were claimed for"),
    }
}
