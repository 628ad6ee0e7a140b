//! Tests of the native code of charms, with a compiler that counts.

use futures_util::future::BoxFuture;

use super::*;

/// A compiler that writes the kind of its input, and records its inputs.
#[derive(Default)]
struct Compiler(Mutex<Vec<(Part, Digest, CompileLimits)>>);

impl Compile for Compiler {
    fn compile<'a>(
        &'a self,
        part: Part,
        source: &'a Path,
        output: &'a Path,
        limits: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>> {
        Box::pin(async move {
            // Compiling takes a second, in which other tasks run.
            tokio::time::sleep(SECOND).await;
            let source = Digest::of(&fs::read(source)?);
            self.0.lock().push((part, source, limits));
            Ok(fs::write(output, part.to_string())?)
        })
    }
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// Returns a section of a component or a module.
fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], sized(content)].concat()
}

/// Returns bytes behind their length.
fn sized(content: &[u8]) -> Vec<u8> {
    let (mut length, mut bytes) = (content.len(), Vec::new());
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    [bytes, content.to_vec()].concat()
}

/// Returns a large component with an instance of a large module. The code never runs.
fn component(filler: u8) -> Vec<u8> {
    let function = sized(&vec![0; 256 << 10]);
    let code = section(10, &[vec![1], function].concat());
    let types = [section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0])].concat();
    let module = [b"\0asm\x01\0\0\0".as_slice(), &types, &code].concat();
    let instance = section(2, &[1, 0, 0, 0]);
    let rest = section(0, &[&[0], vec![filler; 5 << 20].as_slice()].concat());
    [b"\0asm\x0d\0\x01\0".as_slice(), &section(1, &module), &instance, &rest].concat()
}

struct Bench {
    data: tempfile::TempDir,
    compiler: Arc<Compiler>,
    native: Native,
}

impl Bench {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let compiler = Arc::new(Compiler::default());
        let directories = Arc::new(Directories::open(data.path()).unwrap());
        let options = periapt_sandbox::Options { hooks_in_flight: 1, ..Default::default() };
        let engine = periapt_sandbox::Sandbox::new(options).unwrap().compatibility_hash();
        let native = Native::new(directories, Arc::clone(&compiler) as _, engine, CompileLimits::default());
        Self { data, compiler, native }
    }

    fn directory(&self, filler: u8) -> PathBuf {
        let directory = self.data.path().join(format!("charm-{filler}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(files::component(&directory), component(filler)).unwrap();
        directory
    }

    /// Prepares a charm whose component is in its directory.
    async fn charm(&self, filler: u8) -> ReadyCharm {
        let (charm, directory) = (Digest::of(&[filler]), self.directory(filler));
        self.native.compiled(charm, &directory).await.unwrap()
    }

    /// Returns the parts compiled since the last call.
    fn compiled(&self) -> Vec<Part> {
        std::mem::take(&mut *self.compiler.0.lock()).into_iter().map(|(part, ..)| part).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_two_charms_share_is_compiled_once_and_in_memory_once() {
    let bench = Bench::new();
    let one = bench.charm(1).await;
    assert_eq!(bench.compiled(), [Part::Module, Part::Component]);
    let other = bench.charm(2).await;
    assert_eq!(bench.compiled(), [Part::Component]);
    assert_eq!((one.modules.len(), &one.modules), (1, &other.modules));
    assert_ne!(one.artefact, other.artefact);
    // No charm holds the code any more, so it is read from the disk.
    drop((one, other));
    bench.charm(1).await;
    assert!(bench.compiled().is_empty());
    assert_eq!(fs::read_dir(bench.data.path().join("incoming")).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn charms_that_are_asked_for_at_once_share_it_as_well() {
    let bench = Bench::new();
    for compiled in [3, 0] {
        let (one, other) = tokio::join!(bench.charm(1), bench.charm(2));
        assert_eq!(one.modules, other.modules);
        assert_eq!(bench.compiled().len(), compiled);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_compiled_is_what_was_found_within_limits_that_all_parts_share() {
    let bench = Bench::new();
    let charm = bench.charm(1).await;
    let given = bench.compiler.0.lock();
    let [(Part::Module, module, first), (Part::Component, component, second)] = given.as_slice() else {
        panic!("{given:?}");
    };
    assert_eq!((*module, *component), (charm.modules[0].digest, charm.component));
    assert_eq!(*first, CompileLimits::default());
    let (output, deadline) = (first.output - "module".len() as u64, first.deadline - SECOND);
    assert_eq!(*second, CompileLimits { output, deadline, ..*first });
}

#[tokio::test(start_paused = true)]
async fn a_module_that_is_no_more_what_was_found_is_compiled_by_nobody() {
    let bench = Bench::new();
    let directory = bench.directory(1);
    let parts = bench.native.parts(&directory).await.unwrap();
    let mut changed = component(1);
    changed[100] ^= 1;
    for bytes in [changed.as_slice(), &changed[..200]] {
        fs::write(files::component(&directory), bytes).unwrap();
        let error = bench.native.code(Digest::of(&[1]), &parts, &directory).await.unwrap_err();
        assert!(matches!(&error, CharmError::Away(text) if text.contains("changed")), "{error}");
    }
    assert!(bench.compiled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_component_that_is_too_large_is_read_by_nobody() {
    let bench = Bench::new();
    let directory = bench.directory(1);
    let large = fs::File::options().write(true).open(files::component(&directory)).unwrap();
    large.set_len(CompileLimits::default().component + 1).unwrap();
    let error = bench.native.parts(&directory).await.unwrap_err();
    assert!(matches!(error, CharmError::Charm(_)));
    assert!(error.to_string().ends_with("the component is too large: 129 MiB of at most 128 MiB"), "{error}");
    assert!(bench.native.files(Digest::of(&[1])).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_module_that_was_changed_is_made_anew() {
    let bench = Bench::new();
    bench.charm(1).await;
    bench.compiled();
    let files = bench.native.files(Digest::of(&[1]));
    let [_, component, module] = files.as_slice() else { panic!("{files:?}") };
    // The code of a component is invalid as a module, whatever its file name.
    fs::copy(component, module).unwrap();
    bench.charm(1).await;
    assert_eq!(bench.compiled(), [Part::Module]);
}

#[tokio::test(start_paused = true)]
async fn a_compiled_charm_is_ready_without_its_component_until_a_part_is_missing() {
    let bench = Bench::new();
    let charm = Digest::of(&[1]);
    assert_eq!(bench.native.ready(charm).await.unwrap(), None);
    let compiled = bench.charm(1).await;
    fs::remove_file(files::component(&bench.directory(1))).unwrap();
    assert_eq!(bench.native.ready(charm).await.unwrap().unwrap().modules, compiled.modules);
    drop(compiled);
    let [parts, component, module] = bench.native.files(charm).try_into().unwrap();
    for missing in [module, component, parts] {
        assert!(bench.native.ready(charm).await.unwrap().is_some());
        fs::remove_file(missing).unwrap();
        assert_eq!(bench.native.ready(charm).await.unwrap(), None);
        bench.charm(1).await;
    }
    fs::write(&bench.native.files(charm)[0], "{}").unwrap();
    assert_eq!(bench.native.ready(charm).await.unwrap(), None);
}
