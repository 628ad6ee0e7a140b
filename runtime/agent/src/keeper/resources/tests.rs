//! Tests of resources from a fake controller.

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use periapt_host_api::{
    Digest, ModelUuid, Refusal, Revision, StoreId, UnitName,
    record::CharmRef,
    resource::{ArchiveLayer, ContentLayers, ResourceKey},
    status::Life,
    view::{ApplicationView, FrameLine, LineNumber, ResourceView, ViewEntity, ViewKey},
};

use super::{KeptContents, Resources};
use crate::keeper::{controller::ControllerError, directories::Directories, tests::fake::FakeController};

struct Bench {
    data: tempfile::TempDir,
    directories: Arc<Directories>,
    controller: FakeController,
}

impl Bench {
    fn new(contents: &[&'static str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let directories = Arc::new(Directories::open(data.path()).unwrap());
        let contents = contents.iter().map(|content| (digest(content), Ok(*content))).collect();
        let mut controller = FakeController::without_models();
        controller.contents = contents;
        Self { data, directories, controller }
    }

    fn resources(&self, model: u128) -> Resources<FakeController> {
        let model = ModelUuid(uuid::Uuid::from_u128(model));
        Resources::new(self.controller.clone(), model, Arc::clone(&self.directories))
    }

    fn fetched(&self) -> usize {
        self.controller.fetched()
    }

    /// Returns the number of files below a directory of the agent.
    fn files(&self, name: &str) -> usize {
        fn count(path: &Path) -> usize {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
        }
        count(&self.data.path().join(name))
    }

    async fn until_files(&self, count: usize) {
        self.until_files_in("resources", count).await;
    }

    async fn until_files_in(&self, name: &str, count: usize) {
        let waiting = async {
            while self.files(name) != count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.unwrap();
    }
}

fn digest(content: &str) -> Digest {
    Digest::of(content.as_bytes())
}

fn unit() -> UnitName {
    "app/0".parse().unwrap()
}

fn key(content: &str) -> ResourceKey {
    ResourceKey { name: "data".parse().unwrap(), digest: digest(content) }
}

async fn read(resources: &Resources<FakeController>, content: &str) -> Result<String, ControllerError> {
    let mut file = resources.obtain(&unit(), &key(content)).await?;
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    Ok(text)
}

/// Returns a frame in which `app` has some resources.
fn frame(from: Option<u64>, contents: &[&str]) -> FrameLine {
    let resource = |(number, content): (usize, &&str)| {
        let view = ResourceView { revision: 1, digest: digest(content), size: content.len() as u64 };
        (format!("data{number}").parse().unwrap(), view)
    };
    let application = ApplicationView {
        name: "app".parse().unwrap(),
        life: Life::Alive,
        charm: CharmRef { digest: digest("charm"), modified_version: 0 },
        force_charm: false,
        config: BTreeMap::new(),
        config_hash: String::new(),
        settings_version: 0,
        trust_hash: String::new(),
        trust: false,
        bindings: Default::default(),
        bindings_hash: String::new(),
        leader: None,
        leader_settings: BTreeMap::new(),
        leader_settings_version: 0,
        update_status_interval: None,
        status: None,
        workload_egress: None,
        workload_crash: Default::default(),
        exposed: false,
        budgets: Default::default(),
        workload_limits: Default::default(),
        resources: contents.iter().enumerate().map(resource).collect(),
    };
    let store = StoreId(uuid::Uuid::from_u128(7));
    let puts = vec![ViewEntity::Application(application)];
    FrameLine {
        store,
        from: from.map(Revision),
        to: Revision(9),
        line: None,
        puts,
        deletes: Vec::new(),
        traces: Vec::new(),
    }
}

#[tokio::test]
async fn a_late_clean_up_leaves_what_an_application_has_got_since() {
    let bench = Bench::new(&["one", "two"]);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["one"]));
    read(&resources, "one").await.unwrap();
    let early = KeptContents { shown: [digest("one")].into(), former: [].into() };
    resources.observe(&frame(Some(9), &["one", "two"]));
    read(&resources, "two").await.unwrap();
    fs::write(resources.path(&digest("unused")), "unused").unwrap();
    resources.keep_only(early);
    bench.until_files(2).await;
    assert!(resources.path(&digest("two")).exists());
}

