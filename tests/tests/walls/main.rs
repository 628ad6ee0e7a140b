//! The architecture's rules: the allowed dependencies between crates, the limits of pure crates, the imports between
//! modules, and the words that sources must not contain.
//!
//! The tests read `cargo metadata` and the sources.

mod bools;
mod circles;
mod graph;
mod modules;
mod mutations;
mod names;
mod prose;
mod rooms;
mod sources;
mod verbs;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::graph::Graph;
use crate::rooms::{ENGINE, LOG_ENGINE, PURE, ROOMS, STORE_ENGINE};
use crate::sources::Source;

/// The packages that a pure crate must not reach by any path: runtimes, engines, databases, random numbers.
const IMPURE: &[&str] = &[
    "tokio",
    "wasmtime",
    "wasmtime-wasi",
    "rocksdb",
    "librocksdb-sys",
    "getrandom",
    "rand",
    "fastrand",
    "mio",
    "rustix",
];

/// The dependencies of third-party crates that a pure crate reaches and cannot call. Our metadata unites the features of
/// the whole workspace: `imbl` uses traits of `rand_core`, whose feature for the system's randomness the exporter of
/// spans enables. Neither `imbl` nor a pure crate names what the feature adds, and no pure crate may depend on the first.
const NOT_CALLED: &[(&str, &str)] = &[("rand_core", "getrandom")];

/// The words of the standard library that a pure crate must not use: clocks, threads, I/O, unordered maps.
const IMPURE_WORDS: &[&str] = &[
    "std::time::Instant",
    "SystemTime",
    "std::thread",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::io::std",
    "HashMap",
    "HashSet",
];

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().with_context(|| format!("the repository's root, {}", root.display()))
}

fn host_workspace() -> anyhow::Result<Graph> {
    Graph::resolved(&root()?.join("Cargo.toml"))
}

/// Fails with one line per breach.
fn no_breaches(wall: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{wall}:\n  {}\n", breaches.join("\n  "));
}

#[test]
fn every_member_of_the_workspace_is_a_known_room() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut breaches = Vec::new();
    for member in graph.members() {
        if !ROOMS.iter().any(|room| room.name == member) {
            breaches
                .push(format!("{member} is not in tests/tests/walls/rooms.rs: say which rooms it may know"));
        }
    }
    for room in ROOMS {
        if !graph.members().any(|member| member == room.name) {
            breaches
                .push(format!("{} is in tests/tests/walls/rooms.rs, but no crate has that name", room.name));
        }
    }
    no_breaches("the table of rooms and the workspace differ", &breaches);
    Ok(())
}

#[test]
fn a_room_knows_only_the_rooms_that_its_arrows_reach() -> anyhow::Result<()> {
    no_breaches("rooms know what they must not", &rooms::breaches(ROOMS, &host_workspace()?.room_edges()));
    Ok(())
}

#[test]
fn an_edge_past_the_arrows_is_a_breach() {
    let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let breaches = rooms::breaches(
        ROOMS,
        &[
            edge("periapt-agent", "periapt-hook"),
            edge("periapt-uniter", "periapt-hook"),
            edge("periapt-model", "periapt-store"),
        ],
    );
    assert_eq!(breaches.len(), 2, "{breaches:?}");
    assert!(
        breaches.iter().any(|breach| breach.starts_with("periapt-uniter depends on periapt-hook")),
        "{breaches:?}"
    );
    assert!(
        breaches.iter().any(|breach| breach.starts_with("periapt-model depends on periapt-store")),
        "{breaches:?}"
    );
}

#[test]
fn a_charm_knows_the_sdk_and_no_room() -> anyhow::Result<()> {
    let charms = Graph::declared(&root()?.join("charms/Cargo.toml"))?;
    let mut breaches = Vec::new();
    for (from, to) in charms.room_edges() {
        if to != "periapt-sdk" {
            breaches.push(format!("{from} depends on {to}, but a charm may know only periapt-sdk"));
        }
    }
    no_breaches("charms know what they must not", &breaches);
    Ok(())
}

#[test]
fn a_pure_crate_reaches_no_runtime_no_engine_no_store_and_no_chance() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut breaches = Vec::new();
    for pure in PURE {
        for impure in IMPURE {
            if let Some(path) = graph.path(pure, impure, NOT_CALLED)? {
                breaches.push(format!("{pure} reaches {impure}: {}", path.join(" -> ")));
            }
        }
        for (of, dependency) in graph.declared_dependencies() {
            if of == *pure && NOT_CALLED.iter().any(|(first, _)| first == dependency) {
                breaches.push(format!("{pure} depends on {dependency}, whose impure features others enable"));
            }
        }
    }
    no_breaches("pure crates are not pure", &breaches);
    Ok(())
}

#[test]
fn the_search_for_impure_crates_finds_them_where_they_are() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    for (from, to) in [
        ("periapt-sandbox", "wasmtime"),
        ("periapt-agent", "wasmtime-wasi"),
        ("periapt-client", "tokio"),
        ("periapt-controller", "librocksdb-sys"),
        ("periapt", "getrandom"),
    ] {
        assert!(
            graph.path(from, to, &[])?.is_some(),
            "{from} must reach {to}, or this search proves nothing"
        );
    }
    Ok(())
}

#[test]
fn one_crate_names_the_engine_and_one_the_database() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut breaches = Vec::new();
    for (member, dependency) in graph.declared_dependencies() {
        for (owner, owned) in [ENGINE, STORE_ENGINE, LOG_ENGINE] {
            if owned.contains(&dependency.as_str()) && member != owner {
                breaches.push(format!("{member} names {dependency}, but only {owner} may"));
            }
        }
    }
    no_breaches("an engine is named outside its room", &breaches);
    for (owner, owned) in [ENGINE, STORE_ENGINE, LOG_ENGINE] {
        for name in owned {
            let named = graph
                .declared_dependencies()
                .any(|(member, dependency)| member == owner && dependency == *name);
            assert!(
                named || *name == "librocksdb-sys",
                "{owner} no longer names {name}: this wall guards nothing"
            );
        }
    }
    Ok(())
}

