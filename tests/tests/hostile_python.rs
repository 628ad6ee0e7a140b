//! Attacks by a charm in Python on its host, and their outcomes (`tests/guests/python-hostile`).
#![expect(clippy::tests_outside_test_module, reason = "this is a test program")]

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Context as _;
use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome, TrialResult};
use serde_json::json;

/// The outcome of an attack.
enum End {
    /// The charm gained nothing, noticed that, and its hook completed.
    Contained,
    /// The hook failed, with this kind of failure and this prefix of the message.
    Failed(&'static str, &'static str),
}

use End::{Contained, Failed};

/// All attacks. Limits: one second of CPU, 64 MiB of memory, 4 MiB of `/tmp`, and 100,000 calls.
const ATTACKS: &[(&str, End)] = &[
    ("nothing", Contained),
    // Time.
    ("loop", Failed("cpu-budget", "cpu budget exceeded: a hook may compute for 1 s")),
    ("loop-that-catches", Failed("host-calls", "too many host calls")),
    ("power", Failed("cpu-budget", "cpu budget exceeded")),
    ("backtrack", Failed("cpu-budget", "cpu budget exceeded")),
    // Sleeps end at once in a trial.
    ("sleep", Contained),
    // Memory.
    ("fill-memory", Failed("failed", "MemoryError")),
    ("fill-memory-and-catch", Contained),
    ("inflate", Failed("failed", "MemoryError")),
    ("recurse", Failed("failed", "RecursionError")),
    ("recurse-without-limit", Failed("out-of-memory", "out of memory: a hook may use 64 MiB")),
    ("recurse-in-native-code", Failed("stack-overflow", "stack overflow")),
    ("parse-deeply", Failed("stack-overflow", "stack overflow")),
    ("compile-deeply", Failed("stack-overflow", "stack overflow")),
    // Output: excess lines are dropped, and the hook continues.
    ("shout", Contained),
    ("shout-one-line", Failed("failed", "MemoryError")),
    ("log-much", Contained),
    // Exits.
    ("exit-early", Failed("failed", "failed with code 7")),
    ("exit-at-once", Failed("exited", "exited with code 1 before its handler returned")),
    ("exit-well-at-once", Failed("exited", "exited with code 0 before its handler returned")),
    ("abort", Failed("trapped", "trapped: aborted")),
    ("kill-itself", Failed("trapped", "trapped: aborted")),
    ("exit-in-a-finalizer", Failed("exited", "exited with code 1")),
    ("exit-at-exit", Failed("exited", "exited with code 1")),
    ("hang-at-exit", Failed("cpu-budget", "cpu budget exceeded")),
    ("raise-anything", Failed("failed", "BaseException")),
    // Host calls.
    ("write-much", Failed("limit", "too large: a call may bring 2 MiB")),
    ("write-many", Failed("failed", "subprocess.CalledProcessError: Command '('state-set'")),
    ("nest-json", Failed("failed", "subprocess.CalledProcessError: Command '('state-set'")),
    ("status-of-megabytes", Failed("limit", "too large: a call may bring 2 MiB")),
    ("arguments-in-great-number", Failed("limit", "too large: a call may bring 2 MiB")),
    ("call-for-ever", Failed("cpu-budget", "cpu budget exceeded")),
    // Files.
    ("stretch-storage", Contained),
    ("fill-tmp", Contained),
    ("fill-tmp-with-files", Contained),
    ("open-for-ever", Contained),
    ("read-the-host", Contained),
    ("change-the-charm", Contained),
    ("link-out", Contained),
    ("leave-a-link", Contained),
    // Other system interfaces.
    ("fork", Contained),
    ("threads", Contained),
    ("sockets", Contained),
    ("native", Contained),
    ("environment", Contained),
    ("signals", Contained),
];

#[test]
fn each_attack_of_a_charm_in_python_is_stopped_or_contained() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let archive = fs::read(periapt_tests::packed("python-hostile", place.path())?)?;
    let cache = CompiledCache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))?;
    let trial = Trial::open(&archive, &cache)?;
    let runtime = tokio::runtime::Runtime::new()?;

    let mut wrong = Vec::new();
    for (mode, end) in ATTACKS {
        let host = Host::new(&place.path().join(mode))?;
        let tried = runtime.block_on(trial.run(&host.scene(mode)?)).context(*mode)?;
        if let Some(said) = host.said_of(mode, end, &tried)? {
            wrong.push(said);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn each_attack_has_an_end_here() -> anyhow::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/python-hostile/src/charm.py");
    let source = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
    let written: BTreeSet<String> = source
        .lines()
        .filter_map(|line| line.strip_prefix("    def do_")?.split('(').next())
        .map(|name| name.replace('_', "-"))
        .collect();
    let known: BTreeSet<String> = ATTACKS.iter().map(|(mode, _)| (*mode).to_owned()).collect();
    assert_eq!(written, known);
    Ok(())
}

/// The files of a host: the charm's storage, and beside it another owner's secret.
struct Host {
    storage: std::path::PathBuf,
    secret: std::path::PathBuf,
}

const SECRET: &str = "another owner's";

impl Host {
    fn new(place: &Path) -> anyhow::Result<Self> {
        let (storage, neighbour) = (place.join("scratch"), place.join("neighbour"));
        fs::create_dir_all(&storage)?;
        fs::create_dir(&neighbour)?;
        let secret = neighbour.join("secret");
        fs::write(&secret, SECRET)?;
        Ok(Self { storage, secret })
    }

    fn scene(&self, mode: &str) -> anyhow::Result<Scene> {
        Ok(serde_json::from_value(json!({
            "unit": "python-hostile/0",
            "event": {"hook": "config-changed"},
            "config": {"mode": mode},
            "storages": [{"id": "scratch/0", "directory": self.storage}],
            "budgets": {
                "hook-cpu-budget": "1s",
                "hook-memory-limit": "64M",
                "hook-tmp-limit": "4M",
                "hook-call-limit": "100000",
                "hook-log-limit": "64K",
            },
        }))?)
    }

    /// Returns a description of an unexpected outcome of an attack; none if the outcome is as expected.
    fn said_of(&self, mode: &str, end: &End, tried: &TrialResult) -> anyhow::Result<Option<String>> {
        let asked = !tried.effects.ports.open.is_empty();
        let as_expected = match (end, &tried.outcome) {
            (Contained, TrialOutcome::Handled) => asked,
            (Failed(kind, message), TrialOutcome::Failed { kind: found, message: said, .. }) => {
                kind == found && said.starts_with(message) && !said.contains("Escaped") && !asked
            }
            _ => false,
        };
        let bounded = serde_json::to_string(tried)?.len() < MOST_TOLD;
        let kept = fs::read_to_string(&self.secret)? == SECRET;
        Ok((!as_expected || !bounded || !kept)
            .then(|| format!("{mode}: {:?}, asked: {asked}, bounded: {bounded}", tried.outcome)))
    }
}

/// The largest result of a trial, in bytes: a hook's log is limited to 64 KiB, and its error to less.
const MOST_TOLD: usize = 256 << 10;