#[tokio::test]
async fn content_is_fetched_once_for_all_callers_and_is_at_hand_when_the_controller_is_away() {
    let mut bench = Bench::new(&["one"]);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["one"]));
    let (first, second) = tokio::join!(read(&resources, "one"), read(&resources, "one"));
    assert_eq!((first.unwrap().as_str(), second.unwrap().as_str()), ("one", "one"));
    assert_eq!((bench.fetched(), bench.files("resources"), bench.files("incoming")), (1, 1, 0));

    // Another keeper with the same directory, whose controller is away.
    bench.controller.contents.clear();
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["one"]));
    assert_eq!(read(&resources, "one").await.unwrap(), "one");
    assert_eq!(bench.fetched(), 1);
    assert!(matches!(read(&resources, "two").await, Err(ControllerError::Away(_))));
}

/// Returns content of 300,000 bytes, which stays in memory until the tests end.
fn large() -> &'static str {
    Box::leak("0123456789".repeat(30_000).into_boxed_str())
}

#[tokio::test]
async fn a_download_that_breaks_goes_on_where_it_ended() {
    let large = large();
    let bench = Bench::new(&[large]);
    bench.controller.breaks_after.store(100_000, Ordering::Relaxed);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &[large]));
    for attempt in 1..=2 {
        assert!(matches!(read(&resources, large).await, Err(ControllerError::Away(_))));
        assert_eq!((bench.fetched(), bench.files("resources"), bench.files("incoming")), (attempt, 0, 1));
    }
    assert_eq!(read(&resources, large).await.unwrap(), large);
    assert_eq!((bench.fetched(), bench.files("resources"), bench.files("incoming")), (3, 1, 0));
}

#[tokio::test]
async fn an_unfinished_download_serves_its_model_alone_and_goes_with_the_need_for_it() {
    let large = large();
    let bench = Bench::new(&[large, "other"]);
    bench.controller.breaks_after.store(200_000, Ordering::Relaxed);
    let (own, other) = (bench.resources(1), bench.resources(2));
    for resources in [&own, &other] {
        resources.observe(&frame(None, &[large]));
        assert!(read(resources, large).await.is_err(), "each has fetched 200,000 bytes of 300,000");
    }
    assert_eq!(bench.files("incoming"), 2);
    own.observe(&frame(Some(9), &["other"]));
    bench.until_files_in("incoming", 1).await;
    assert_eq!(read(&other, large).await.unwrap(), large);
    assert_eq!((bench.fetched(), bench.files("incoming")), (3, 0));
}

#[tokio::test]
async fn what_came_for_one_model_is_not_given_to_another() {
    let mut bench = Bench::new(&["one"]);
    let own = bench.resources(1);
    own.observe(&frame(None, &["one"]));
    read(&own, "one").await.unwrap();
    let denied = ControllerError::Refused(Refusal::permission_denied("permission denied"));
    bench.controller.contents.insert(digest("one"), Err(denied));
    let other = bench.resources(2);
    other.observe(&frame(None, &["one"]));
    assert!(matches!(read(&other, "one").await, Err(ControllerError::Refused(_))));
    assert_eq!(read(&own, "one").await.unwrap(), "one");
}

#[tokio::test]
async fn content_goes_when_nobody_has_it_and_stays_for_who_reads_it() {
    let bench = Bench::new(&["one", "two"]);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["one"]));
    let mut held = resources.obtain(&unit(), &key("one")).await.unwrap();
    resources.observe(&frame(Some(9), &["one", "two"]));
    read(&resources, "two").await.unwrap();
    assert_eq!(bench.files("resources"), 2);

    resources.observe(&frame(Some(9), &["two"]));
    bench.until_files(1).await;
    let mut text = String::new();
    held.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one", "a hook that has it open reads on");
    // A hook with an older view still gets the resource, which is not kept.
    assert_eq!(read(&resources, "one").await.unwrap(), "one");
    assert_eq!((bench.files("resources"), bench.files("incoming")), (1, 0));

    let gone = FrameLine {
        puts: Vec::new(),
        deletes: vec![ViewKey::Application("app".parse().unwrap())],
        ..frame(Some(9), &[])
    };
    resources.observe(&gone);
    bench.until_files(0).await;
}