#[test]
fn the_controller_reads_archives_in_its_helper_alone() -> anyhow::Result<()> {
    let sources = sources::rust(&root()?.join("controller/server/src"))?;
    let (helper, others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| source.path.ends_with("controller/server/src/check.rs"));
    let reads = |source: &&Source| source.code().lines_with(&["periapt_archive"]);
    assert_eq!(helper.iter().flat_map(reads).count(), 1, "the helper reads none: this wall guards nothing");
    no_breaches(
        "archives are read by the controller itself",
        &others.iter().flat_map(reads).collect::<Vec<_>>(),
    );
    Ok(())
}

#[test]
fn a_module_is_a_file_beside_its_folder() -> anyhow::Result<()> {
    let breaches: Vec<String> = sources::rust(&root()?)?
        .iter()
        .filter(|source| source.path.file_name().is_some_and(|name| name == "mod.rs"))
        .map(|source| {
            format!("{}: move it to the file of its folder's name, beside the folder", source.path.display())
        })
        .collect();
    no_breaches("there are mod.rs files", &breaches);
    Ok(())
}

#[test]
fn no_source_leaves_work_undone() -> anyhow::Result<()> {
    // Concatenated, so that this file does not contain the words.
    let undone = [concat!("to", "do!("), concat!("unimple", "mented!(")];
    let breaches =
        sources::rust(&root()?)?.iter().flat_map(|source| source.lines_with(&undone)).collect::<Vec<_>>();
    no_breaches("sources leave work undone", &breaches);
    Ok(())
}

#[test]
fn a_pure_crate_asks_the_standard_library_for_no_clock_no_thread_and_no_world() -> anyhow::Result<()> {
    let graph = host_workspace()?;
    let mut breaches = Vec::new();
    for pure in PURE {
        let sources = sources::rust(&graph.directory(pure)?.join("src"))?;
        assert!(!sources.is_empty(), "{pure} has no sources: this wall guards nothing");
        breaches.extend(sources.iter().flat_map(|source| source.code().lines_with(IMPURE_WORDS)));
    }
    no_breaches("pure crates are not pure", &breaches);
    Ok(())
}

#[test]
fn the_search_in_sources_sees_code_and_skips_comments_and_tests() {
    let source = Source {
        path: PathBuf::from("some.rs"),
        text: "//! No HashMap here.\nuse std::collections::HashMap; // a HashMap\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"
            .to_owned(),
    };
    assert_eq!(source.code().lines_with(IMPURE_WORDS), ["some.rs:2: HashMap"]);
    assert_eq!(source.lines_with(&["std::fs"]), ["some.rs:6: std::fs"]);
}

/// The reserved words of the command line: what a breach does, the words, and the suffixes of the files that may
/// contain them.
const RESERVED_WORDS: [(&str, &[&str], &[&str]); 3] = [
    (
        "writes what people and programs read past cli/src/output, which escapes it and tells what could not be written",
        &["println!", "print!(", "stdout()", "stderr()", "anstream", "indicatif", ".exit()"],
        &[
            "src/output/sink.rs",
            "src/output/file.rs",
            "src/output/text.rs",
            "src/output/style.rs",
            "src/output/progress.rs",
        ],
    ),
    (
        "writes files past cli/src/output/file.rs, which puts nothing in the place of devices, FIFOs and links",
        &["fs::write", "File::create", "fs::rename", "OpenOptions", "File::options", "fs::copy"],
        // The client's own files, and the logs of services.
        &[
            "src/output/file.rs",
            "src/data/file.rs",
            "src/data/last_seen.rs",
            "src/data/accounts.rs",
            "src/data/starting.rs",
            "src/process/detached.rs",
            "src/service/log.rs",
            "src/input.rs",
        ],
    ),
    (
        "reads past cli/src/input.rs, which bounds it",
        &["fs::read(", "read_to_string", "read_to_end", "File::open", "stdin()", "read_line"],
        // The client's own files, the system's data on processes, and a terminal whose echo is switched off.
        &[
            "src/input.rs",
            "src/data/file.rs",
            "src/data/last_seen.rs",
            "src/data/accounts.rs",
            "src/data/starting.rs",
            "src/process/id.rs",
            "src/process/detached.rs",
            "src/secret_input.rs",
        ],
    ),
];

#[test]
fn the_command_line_reads_and_writes_in_its_own_modules_alone() -> anyhow::Result<()> {
    let sources = sources::rust(&root()?.join("cli/src"))?;
    let mut breaches = Vec::new();
    for (breach, words, allowed) in RESERVED_WORDS {
        for file in allowed {
            assert!(sources.iter().any(|source| source.path.ends_with(file)), "{file} does not exist");
        }
        let is_test = |source: &&Source| source.path.ends_with("tests.rs");
        let others = sources.iter().filter(|source| !is_test(source));
        let others = others.filter(|source| !allowed.iter().any(|file| source.path.ends_with(file)));
        breaches.extend(others.flat_map(|source| {
            let found = source.code().lines_with(words);
            found.into_iter().map(move |line| format!("{line} {breach}"))
        }));
        let used = |word: &&str| sources.iter().any(|source| !source.code().lines_with(&[word]).is_empty());
        assert!(words.iter().any(used), "no source has one of {words:?} any more: remove the entry");
    }
    no_breaches("commands read or write outside of the modules for input and output", &breaches);
    Ok(())
}
