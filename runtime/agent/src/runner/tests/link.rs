//! Tests of the limits of a runner's link: calls in flight, and sizes of messages.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, Incarnation, Timestamp,
    agent::{LeaseClaim, RunnerCommand},
    commit::{EarlyEffect, EarlyItem},
};
use tokio::{net::UnixStream, time::timeout};

use crate::{
    protocol::{
        CALLS_OUTSTANDING, Call, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, Outgoing,
        ToKeeper, ToRunner, split,
    },
    runner::link::Link,
};

/// Returns a link and the keeper's end of it.
fn linked() -> (Link, Incoming<ToKeeper>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (_, outgoing): (Incoming<ToRunner>, Outgoing<ToKeeper>) =
        split(ours, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT);
    let (link, writer) = Link::new(outgoing);
    tokio::spawn(writer);
    let (incoming, _): (_, Outgoing<ToRunner>) = split(theirs, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
    (link, incoming)
}

fn claim() -> Call {
    let claim =
        LeaseClaim { unit: "app/0".parse().unwrap(), application: "app".parse().unwrap(), seconds: 60 };
    Call::Command(Box::new(RunnerCommand::Claim(claim)))
}

fn away() -> CallOutcome {
    CallOutcome::Away { message: "nobody answers".to_owned() }
}

async fn next_call(incoming: &mut Incoming<ToKeeper>) -> crate::protocol::CallId {
    match incoming.next().await.unwrap().unwrap().0 {
        ToKeeper::Call { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_keeps_its_place_until_it_is_answered() {
    let (link, mut keeper) = linked();
    let mut open = Vec::new();
    for _ in 0..CALLS_OUTSTANDING {
        assert!(timeout(Duration::from_secs(5), link.call(claim())).await.is_err());
        open.push(next_call(&mut keeper).await);
    }
    let mut late = Box::pin(link.call(claim()));
    assert!(timeout(Duration::from_secs(5), &mut late).await.is_err());
    assert!(timeout(Duration::from_secs(5), next_call(&mut keeper)).await.is_err(), "one more than may be");
    link.answered(open[0], away());
    assert!(timeout(Duration::from_secs(5), &mut late).await.is_err());
    let id = next_call(&mut keeper).await;
    link.answered(id, away());
    assert_eq!(late.await, away());
}

#[tokio::test]
async fn a_call_that_is_too_large_is_refused_and_the_link_goes_on() {
    let (link, mut keeper) = linked();
    let effect = EarlyEffect::ApplicationVersion { version: "\u{1}".repeat(FROM_RUNNER_LIMIT / 6) };
    let items = vec![EarlyItem { number: 1, at: Timestamp::UNIX_EPOCH, effect }];
    let unit: periapt_host_api::UnitName = "app/0".parse().unwrap();
    link.send(ToKeeper::Noted { unit: unit.clone(), items: items.clone() }).await;
    let command = RunnerCommand::Early { unit, incarnation: Incarnation(1), items };
    match link.call(Call::Command(Box::new(command))).await {
        CallOutcome::Refused(refusal) => assert_eq!(refusal.code, ErrorCode::QuotaExceeded),
        other => panic!("{other:?}"),
    }
    link.send(ToKeeper::Resync).await;
    assert_eq!(keeper.next().await.unwrap().unwrap().0, ToKeeper::Resync);
}
