//! Import circles: modules of a crate that all reach each other by imports. None of them can be understood, tested or
//! moved without the others.

mod remaining;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;

use crate::modules::{Import, ModulePath, Modules};
use remaining::{Circle, REMAINING};

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

/// Returns one text for each breach of a crate: a circle that is not listed, with its imports, and an entry of the
/// list that no longer holds.
fn breaches(remaining: &[Circle], room: &str, imports: &[Import]) -> Vec<String> {
    let found = of(imports);
    let listed: Vec<BTreeSet<String>> = remaining
        .iter()
        .filter(|circle| circle.room == room)
        .map(|circle| circle.modules.iter().map(|name| (*name).to_owned()).collect())
        .collect();
    let mut breaches = Vec::new();
    for circle in found.iter().filter(|circle| !listed.contains(circle)) {
        let known = listed.iter().find(|listed| circle.is_subset(listed));
        let entry = format!("Circle {{ room: {room:?}, modules: &{:?} }}", Vec::from_iter(circle));
        breaches.push(match known {
            Some(_) => format!("{room}: a circle has shrunk, write what remains of it: {entry}"),
            None => format!(
                "{room}: {} modules import each other in a circle ({entry}):{}",
                circle.len(),
                ways(circle, imports)
            ),
        });
    }
    for circle in listed.iter().filter(|listed| !found.iter().any(|found| found.is_subset(listed))) {
        breaches.push(format!("{room}: {circle:?} is no circle any more: take it off the list"));
    }
    breaches
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
fn modules_of_a_crate_import_each_other_in_no_circle_but_those_listed() -> anyhow::Result<()> {
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
        found.extend(breaches(REMAINING, room, &imports));
    }
    let gone = REMAINING.iter().filter(|circle| !graph.members().any(|member| member == circle.room));
    found.extend(gone.map(|circle| format!("{}: no crate has that name", circle.room)));
    crate::no_breaches("import circles differ from tests/tests/walls/circles/remaining.rs", &found);
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
fn a_circle_that_is_new_or_has_grown_or_shrunk_or_gone_is_a_breach() {
    let listed = [Circle { room: "room", modules: &["a", "b", "c"] }];
    let whole = [import("a", "b"), import("b", "c"), import("c", "a")];
    let pair = [import("a", "b"), import("b", "a")];
    let grown = [whole.as_slice(), &[import("a", "d"), import("d", "a")]].concat();
    let only = |remaining: &[Circle], imports: &[Import]| -> String {
        breaches(remaining, "room", imports).join("; ")
    };
    assert_eq!(only(&listed, &whole), "");
    assert!(only(&[], &pair).contains("2 modules import each other in a circle"), "{}", only(&[], &pair));
    assert!(only(&[], &pair).contains("a imports b (crate::b)"), "{}", only(&[], &pair));
    assert!(only(&listed, &grown).contains("4 modules import each other"), "{}", only(&listed, &grown));
    assert!(only(&listed, &pair).starts_with("room: a circle has shrunk"), "{}", only(&listed, &pair));
    assert!(only(&listed, &[]).contains("is no circle any more"), "{}", only(&listed, &[]));
    assert!(breaches(&listed, "other", &whole).join("").contains("import each other in a circle"));
}
