//! Charms that come from a controller of the test's.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::{
    CharmDigest, ModelUuid, Refusal,
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::CommandResults,
    view::Frame,
};
use periapt_sandbox::{ArtifactId, ArtifactKey, Options, Sandbox, artifact};

use super::{CharmError, Charms};
use crate::keeper::{
    compile::{Compile, CompileError},
    controller::{Answers, Controller, ControllerError},
    directories::Directories,
};

const CHARM: &[u8] = include_bytes!("../../../../sandbox/tests/fixtures/hello-0.1.0.charm");

fn away<T>() -> Result<T, ControllerError> {
    Err(ControllerError::Away("not in this test".to_owned()))
}

/// Has one archive, whatever digest it is asked for.
#[derive(Clone)]
struct Archives {
    archive: Result<Vec<u8>, ControllerError>,
    fetched: Arc<AtomicUsize>,
}

impl Controller for Archives {
    async fn register(&self, _: Register) -> Result<(), ControllerError> {
        away()
    }

    async fn assignments(&self) -> Result<Answers<AgentAssignments>, ControllerError> {
        away()
    }

    async fn watch(&self, _: ModelUuid, _: Option<WatchPosition>) -> Result<Answers<Frame>, ControllerError> {
        away()
    }

    async fn commands(
        &self,
        _: ModelUuid,
        _: Vec<RunnerCommand>,
    ) -> Result<CommandResults<RunnerAnswer>, ControllerError> {
        away()
    }

    async fn charm(&self, _: CharmDigest, file: &Path) -> Result<(), ControllerError> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        fs::write(file, self.archive.clone()?).map_err(|error| ControllerError::Away(error.to_string()))
    }
}

/// "Compiles" to a few bytes, or fails.
struct Compiler {
    result: Result<(), CompileError>,
    compiled: Arc<AtomicUsize>,
}

impl Compile for Compiler {
    fn compile<'a>(
        &'a self,
        component: &'a Path,
        output: &'a Path,
    ) -> BoxFuture<'a, Result<(), CompileError>> {
        async move {
            self.compiled.fetch_add(1, Ordering::Relaxed);
            // Others get their turn: whoever asks now must wait for this.
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
    charms: Option<Charms<Archives>>,
    fetched: Arc<AtomicUsize>,
    compiled: Arc<AtomicUsize>,
    engine: periapt_sandbox::CompatibilityHash,
}

impl Bench {
    fn new(archive: Result<Vec<u8>, ControllerError>, result: Result<(), CompileError>) -> Self {
        let options = Options { hooks_in_flight: 1, ..Options::default() };
        let engine = Sandbox::new(options).unwrap().compatibility_hash();
        let (fetched, compiled) = (Arc::default(), Arc::default());
        let mut bench = Self { data: tempfile::tempdir().unwrap(), charms: None, fetched, compiled, engine };
        bench.restart(archive, result);
        bench
    }

    fn working() -> Self {
        Self::new(Ok(CHARM.to_vec()), Ok(()))
    }

    /// Another keeper with the same directory.
    fn restart(&mut self, archive: Result<Vec<u8>, ControllerError>, result: Result<(), CompileError>) {
        self.charms = None;
        let directories = Arc::new(Directories::open(self.data.path()).unwrap());
        let controller = Archives { archive, fetched: Arc::clone(&self.fetched) };
        let compiler = Arc::new(Compiler { result, compiled: Arc::clone(&self.compiled) });
        self.charms = Some(Charms::new(controller, directories, compiler, self.engine));
    }

    fn charms(&self) -> &Charms<Archives> {
        self.charms.as_ref().unwrap()
    }

    fn work(&self) -> (usize, usize) {
        (self.fetched.load(Ordering::Relaxed), self.compiled.load(Ordering::Relaxed))
    }

    fn leftovers(&self) -> usize {
        fs::read_dir(self.data.path().join("incoming")).unwrap().count()
    }
}

fn digest() -> CharmDigest {
    CharmDigest::of(CHARM)
}

#[tokio::test]
async fn a_charm_is_fetched_and_compiled_once_whoever_asks_and_after_a_restart() {
    let mut bench = Bench::working();
    let (one, other) = tokio::join!(bench.charms().obtain(digest()), bench.charms().obtain(digest()));
    let ready = one.unwrap();
    assert_eq!(ready, other.unwrap());
    assert_eq!(bench.work(), (1, 1));
    assert!(ready.directory.join("charmcraft.yaml").exists());
    let key =
        ArtifactKey::new(&fs::read(bench.data.path().join("artefact.key")).unwrap().try_into().unwrap());
    let id = ArtifactId { component: ready.component, engine: bench.engine };
    artifact::verify(&bench.data.path().join("artefacts"), &id, &key).unwrap();
    assert_eq!(bench.leftovers(), 0);
    bench.restart(Ok(CHARM.to_vec()), Ok(()));
    assert_eq!(bench.charms().obtain(digest()).await.unwrap(), ready);
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
    bench.charms().obtain(digest()).await.unwrap();
    assert_eq!(bench.work(), (1, 2));
}

#[tokio::test]
async fn failures_say_whose_they_are_and_the_next_try_starts_anew() {
    let refusal = ControllerError::Refused(Refusal::not_found("no such charm"));
    let unreachable = ControllerError::Away("nobody answers".to_owned());
    let bad = CompileError::Component("it is no component".to_owned());
    let host = CompileError::Host("no processes left".to_owned());
    let archive = || Ok(CHARM.to_vec());
    for (archive, result, charms_fault) in [
        (Err(refusal), Ok(()), true),
        (Err(unreachable), Ok(()), false),
        (Ok(b"no zip".to_vec()), Ok(()), true),
        (archive(), Err(bad), true),
        (archive(), Err(host), false),
    ] {
        let bench = Bench::new(archive, result);
        for _ in 0..2 {
            let error = bench.charms().obtain(digest()).await.unwrap_err();
            assert_eq!(matches!(error, CharmError::Charm(_)), charms_fault, "{error}");
        }
        let (fetched, compiled) = bench.work();
        assert!(fetched == 2 || compiled == 2, "{fetched} {compiled}");
        assert_eq!(bench.leftovers(), 0, "nothing of a failure is kept");
    }
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
    bench.charms().keep_only([].into()).await.unwrap();
    assert!(!ready.directory.exists());
    assert_eq!(fs::read_dir(bench.data.path().join("artefacts")).unwrap().count(), 0);
}
