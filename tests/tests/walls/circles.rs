//! Import circles: modules of a crate that all reach each other by imports. None of them can be understood, tested or
//! moved without the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;

use crate::modules::{Import, ModulePath, Modules};

/// Returns the circles among a crate's imports, each as the names of its modules.
fn of(imports: &[Import]) -> Vec<BTreeSet<String>> {
    let mut next: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = BTreeMap::new();
    for import in imports {
        next.entry(&import.from).or_default().insert(&import.to);
    }
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        next.keys().map(|from| (*from, reach(&next, from))).collect();
    let reaches = |from: &ModulePath, to: &ModulePath| reached.get(from).is_some_and(|all| all.contains(to));
    let mut circles: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (from, all) in &reached {
        let circle: BTreeSet<String> =
            all.iter().filter(|to| reaches(to, from)).map(|to| to.join("::")).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Returns all modules that a module reaches, including itself if it is in a circle.
fn reach<'a>(
    next: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
    from: &'a ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        open.extend(next.get(module).into_iter().flatten().filter(|to| reached.insert(**to)));
    }
    reached
}

/// Returns one text for each circle of a crate, with its imports.
fn breaches(room: &str, imports: &[Import]) -> Vec<String> {
    let breach = |circle: BTreeSet<String>| {
        let ways = ways(&circle, imports);
        format!("{room}: {} modules import each other in a circle ({circle:?}):{ways}", circle.len())
    };
    of(imports).into_iter().map(breach).collect()
}

/// Formats the imports of a circle, one per line.
fn ways(circle: &BTreeSet<String>, imports: &[Import]) -> String {
    let lines = imports.iter().filter_map(|Import { from, to, path }| {
        let (from, to) = (from.join("::"), to.join("::"));
        (circle.contains(&from) && circle.contains(&to))
            .then(|| format!("\n    {from} imports {to} ({path})"))
    });
    lines.collect()
}

#[test]
fn modules_of_a_crate_import_each_other_in_no_circle() -> anyhow::Result<()> {
    let graph = crate::host_workspace()?;
    let mut found = Vec::new();
    for room in graph.members() {
        let (mut files, mut imports) = (0, Vec::new());
        for root in graph.crate_roots(room)? {
            let modules = Modules::read(&root, text)?;
            files += modules.count();
            imports.extend(modules.imports());
        }
        let sources = crate::sources::rust(&graph.directory(room)?.join("src"))?.len();
        assert!(files * 2 > sources, "{room}: {files} of {sources} files are read: this wall guards nothing");
        found.extend(breaches(room, &imports));
    }
    crate::no_breaches("modules import each other: move what they share to a module of its own", &found);
    Ok(())
}

fn text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

fn import(from: &str, to: &str) -> Import {
    Import { from: vec![from.to_owned()], to: vec![to.to_owned()], path: format!("crate::{to}") }
}

#[test]
fn a_way_there_and_back_is_a_circle() {
    let imports = [import("a", "b"), import("b", "c"), import("c", "a"), import("c", "d"), import("e", "a")];
    let names = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(of(&imports), [BTreeSet::from(names)]);
    assert_eq!(of(&imports[1..]), [] as [BTreeSet<String>; 0]);
}

#[test]
fn a_circle_is_told_with_its_imports() {
    let pair = [import("a", "b"), import("b", "a"), import("b", "c")];
    let [breach] = breaches("room", &pair).try_into().expect("one circle");
    assert_eq!(
        breach,
        "room: 2 modules import each other in a circle ({\"a\", \"b\"}):\n    \
         a imports b (crate::b)\n    b imports a (crate::a)"
    );
}
