//! Tests of charms from a fake controller.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    os::fd::AsFd as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_host_api::{Digest, Refusal};
use periapt_sandbox::{ArtifactId, ArtifactKey, Options, Sandbox, artifact};
use tokio::time::{Duration, advance};

use super::{CharmError, Charms};
use crate::keeper::{
    compile::{Compile, CompileError},
    controller::ControllerError,
    directories::Directories,
    tests::fake::FakeController,
};
use crate::{helper::Part, options::CompileLimits, protocol::ReadyCharm};

const CHARM: &[u8] = include_bytes!("../../../../sandbox/tests/fixtures/hello-0.1.0.charm");

/// A compiler that writes a few bytes, or fails.
struct Compiler {
    result: Result<(), CompileError>,
    compiled: Arc<AtomicUsize>,
}

impl Compile for Compiler {
    fn compile<'a>(
        &'a self,
        _: Part,
        component: &'a Path,
        output: &'a Path,
        _: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>> {
        async move {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            // Other tasks run now. A concurrent request must wait for this compilation.
            tokio::task::yield_now().await;
            assert!(component.ends_with("charm.wasm"));
            fs::write(output, b"native code").map_err(|error| CompileError::Host(error.to_string()))?;
            self.result.clone()
        }
        .boxed()
    }
}

struct Bench {
    data: tempfile::TempDir,
    archive: Arc<Mutex<Result<Vec<u8>, ControllerError>>>,
    charms: Option<Charms<FakeController>>,
    fetched: Arc<AtomicUsize>,
    compiled: Arc<AtomicUsize>,
    engine: periapt_sandbox::CompatibilityHash,
}

impl Bench {
    fn new(archive: Result<Vec<u8>, ControllerError>, result: Result<(), CompileError>) -> Self {
        let options = Options { hooks_in_flight: 1, ..Options::default() };
        let engine = Sandbox::new(options).unwrap().compatibility_hash();
        let (fetched, compiled) = (Arc::default(), Arc::default());
        let data = tempfile::tempdir().unwrap();
        let held = Arc::new(Mutex::new(archive.clone()));
        let mut bench = Self { data, archive: held, charms: None, fetched, compiled, engine };
        bench.restart(archive, result);
        bench
    }

    fn working() -> Self {
        Self::new(Ok(CHARM.to_vec()), Ok(()))
    }

    /// Starts another keeper with the same directory.
    fn restart(&mut self, archive: Result<Vec<u8>, ControllerError>, result: Result<(), CompileError>) {
        self.charms = None;
        let directories = Arc::new(Directories::open(self.data.path()).unwrap());
        let archive = Arc::new(Mutex::new(archive));
        self.archive = Arc::clone(&archive);
        let mut controller = FakeController::without_models();
        (controller.archive, controller.fetched) = (archive, Arc::clone(&self.fetched));
        let compiler = Arc::new(Compiler { result, compiled: Arc::clone(&self.compiled) });
        self.charms =
            Some(Charms::new(controller, directories, compiler, self.engine, CompileLimits::default()));
    }

    /// Gives the controller the correct charm.
    fn mend(&self) {
        *self.archive.lock() = Ok(CHARM.to_vec());
    }

    fn charms(&self) -> &Charms<FakeController> {
        self.charms.as_ref().unwrap()
    }

    fn work(&self) -> (usize, usize) {
        (self.fetched.load(Ordering::Relaxed), self.compiled.load(Ordering::Relaxed))
    }

    fn leftovers(&self) -> usize {
        fs::read_dir(self.data.path().join("incoming")).unwrap().count()
    }
}

fn digest() -> Digest {
    Digest::of(CHARM)
}

