//! Properties of what strangers send to a pod: layers and requests of any text are taken or refused, and the pod stays
//! within its bounds.
//!
//! `fuzz/` beside this directory holds the same targets for longer runs with coverage.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

#[path = "../../fuzz/target.rs"]
mod target;

use std::{fs, path::Path, sync::LazyLock};

use proptest::{
    prelude::*,
    sample::{Index, select},
};

/// Returns the seeds of a target by the names of their files.
fn seeds(target: &str) -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let mut seeds: Vec<_> =
        paths.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), text(&path))).collect();
    seeds.sort();
    seeds
}

static PLANS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| seeds("plan"));
static REQUESTS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| seeds("requests"));

#[test]
fn each_seed_of_layers_is_taken_or_refused() {
    let taken = PLANS.iter().filter(|(_, text)| target::plan(text.as_bytes()));
    let taken: Vec<&str> = taken.map(|(name, _)| name.as_str()).collect();
    assert!(taken.contains(&"services-checks-and-targets.yaml"), "{taken:?}");
    assert!(!taken.contains(&"loop.yaml") && !taken.contains(&"refused.yaml"), "{taken:?}");
}

#[test]
fn each_seed_of_requests_is_answered() {
    let started = REQUESTS.iter().filter(|(_, text)| target::pod::requests(text.as_bytes()));
    let started: Vec<&str> = started.map(|(name, _)| name.as_str()).collect();
    for name in ["services.txt", "checks.txt", "exec.txt", "log-targets.txt"] {
        assert!(started.contains(&name), "{started:?}");
    }
}

/// Words with a meaning in layers or requests, and those that often have none.
const WORDS: &[&str] = &[
    "\n---\n",
    "\n",
    " ",
    "  ",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "- ",
    "&a ",
    "*a",
    "<<",
    "~",
    "null",
    "0",
    "-1",
    "18446744073709551616",
    "1e400",
    ".nan",
    "1ns",
    "2562047h",
    "merge",
    "replace",
    "web",
    "\u{1f}",
    "\u{2028}",
    "\u{1f980}",
    "\nroot\n",
    "\nuser 42\n",
    "\npass 60000\n",
    "\nexit 0 1\n",
    "\nfail no such program\n",
    "\nprobed refused\n",
    "\ngone\n",
    "\nend 0\n",
];

/// One change of a text.
#[derive(Debug, Clone)]
enum Change {
    /// Inserts a word.
    Insert(Index, &'static str),
    /// Writes a word over others.
    Write(Index, &'static str),
    /// Removes letters.
    Cut(Index, usize),
    /// Repeats letters elsewhere.
    Repeat(Index, usize, Index),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let (at, word) = (any::<Index>, || select(WORDS));
    let change = prop_oneof![
        3 => (at(), word()).prop_map(|(at, word)| Change::Insert(at, word)),
        3 => (at(), word()).prop_map(|(at, word)| Change::Write(at, word)),
        2 => (at(), 1..64_usize).prop_map(|(at, most)| Change::Cut(at, most)),
        2 => (at(), 1..256_usize, at()).prop_map(|(at, most, to)| Change::Repeat(at, most, to)),
    ];
    prop::collection::vec(change, 1..8)
}

/// Applies changes to a text.
fn changed(original: &str, changes: &[Change]) -> String {
    let mut letters: Vec<char> = original.chars().collect();
    for change in changes {
        let length = letters.len();
        if length == 0 {
            break;
        }
        let span = |at: &Index, most: usize| {
            let from = at.index(length);
            from..from.saturating_add(most).min(length)
        };
        match change {
            Change::Insert(at, word) => drop(letters.splice(span(at, 0), word.chars())),
            Change::Write(at, word) => drop(letters.splice(span(at, word.chars().count()), word.chars())),
            Change::Cut(at, most) => drop(letters.drain(span(at, *most))),
            Change::Repeat(at, most, to) => {
                let piece = letters[span(at, *most)].to_vec();
                drop(letters.splice(span(to, 0), piece));
            }
        }
    }
    letters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_becomes_of_layers_is_taken_or_refused((seed, changes) in (any::<Index>(), changes())) {
        let (_, text) = &PLANS[seed.index(PLANS.len())];
        target::plan(changed(text, &changes).as_bytes());
    }

    #[test]
    fn whatever_becomes_of_requests_leaves_a_pod_within_its_bounds(
        (seed, changes) in (any::<Index>(), changes()),
    ) {
        let (_, text) = &REQUESTS[seed.index(REQUESTS.len())];
        target::pod::requests(changed(text, &changes).as_bytes());
    }
}
