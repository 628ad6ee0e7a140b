use std::future::pending;

use periapt_host_api::{
    Digest,
    charm::{CharmFiles, CharmMeta},
};
use serde_json::json;
use tokio::{net::UnixStream, time::timeout};

use super::*;
use crate::scene::view::OfCharm;

fn play() -> PreparedScene {
    let files = CharmFiles {
        charmcraft: Some("name: plain\nsummary: s\ndescription: d".to_owned()),
        ..CharmFiles::default()
    };
    let meta = CharmMeta::parse(&files).unwrap();
    let scene = serde_json::from_value(json!({"unit": "plain/0", "event": {"hook": "install"}})).unwrap();
    PreparedScene::new(&scene, &OfCharm { digest: Digest::of(b"plain"), meta: &meta }).unwrap()
}

/// The paused clock reaches the deadline as soon as all tasks are idle.
#[tokio::test(start_paused = true)]
async fn a_tool_that_connects_and_says_nothing_does_not_outlast_the_hook() {
    let place = TempDir::new().unwrap();
    let listener = UnixListener::bind(place.path().join("socket")).unwrap();
    let mut stalled = UnixStream::connect(place.path().join("socket")).await.unwrap();
    let (wall, mut play) = (Duration::from_secs(60), play());
    let attending = attended(pending(), wall, &listener, &mut play, place.path());
    let ended = timeout(2 * wall, attending).await.expect("it ends when the hook's time does");
    assert!(ended.unwrap().is_none());
    // The connection was accepted, so its other end is closed now.
    let mut rest = Vec::new();
    assert_eq!(stalled.read_to_end(&mut rest).await.unwrap(), 0);
}
