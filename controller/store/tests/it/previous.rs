//! Stored forms that the previous release does not write: below their level they are refused, or they may be lost.
//!
//! Controllers of two releases share one log while their programs are upgraded (`docs/design/replication.md`). The
//! older program drops what it does not know when it writes the same entity again. `tests/previous.json` holds the
//! digests of the samples as the release that `packaging/previous` names writes them: `PERIAPT_PREVIOUS=1` writes the
//! file from a tree's samples, and is for the tree of a release.

use std::{collections::BTreeMap, fs, path::PathBuf};

use periapt_host_api::Digest;

use crate::forms::{Stored, today};

/// The fate of a form while a controller runs the previous release.
#[derive(Debug, Clone, Copy)]
enum BelowLevel {
    /// The commands that store it are refused, which this test of the model shows.
    Refused(&'static str),
    /// An older program may drop it, which does no harm for this reason.
    MayBeLost(&'static str),
}
use BelowLevel::{MayBeLost, Refused};

const CHARMS: BelowLevel =
    Refused("charms_with_containers_are_refused_until_the_programs_of_all_controllers_keep_them");
const COMMITS: BelowLevel =
    Refused("commits_about_workloads_are_refused_until_the_programs_of_all_controllers_keep_them");
const COMMANDS: BelowLevel = Refused("what_an_earlier_program_does_not_know_is_refused_below_its_level");
const LIMITS: BelowLevel = Refused("limits_are_refused_until_the_programs_of_all_controllers_know_them");
const OF_AGENTS: BelowLevel =
    MayBeLost("agents report it when they start; docs/ha.md says which are started again");

/// The kinds and names of all samples that are new or changed since the previous release, and what becomes of them.
const CLASSIFIED: &[(&str, &[&str], BelowLevel)] = &[
    (
        "agent",
        &["with-container-problem", "with-firewall-problem", "with-peer-port", "with-program"],
        OF_AGENTS,
    ),
    ("application", &["with-budgets-and-usage"], LIMITS),
    ("application", &["with-image", "with-workload-crash", "with-workload-egress"], COMMANDS),
    (
        "application",
        &["with-former-charms"],
        MayBeLost("a refresh back to a charm that the model does not keep uploads it again"),
    ),
    ("charm", &["with-containers", "with-workloads"], CHARMS),
    ("charm", &["with-reader"], MayBeLost("the archive is read again at its next upload")),
    ("controller", &["with-level"], MayBeLost("it is stored once no controller runs the previous release")),
    ("controller", &["with-members", "with-program"], COMMANDS),
    ("controller", &["with-model-defaults"], LIMITS),
    (
        "model",
        &["arrived", "exporting", "failed-to-migrate", "given-up", "handed-over", "importing", "moved"],
        COMMANDS,
    ),
    ("model", &["with-budgets-and-usage", "with-settings"], LIMITS),
    ("model", &["with-no-workload-egress", "with-workload-egress"], COMMANDS),
    (
        "record-journal",
        &["pebble-check-failed", "pebble-check-recovered", "pebble-custom-notice", "pebble-ready"],
        COMMITS,
    ),
    (
        "record-journal",
        &["with-unrecorded-streams"],
        MayBeLost("the record still counts the calls that it omits, so it is known not to be replayable"),
    ),
    (
        "reported-workloads",
        &["down", "driver-namespaces", "driver-plain", "driver-wasm", "ports-alone", "running", "starting"],
        COMMANDS,
    ),
    ("resource-content", &["in-parts", "with-image"], COMMANDS),
    (
        "unit",
        &[
            "continue",
            "deploy-failed",
            "hook-failed",
            "hook-queued",
            "with-a-hook-beside-workloads",
            "with-a-hook-that-was-cut-short",
        ],
        COMMITS,
    ),
];

/// The tests of the model that show refusals.
const TESTS: [&str; 2] =
    [include_str!("../../../model/tests/it/levels.rs"), include_str!("../../../model/tests/it/limits.rs")];

/// Digests of stored values by kind and name.
type Digests = BTreeMap<String, BTreeMap<String, Digest>>;

#[test]
fn what_the_previous_release_does_not_write_is_refused_below_its_level_or_may_be_lost() {
    let today = digests();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/previous.json");
    if std::env::var_os("PERIAPT_PREVIOUS").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&today).unwrap() + "\n").unwrap();
    }
    let previous: Digests = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let wrote = |kind: &str, name: &str| previous.get(kind).and_then(|samples| samples.get(name)).copied();
    let samples = today.iter().flat_map(|(kind, samples)| {
        samples.iter().map(move |(name, digest)| (kind.as_str(), name.as_str(), *digest))
    });
    let new = samples.filter(|(kind, name, digest)| wrote(kind, name) != Some(*digest));
    let new: Vec<_> = new.map(|(kind, name, _)| (kind, name)).collect();
    let mut classified: Vec<_> =
        CLASSIFIED.iter().flat_map(|(kind, names, _)| names.iter().map(|name| (*kind, *name))).collect();
    classified.sort_unstable();
    assert_eq!(
        new, classified,
        "the forms that the previous release does not write (left) and those that this file classifies (right): say \
         of each whether it is refused below its level, and by which test, or may be lost, and why"
    );
}

#[test]
fn refusals_below_a_level_are_shown_by_tests() {
    for (kind, names, below) in CLASSIFIED {
        match below {
            Refused(test) => {
                let declared = format!("#[test]\nfn {test}() {{");
                let is_there = TESTS.iter().any(|tests| tests.contains(&declared));
                assert!(is_there, "{kind} {names:?}: there is no test {test}");
            }
            MayBeLost(reason) => assert!(reason.contains(' '), "{kind} {names:?} is lost for a reason"),
        }
    }
}

/// Returns the digests of the samples as they are written today.
fn digests() -> Digests {
    let digest = |stored: &Stored| Digest::of(&serde_json::to_vec(stored).unwrap());
    today()
        .iter()
        .map(|(kind, samples)| {
            let samples = samples.iter().map(|(name, stored)| (name.clone(), digest(stored)));
            ((*kind).to_owned(), samples.collect())
        })
        .collect()
}
