//! Watches: the first event at once, then differences, from any position.

use std::collections::BTreeMap;

use periapt_client::NdJson;
use periapt_host_api::{
    ErrorCode, Revision, StoreId,
    api::WatchPosition,
    command::Command,
    view::{Frame, View, ViewEntity},
};

use crate::fixture::{Deployed, Fixture, application, code_of, is_silent, next, next_where};

pub(crate) fn set_title(title: impl Into<String>) -> Command {
    let set = BTreeMap::from([("title".to_owned(), title.into())]);
    Command::SetConfig { application: application("tiny"), set, reset: vec![] }
}

impl Deployed {
    pub(crate) async fn watch(&self, position: Option<WatchPosition>) -> NdJson<Frame> {
        self.agent.client.watch(&self.agent.name, &self.model.uuid, position).await.unwrap()
    }

    /// Returns the whole view, as a new watcher gets it.
    pub(crate) async fn view(&self) -> View {
        let mut view = View::default();
        view.apply(next(&mut self.watch(None).await).await).unwrap();
        view
    }

    /// Waits until the units are placed on the agent.
    pub(crate) async fn placed(&mut self) {
        next_where(&mut self.assignments, |assigned| !assigned.models.is_empty()).await;
    }
}

fn at(frame: &Frame) -> WatchPosition {
    WatchPosition { store: frame.store, revision: frame.to }
}

#[tokio::test]
async fn q11_a_watch_tells_at_once_what_there_is_and_then_what_differs() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let mut watch = deployed.watch(None).await;
    let first = next(&mut watch).await;
    assert_eq!(first.from, None);
    assert!(first.puts.iter().any(|entity| matches!(entity, ViewEntity::Unit(_))));
    is_silent(&mut watch, &fixture.client).await;

    deployed.model.command(set_title("other")).await.unwrap();
    let second = next(&mut watch).await;
    assert_eq!((second.from, second.puts.len()), (Some(first.to), 1));
    assert!(matches!(second.puts.as_slice(), [ViewEntity::Application(_)]), "{second:?}");
    is_silent(&mut watch, &fixture.client).await;

    let mut mirror = View::default();
    mirror.apply(first).unwrap();
    mirror.apply(second).unwrap();
    assert_eq!(mirror, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn another_models_changes_are_not_told() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let other = fixture.add_model("other").await;
    let mut watch = deployed.watch(None).await;
    next(&mut watch).await;
    let interval = BTreeMap::from([("update-status-hook-interval".to_owned(), "60s".to_owned())]);
    other.command(Command::SetModelConfig { set: interval, reset: vec![] }).await.unwrap();
    is_silent(&mut watch, &fixture.client).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_watcher_that_comes_back_gets_only_what_it_missed() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let first = next(&mut deployed.watch(None).await).await;
    let mut mirror = View::default();
    mirror.apply(first.clone()).unwrap();

    let same = next(&mut deployed.watch(Some(at(&first))).await).await;
    assert_eq!((same.from, same.to, same.puts.len()), (Some(first.to), first.to, 0));

    deployed.model.command(set_title("a")).await.unwrap();
    deployed.model.command(set_title("b")).await.unwrap();
    let missed = next(&mut deployed.watch(Some(at(&first))).await).await;
    assert_eq!((missed.from, missed.puts.len()), (Some(first.to), 1), "two changes, told as one");
    mirror.apply(missed).unwrap();
    assert_eq!(mirror, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn a_watcher_that_missed_many_commits_gets_what_they_lead_to() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let first = next(&mut deployed.watch(None).await).await;
    let other = fixture.add_model("other").await;
    let interval = |seconds: u32| {
        BTreeMap::from([("update-status-hook-interval".to_owned(), format!("{}s", 60 + seconds))])
    };
    for number in 0..300 {
        deployed.model.command(set_title(number.to_string())).await.unwrap();
        other.command(Command::SetModelConfig { set: interval(number), reset: vec![] }).await.unwrap();
    }
    let missed = next(&mut deployed.watch(Some(at(&first))).await).await;
    assert_eq!((missed.from, missed.puts.len()), (Some(first.to), 1), "600 changes, told as one");
    let mut mirror = View::default();
    mirror.apply(first).unwrap();
    mirror.apply(missed).unwrap();
    assert_eq!(mirror, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn a_position_that_cannot_be_continued_from_gets_everything_anew() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let first = next(&mut deployed.watch(None).await).await;
    let foreign = WatchPosition { store: StoreId(uuid::Uuid::from_u128(8)), ..at(&first) };
    let future = WatchPosition { revision: Revision(first.to.0 + 1_000), ..at(&first) };
    for position in [foreign, future] {
        let frame = next(&mut deployed.watch(Some(position)).await).await;
        assert_eq!((frame.from, frame.puts.len()), (None, first.puts.len()), "{position:?}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_slow_reader_gets_fewer_and_wider_frames() {
    const CHANGES: usize = 100;
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let mut watch = deployed.watch(None).await;
    let mut mirror = View::default();
    mirror.apply(next(&mut watch).await).unwrap();
    let mut revision = Revision(0);
    for number in 0..CHANGES {
        // Together they far exceed all buffers between the two.
        let title = format!("{number}{}", "x".repeat(60_000));
        let results =
            fixture.client.commands(&deployed.model.selector(), vec![set_title(title)]).await.unwrap();
        revision = results.revision;
    }
    let mut frames = 0;
    while mirror.revision < revision {
        mirror.apply(next(&mut watch).await).unwrap();
        frames += 1;
    }
    assert!(frames < CHANGES / 2, "{frames} frames");
    assert_eq!(mirror, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn what_an_agent_hosts_no_unit_of_it_does_not_see() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let two = fixture.as_agent("two");
    let _connected = two.connect().await;
    let watch = two.client.watch(&two.name, &deployed.model.uuid, None).await;
    assert_eq!(code_of(watch.map(drop)), ErrorCode::PermissionDenied);
    fixture.stop().await;
}

#[tokio::test]
async fn a_watched_status_is_told_when_it_differs() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let mut watch = fixture.client.watch_status(&model.selector()).await.unwrap();
    assert!(next(&mut watch).await.applications.is_empty());
    is_silent(&mut watch, &fixture.client).await;
    let deployed = fixture.client.upload_charm(crate::fixture::charm()).await.unwrap();
    model.command(crate::fixture::deploy(deployed.digest, 1)).await.unwrap();
    let status = next_where(&mut watch, |status| !status.applications.is_empty()).await;
    assert_eq!(status.applications["tiny"].units.len(), 1);
    fixture.stop().await;
}

#[tokio::test]
async fn streams_end_when_the_controller_stops() {
    use futures_util::StreamExt as _;
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let mut watch = deployed.watch(None).await;
    next(&mut watch).await;
    fixture.stop().await;
    let rest = tokio::time::timeout(crate::fixture::TIMEOUT, watch.count()).await.unwrap();
    assert!(rest <= 1, "at most the error of a broken connection");
}