/// Returns the code that a runner would map.
fn code(ready: &ReadyCharm) -> Vec<u8> {
    let descriptor = ready.artefact.as_ref().unwrap().as_fd().try_clone_to_owned().unwrap();
    let (mut file, mut bytes) = (fs::File::from(descriptor), Vec::new());
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_charm_is_fetched_and_compiled_once_for_all_callers_and_after_a_restart() {
    let mut bench = Bench::working();
    let (one, other) = tokio::join!(bench.charms().obtain(digest()), bench.charms().obtain(digest()));
    let ready = one.unwrap();
    assert_eq!(ready, other.unwrap());
    assert_eq!(bench.work(), (1, 1));
    assert!(ready.directory.join("charmcraft.yaml").exists());
    let key =
        ArtifactKey::new(&fs::read(bench.data.path().join("artefact.key")).unwrap().try_into().unwrap());
    let id = ArtifactId { component: ready.component, engine: bench.engine };
    artifact::open(&bench.data.path().join("artefacts"), &id, &key).unwrap();
    assert_eq!(code(&ready), b"native code", "what was checked goes with it, and nothing else");
    assert_eq!(bench.leftovers(), 0);
    bench.restart(Ok(CHARM.to_vec()), Ok(()));
    let again = bench.charms().obtain(digest()).await.unwrap();
    assert_eq!((again.component, &again.directory), (ready.component, &ready.directory));
    assert_eq!(bench.work(), (1, 1));
}

#[tokio::test]
async fn compiled_code_that_was_changed_is_made_anew() {
    let mut bench = Bench::working();
    let ready = bench.charms().obtain(digest()).await.unwrap();
    let id = ArtifactId { component: ready.component, engine: bench.engine };
    let path = bench.data.path().join("artefacts").join(id.file_name());
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
    bench.restart(Ok(CHARM.to_vec()), Ok(()));
    let again = bench.charms().obtain(digest()).await.unwrap();
    // The component was deleted.
    assert_eq!(bench.work(), (2, 2));
    assert_eq!(code(&again), b"native code");
    // The earlier holder still has the checked code.
    assert_eq!(code(&ready), b"native code");
}

#[tokio::test]
async fn a_component_goes_once_it_is_compiled_and_its_charm_runs_while_the_controller_is_away() {
    let mut bench = Bench::working();
    let ready = bench.charms().obtain(digest()).await.unwrap();
    assert!(!ready.directory.join("charm.wasm").exists() && ready.directory.join("charmcraft.yaml").exists());
    bench.restart(Err(ControllerError::Away("nobody answers".to_owned())), Ok(()));
    assert_eq!(code(&bench.charms().obtain(digest()).await.unwrap()), b"native code");
    assert_eq!(bench.work(), (1, 1));
}

#[tokio::test]
async fn code_is_in_memory_for_as_long_as_a_handle_to_it_exists() {
    let bench = Bench::working();
    let one = bench.charms().obtain(digest()).await.unwrap();
    let other = bench.charms().obtain(digest()).await.unwrap();
    assert_eq!(one, other, "both are the same memory");
    let memory = one.artefact.as_ref().unwrap().downgrade();
    drop(one);
    assert!(memory.upgrade().is_some());
    drop(other);
    assert!(memory.upgrade().is_none());
    assert_eq!(code(&bench.charms().obtain(digest()).await.unwrap()), b"native code");
    assert_eq!(bench.work(), (1, 1));
}

#[tokio::test]
async fn a_charm_is_put_in_place_once_and_again_if_a_part_of_it_is_gone() {
    let bench = Bench::working();
    let (one, other) =
        tokio::join!(bench.charms().put_in_place(digest()), bench.charms().put_in_place(digest()));
    one.and(other).unwrap();
    assert_eq!(bench.work(), (1, 1));
    let artefacts = fs::read_dir(bench.data.path().join("artefacts")).unwrap();
    artefacts.for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    bench.charms().put_in_place(digest()).await.unwrap();
    assert_eq!(bench.work(), (2, 2));
}

/// Returns each kind of failure; true means that the charm is invalid.
fn failing() -> [(Bench, bool); 5] {
    let refusal = ControllerError::Refused(Refusal::not_found("no such charm"));
    let unreachable = ControllerError::Away("nobody answers".to_owned());
    let bad = CompileError::Component("it is no component".to_owned());
    let host = CompileError::Host("no processes left".to_owned());
    let archive = || Ok(CHARM.to_vec());
    [
        (Bench::new(Err(refusal), Ok(())), false),
        (Bench::new(Err(unreachable), Ok(())), false),
        (Bench::new(Ok(b"no zip".to_vec()), Ok(())), true),
        (Bench::new(archive(), Err(bad)), true),
        (Bench::new(archive(), Err(host)), false),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_charm_that_failed_is_told_why_and_it_is_tried_again_later() {
    for (bench, charms_fault) in failing() {
        let mut told = Vec::new();
        for _ in 0..5 {
            let error = bench.charms().obtain(digest()).await.unwrap_err();
            assert_eq!(matches!(error, CharmError::Charm(_)), charms_fault, "{error}");
            told.push(error.to_string());
        }
        let attempts = || bench.work().0.max(bench.work().1);
        assert_eq!(attempts(), 1, "{told:?}");
        assert_eq!(told[0].contains("not tried again before"), charms_fault, "{told:?}");
        told.dedup();
        assert_eq!(told.len(), 1, "all are told the same");
        // An error that may end at any time is retried within seconds.
        advance(Duration::from_millis(120)).await;
        bench.charms().obtain(digest()).await.unwrap_err();
        assert_eq!(attempts(), if charms_fault { 1 } else { 2 });
        assert_eq!(bench.leftovers(), 0, "nothing of a failure is kept");
    }
}

/// Returns the number of fetches of a charm in an hour, with many units that request it four times a
/// second.
async fn fetched_in_an_hour(error: ControllerError) -> usize {
    let bench = Bench::new(Err(error), Ok(()));
    for _ in 0..4 * 3600 {
        bench.charms().obtain(digest()).await.unwrap_err();
        bench.charms().obtain(digest()).await.unwrap_err();
        advance(Duration::from_millis(250)).await;
    }
    let (fetched, compiled) = bench.work();
    assert_eq!(compiled, 0);
    fetched
}

#[tokio::test(start_paused = true)]
async fn a_charm_that_arrives_damaged_is_fetched_less_and_less_often_and_an_absent_controller_asked_each_15_s()
 {
    let damaged = fetched_in_an_hour(ControllerError::Unusable("what came is damaged".to_owned())).await;
    let refused = fetched_in_an_hour(ControllerError::Refused(Refusal::not_found("no such charm"))).await;
    let away = fetched_in_an_hour(ControllerError::Away("nobody answers".to_owned())).await;
    assert!((18..27).contains(&damaged) && (18..27).contains(&refused), "{damaged} {refused}");
    assert!((200..260).contains(&away), "{away}");
}

#[tokio::test(start_paused = true)]
async fn a_charm_that_is_mended_after_an_hour_is_in_place_within_minutes() {
    let bench = Bench::new(Err(ControllerError::Unusable("what came is damaged".to_owned())), Ok(()));
    for _ in 0..3600 {
        bench.charms().obtain(digest()).await.unwrap_err();
        advance(Duration::from_secs(1)).await;
    }
    bench.mend();
    advance(Duration::from_secs(6 * 60)).await;
    bench.charms().obtain(digest()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_charm_that_comes_back_with_its_controller_is_in_place_soon() {
    let mut bench = Bench::new(Ok(b"no zip".to_vec()), Ok(()));
    let error = bench.charms().obtain(digest()).await.unwrap_err().to_string();
    assert!(error.starts_with("it cannot be unpacked: not a charm archive: "), "{error}");
    bench.restart(Err(ControllerError::Away("nobody answers".to_owned())), Ok(()));
    for _ in 0..100 {
        bench.charms().obtain(digest()).await.unwrap_err();
        advance(Duration::from_secs(1)).await;
    }
    bench.mend();
    advance(Duration::from_secs(17)).await;
    bench.charms().obtain(digest()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hopeless_charm_is_compiled_less_and_less_often() {
    let bad = CompileError::Component("it is no component".to_owned());
    let bench = Bench::new(Ok(CHARM.to_vec()), Err(bad));
    // One request a second for an hour.
    for _ in 0..3600 {
        bench.charms().obtain(digest()).await.unwrap_err();
        advance(Duration::from_secs(1)).await;
    }
    // Attempts at the beginning, and after 15 s, 30 s, 1 min, ... 16 min.
    assert_eq!(bench.work(), (1, 8));
    // A unit that changes to another charm and back gets a new attempt.
    bench.charms().forget_others(&[].into());
    bench.charms().obtain(digest()).await.unwrap_err();
    assert_eq!(bench.work(), (1, 9));
}

#[tokio::test]
async fn what_no_unit_needs_is_deleted() {
    let bench = Bench::working();
    let ready = bench.charms().obtain(digest()).await.unwrap();
    let stray = bench.data.path().join("charms").join("0".repeat(64));
    fs::create_dir(&stray).unwrap();
    bench.charms().keep_only([digest()].into()).await.unwrap();
    assert!(!stray.exists() && ready.directory.exists());
    assert_eq!(fs::read_dir(bench.data.path().join("artefacts")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(bench.data.path().join("parts")).unwrap().count(), 1);
    bench.charms().keep_only([].into()).await.unwrap();
    assert!(!ready.directory.exists());
    for kept in ["artefacts", "parts"] {
        assert_eq!(fs::read_dir(bench.data.path().join(kept)).unwrap().count(), 0);
    }
}
