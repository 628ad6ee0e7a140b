//! Layers that lie on each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{Below, DirectoryOrigin, EntryKind, LayerEntry, LayerTable, parent};
use crate::shown::shown;

/// The entries of all layers as they are seen from above.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedTable {
    /// The entries by path, each with the number of the layer that has it, from 0. There are no whiteouts.
    pub entries: BTreeMap<String, (usize, LayerEntry)>,
    /// The directories that a later layer names in paths alone. The entry is that of the earlier layer, and an overlay
    /// of the layers' directories shows mode, time and owner of the later one.
    pub shadowed: BTreeSet<String>,
}

/// Lays layers on each other, the first at the bottom.
///
/// # Errors
/// A layer has an entry below something that is no directory: a link, for example. Programs disagree on where such an
/// entry lies.
pub(crate) fn merge<'a>(layers: impl IntoIterator<Item = &'a LayerTable>) -> Result<MergedTable, String> {
    let mut merged = MergedTable::default();
    for (number, layer) in layers.into_iter().enumerate() {
        lay(&mut merged, number, layer)?;
    }
    // An image without an entry for its root has one all the same.
    let MergedTable { entries, shadowed } = &mut merged;
    shadowed.retain(|path| entries.get(path).is_some_and(|(_, entry)| entry.is_directory()));
    merged.entries.entry(String::new()).or_insert_with(|| (0, LayerEntry::implied()));
    Ok(merged)
}

fn lay(
    MergedTable { entries, shadowed }: &mut MergedTable,
    number: usize,
    layer: &LayerTable,
) -> Result<(), String> {
    for (path, entry) in layer.parents_first() {
        match &entry.kind {
            EntryKind::Whiteout => {
                entries.remove(path);
                remove_below(entries, path);
                continue;
            }
            EntryKind::Directory { below, origin } => {
                let is_directory = entries.get(path).map(|(_, entry)| entry.is_directory());
                match (origin, is_directory) {
                    (DirectoryOrigin::Path, Some(false)) => {
                        return Err(format!(
                            "layer {} has files below {}, which is no directory in an earlier layer",
                            number + 1,
                            shown(path)
                        ));
                    }
                    (DirectoryOrigin::Path, Some(true)) => {
                        shadowed.insert(path.to_owned());
                        if *below == Below::Hidden {
                            remove_below(entries, path);
                        }
                        continue;
                    }
                    _ => {}
                }
                if *below == Below::Hidden {
                    remove_below(entries, path);
                }
            }
            _ => remove_below(entries, path),
        }
        shadowed.remove(path);
        let mut entry = entry.clone();
        if let EntryKind::Directory { below, .. } = &mut entry.kind {
            *below = Below::Shown;
        }
        entries.insert(path.to_owned(), (number, entry));
    }
    Ok(())
}

/// Removes all entries below a path, and not the entry itself.
fn remove_below(entries: &mut BTreeMap<String, (usize, LayerEntry)>, path: &str) {
    if path.is_empty() {
        entries.retain(|path, _| path.is_empty());
        return;
    }
    // What lies below begins with the path and a `/`; the character after `/` ends the range. Each entry is removed
    // once, so that many whiteouts cost no more than what they remove.
    let (from, to) = (format!("{path}/"), format!("{path}0"));
    let below: Vec<String> = entries.range(from..to).map(|(path, _)| path.clone()).collect();
    for path in below {
        entries.remove(&path);
    }
}

impl MergedTable {
    /// Returns true if each entry lies in a directory of the table.
    pub fn is_whole(&self) -> bool {
        self.entries.keys().all(|path| match parent(path) {
            None => true,
            Some(parent) => self.entries.get(parent).is_some_and(|(_, entry)| entry.is_directory()),
        })
    }
}

#[cfg(test)]
mod tests;