#[tokio::test]
async fn what_an_earlier_agent_left_is_looked_through_with_the_first_view() {
    let bench = Bench::new(&["one", "two"]);
    let before = bench.resources(1);
    before.observe(&frame(None, &["one", "two"]));
    read(&before, "one").await.unwrap();
    read(&before, "two").await.unwrap();
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["two"]));
    bench.until_files(1).await;
    let kept = bench.directories.other_resources(&[ModelUuid(uuid::Uuid::from_u128(1))].into());
    assert!(kept.is_empty(), "{kept:?}");
    assert_eq!(bench.directories.other_resources(&[].into()).len(), 1);
}

#[tokio::test]
async fn what_a_line_takes_goes_with_the_last_line_of_its_frame() {
    let bench = Bench::new(&["one", "two"]);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["one", "two"]));
    read(&resources, "one").await.unwrap();
    read(&resources, "two").await.unwrap();
    let line = |number, contents: &[&str]| {
        let line = Some(LineNumber { number, of: 2 });
        FrameLine { line, ..frame(Some(9), contents) }
    };
    resources.observe(&line(1, &["two"]));
    assert_eq!(bench.files("resources"), 2);
    let last = FrameLine { puts: Vec::new(), ..line(2, &[]) };
    resources.observe(&last);
    bench.until_files(1).await;
    assert_eq!(read(&resources, "two").await.unwrap(), "two");
}

/// Returns a controller's images, which all have the layer `BASE`.
fn images(contents: &[&'static str]) -> Bench {
    let mut bench = Bench::new(contents);
    for content in contents {
        let layer =
            ArchiveLayer { at: content.find("BASE").unwrap() as u64, size: 4, digest: digest("BASE") };
        let layers = ContentLayers { size: content.len() as u64, layers: vec![layer] };
        bench.controller.layers.insert(digest(content), layers);
    }
    bench
}

#[tokio::test]
async fn layers_of_the_former_image_are_not_fetched_again_and_it_goes_then() {
    let bench = images(&["1 BASE one", "22 BASE two", "BASE three"]);
    let fetched_bytes = || bench.controller.fetched_bytes.load(std::sync::atomic::Ordering::Relaxed);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["1 BASE one"]));
    assert_eq!(read(&resources, "1 BASE one").await.unwrap(), "1 BASE one");
    assert_eq!((bench.fetched(), bench.files("resources")), (1, 2), "the image, and the list of its layers");

    resources.observe(&frame(Some(9), &["22 BASE two"]));
    assert_eq!(read(&resources, "22 BASE two").await.unwrap(), "22 BASE two");
    assert_eq!((bench.fetched(), fetched_bytes()), (1, 7), "all but the layer");
    bench.until_files(2).await;

    resources.observe(&frame(Some(9), &["22 BASE two", "BASE three"]));
    assert_eq!(read(&resources, "BASE three").await.unwrap(), "BASE three");
    assert_eq!((bench.fetched(), fetched_bytes(), bench.files("resources")), (1, 13, 4));
    let gone = FrameLine {
        puts: Vec::new(),
        deletes: vec![ViewKey::Application("app".parse().unwrap())],
        ..frame(Some(9), &[])
    };
    resources.observe(&gone);
    bench.until_files(0).await;
}

#[tokio::test]
async fn an_image_is_fetched_whole_where_a_layer_of_the_former_one_is_damaged() {
    let bench = images(&["1 BASE one", "22 BASE two"]);
    let resources = bench.resources(1);
    resources.observe(&frame(None, &["1 BASE one"]));
    read(&resources, "1 BASE one").await.unwrap();
    let path = resources.path(&digest("1 BASE one"));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "1 VASE one").unwrap();
    resources.observe(&frame(Some(9), &["22 BASE two"]));
    assert_eq!(read(&resources, "22 BASE two").await.unwrap(), "22 BASE two");
    assert_eq!(bench.fetched(), 2);
}
