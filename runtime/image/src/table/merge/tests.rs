use proptest::{prelude::*, sample::select};

use super::*;

fn file() -> EntryKind {
    EntryKind::File { size: 1 }
}

fn directory(below: Below, origin: DirectoryOrigin) -> EntryKind {
    EntryKind::Directory { below, origin }
}

fn layer(entries: &[(&str, EntryKind)]) -> LayerTable {
    let entry = |kind: &EntryKind| LayerEntry { kind: kind.clone(), ..LayerEntry::implied() };
    LayerTable { entries: entries.iter().map(|(path, kind)| ((*path).to_owned(), entry(kind))).collect() }
}

/// Returns the paths that are seen, with the layer that has each.
fn seen(layers: &[LayerTable]) -> Vec<(String, usize)> {
    let merged = merge(layers).unwrap();
    assert!(merged.is_whole(), "{merged:?}");
    let entries = merged.entries.into_iter().filter(|(path, _)| !path.is_empty());
    entries.map(|(path, (layer, _))| (path, layer)).collect()
}

fn named(paths: &[(&str, usize)]) -> Vec<(String, usize)> {
    paths.iter().map(|(path, layer)| ((*path).to_owned(), *layer)).collect()
}

const SHOWN: EntryKind = EntryKind::Directory { below: Below::Shown, origin: DirectoryOrigin::Entry };

#[test]
fn whiteouts_and_opaque_directories_remove_what_is_below_them() {
    let lower = layer(&[
        ("a", SHOWN),
        ("a-b", file()),
        ("a/x", file()),
        ("a0", file()),
        ("b", SHOWN),
        ("b/y", file()),
    ]);
    let upper = layer(&[
        ("a", EntryKind::Whiteout),
        ("b", directory(Below::Hidden, DirectoryOrigin::Entry)),
        ("b/z", file()),
    ]);
    let expected = [("a-b", 0), ("a0", 0), ("b", 1), ("b/z", 1)];
    assert_eq!(seen(&[lower, upper]), named(&expected));
}

#[test]
fn a_file_in_the_place_of_a_directory_hides_its_content_and_the_other_way() {
    let lower = layer(&[("a", SHOWN), ("a/x", file()), ("b", file())]);
    let upper = layer(&[("a", file()), ("b", SHOWN), ("b/y", file())]);
    assert_eq!(seen(&[lower, upper]), named(&[("a", 1), ("b", 1), ("b/y", 1)]));
}

#[test]
fn a_directory_that_a_path_alone_names_keeps_its_owner_and_is_told() {
    let lower = layer(&[("a", SHOWN), ("a/x", file())]);
    let upper = layer(&[("a", directory(Below::Shown, DirectoryOrigin::Path)), ("a/y", file())]);
    let merged = merge(&[lower, upper]).unwrap();
    assert_eq!(merged.entries["a"].0, 0);
    assert_eq!(merged.shadowed.iter().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn files_below_a_link_of_an_earlier_layer_are_refused() {
    let lower = layer(&[("bin", EntryKind::Link { target: "usr/bin".into() })]);
    let upper = layer(&[("bin", directory(Below::Shown, DirectoryOrigin::Path)), ("bin/x", file())]);
    let error = merge(&[lower.clone(), upper]).unwrap_err();
    assert_eq!(error, "layer 2 has files below bin, which is no directory in an earlier layer");
    let upper = layer(&[("bin", SHOWN), ("bin/x", file())]);
    assert_eq!(seen(&[lower, upper]), named(&[("bin", 1), ("bin/x", 1)]));
}

/// Returns layers over a few paths, each with the directories above its entries.
fn layers() -> impl Strategy<Value = Vec<LayerTable>> {
    let path = select(vec!["a", "a/b", "a/b/c", "a-b", "b", "b/a"]);
    let kind = select(vec![
        file(),
        EntryKind::Whiteout,
        EntryKind::Link { target: "a".into() },
        SHOWN,
        directory(Below::Hidden, DirectoryOrigin::Entry),
        directory(Below::Hidden, DirectoryOrigin::Path),
    ]);
    let one = prop::collection::btree_map(path, kind, 0..5).prop_map(|map| {
        let mut table = layer(&[]);
        for (path, kind) in map {
            let mut above = parent(path);
            while let Some(directory) = above {
                table.entries.entry(directory.to_owned()).or_insert_with(LayerEntry::implied);
                above = parent(directory);
            }
            let entry = LayerEntry { kind, ..LayerEntry::implied() };
            table.entries.insert(path.to_owned(), entry);
        }
        // What is no directory has nothing below it.
        let blocked: Vec<String> = table
            .entries
            .iter()
            .filter(|(_, entry)| !entry.is_directory())
            .map(|(path, _)| format!("{path}/"))
            .collect();
        table.entries.retain(|path, _| !blocked.iter().any(|before| path.starts_with(before.as_str())));
        table
    });
    prop::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_layers_lie_on_each_other_each_entry_lies_in_a_directory(layers in layers()) {
        if let Ok(merged) = merge(&layers) {
            prop_assert!(merged.is_whole(), "{:?}", merged);
            prop_assert!(merged.entries.values().all(|(_, entry)| entry.kind != EntryKind::Whiteout));
        }
    }

    #[test]
    fn laying_layers_one_by_one_is_laying_them_at_once(layers in layers()) {
        let mut at_once = merge(&layers);
        let mut one_by_one: Result<_, String> = Ok(MergedTable::default());
        for (number, layer) in layers.iter().enumerate() {
            one_by_one = one_by_one.and_then(|mut merged| {
                lay(&mut merged, number, layer)?;
                merged.shadowed.clear();
                Ok(merged)
            });
        }
        if let (Ok(at_once), Ok(one_by_one)) = (&mut at_once, &mut one_by_one) {
            at_once.entries.remove("");
            one_by_one.entries.remove("");
            prop_assert_eq!(&at_once.entries, &one_by_one.entries);
        } else {
            prop_assert_eq!(at_once.is_ok(), one_by_one.is_ok());
        }
    }
}
