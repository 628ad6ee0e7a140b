//! The parts of an image's archive: its layers, and the rest of it. Images share layers, so the controller keeps each
//! layer once.

use std::{collections::BTreeSet, ops::Range};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, rule::BrokenRule};

/// The most layers that are parts of their own. One commit registers all of them, and a commit has at most 100 keys. An
/// image may have more layers: the smallest ones stay in the frame.
pub const MAX_ARCHIVE_LAYERS: usize = 64;

/// The longest first line of an upload that leaves out layers, in bytes. The places of all layers fit.
pub const MAX_PARTIAL_HEAD: usize = 64 << 10;

/// The smallest layer that is a part of its own, in bytes. The disk has no smaller block, and a smaller layer costs more as
/// a blob than it saves.
pub const MIN_ARCHIVE_LAYER: u64 = 4 << 10;

/// The parts of an archive with an image. Each is a content of its own; together they are the archive, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ArchiveParts {
    /// The digest of the archive's bytes outside of the layers, one after the other: headers and documents.
    pub frame: Digest,
    /// The layers, in the order of the archive.
    pub layers: Vec<ArchiveLayer>,
}

/// The place of a layer in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ArchiveLayer {
    /// The number of bytes before it.
    pub at: u64,
    /// The size in bytes.
    pub size: u64,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// The first line of an upload that leaves out layers which the controller has, as JSON. The archive's other bytes follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PartialUpload {
    /// The layers that are left out, in the order of the archive.
    pub left_out: Vec<ArchiveLayer>,
}

/// The layers in the content of a resource, by which an agent knows what it need not fetch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ContentLayers {
    /// The size of the content, in bytes.
    pub size: u64,
    /// The places of its layers; none of a content that is no image, or that is kept whole.
    #[serde(default)]
    pub layers: Vec<ArchiveLayer>,
}

/// A range of an archive that lies in one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSegment {
    /// The part's digest.
    pub part: Digest,
    /// The range of the part, in bytes.
    pub range: Range<u64>,
}

impl ArchiveLayer {
    /// Returns the layer's range in the archive, in bytes.
    pub fn range(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.size)
    }
}

impl ArchiveParts {
    /// Returns the digests of all parts, each once.
    pub fn digests(&self) -> BTreeSet<Digest> {
        self.layers.iter().map(|layer| layer.digest).chain([self.frame]).collect()
    }

    /// Returns the digests and the sizes in bytes of all parts of an archive of `size` bytes.
    pub fn sizes(&self, size: u64) -> impl Iterator<Item = (Digest, u64)> {
        let layers = self.layers.iter().map(|layer| (layer.digest, layer.size));
        let frame: u64 = frame_ranges(&self.layers, size).iter().map(|range| range.end - range.start).sum();
        layers.chain([(self.frame, frame)])
    }

    /// Returns the segments that make a range of an archive of `size` bytes, in order. None of them is empty.
    pub fn segments(&self, size: u64, range: &Range<u64>) -> Vec<ArchiveSegment> {
        let mut segments = Vec::new();
        let (mut at, mut in_frame) = (0, 0);
        let mut add = |part: Digest, place: Range<u64>, from: u64| {
            let (start, end) = (place.start.max(range.start), place.end.min(range.end));
            if start < end {
                let first = from + (start - place.start);
                segments.push(ArchiveSegment { part, range: first..first + (end - start) });
            }
        };
        for layer in &self.layers {
            let place = layer.range();
            add(self.frame, at..place.start, in_frame);
            in_frame += place.start.saturating_sub(at);
            add(layer.digest, place.clone(), 0);
            at = place.end;
        }
        add(self.frame, at..size, in_frame);
        segments
    }
}

/// Checks the places of layers in an archive of `size` bytes.
///
/// # Errors
/// There are none or too many, one is empty, or they overlap, are not in order or lie outside of the archive.
pub fn check_layers(layers: &[ArchiveLayer], size: u64) -> Result<(), BrokenRule> {
    if layers.is_empty() || layers.len() > MAX_ARCHIVE_LAYERS {
        return Err(format!("1 to {MAX_ARCHIVE_LAYERS} layers expected, found {}", layers.len()).into());
    }
    let mut before = 0;
    for layer in layers {
        let end = layer.at.checked_add(layer.size).filter(|end| *end <= size);
        let Some(end) = end.filter(|_| layer.size > 0 && layer.at >= before) else {
            return Err(format!(
                "invalid layer of {} bytes at {} of {size}: layers have bytes, lie in the archive one after the other, and do \
                 not overlap",
                layer.size, layer.at
            )
            .into());
        };
        before = end;
    }
    Ok(())
}

/// Returns the ranges of an archive of `size` bytes that are outside of its layers, in order. None of them is empty.
pub fn frame_ranges(layers: &[ArchiveLayer], size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    for layer in layers {
        ranges.push(at..layer.at);
        at = layer.range().end;
    }
    ranges.push(at..size);
    ranges.retain(|range| range.start < range.end);
    ranges
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn layer(at: u64, size: u64, name: &str) -> ArchiveLayer {
        ArchiveLayer { at, size, digest: Digest::of(name.as_bytes()) }
    }

    fn cut(bytes: &[u8], range: &Range<u64>) -> Vec<u8> {
        bytes.get(range.start as usize..range.end as usize).unwrap().to_vec()
    }

    /// Cuts an archive into its parts, and puts a range of it together again.
    fn put_together(archive: &[u8], layers: &[(u64, u64)], range: &Range<u64>) -> Vec<u8> {
        let (size, mut parts) = (archive.len() as u64, BTreeMap::new());
        let mut places = Vec::new();
        for (at, size) in layers {
            let bytes = cut(archive, &(*at..at + size));
            places.push(ArchiveLayer { at: *at, size: *size, digest: Digest::of(&bytes) });
            parts.insert(Digest::of(&bytes), bytes);
        }
        check_layers(&places, size).unwrap();
        let frame = frame_ranges(&places, size).iter().map(|range| cut(archive, range)).collect::<Vec<_>>();
        let frame = frame.concat();
        let all = ArchiveParts { frame: Digest::of(&frame), layers: places };
        parts.insert(all.frame, frame);
        for (digest, size) in all.sizes(size) {
            assert_eq!(parts[&digest].len() as u64, size);
        }
        let segments = all.segments(size, range);
        let pieces = segments.iter().map(|segment| cut(&parts[&segment.part], &segment.range));
        pieces.collect::<Vec<_>>().concat()
    }

    #[test]
    fn every_range_of_an_archive_is_put_together_of_its_parts() {
        let archive: Vec<u8> = (0..40).collect();
        for layers in [&[(5, 10), (20, 3)][..], &[(0, 4), (4, 4)], &[(30, 10)], &[(0, 40)]] {
            for start in 0..=40 {
                for end in start..=40 {
                    let range = start..end;
                    assert_eq!(put_together(&archive, layers, &range), cut(&archive, &range), "{layers:?}");
                }
            }
        }
    }

    #[test]
    fn the_places_of_all_layers_fit_into_the_first_line_of_an_upload() {
        let left_out = vec![layer(u64::MAX, u64::MAX, "layer"); MAX_ARCHIVE_LAYERS];
        let line = serde_json::to_vec(&PartialUpload { left_out }).unwrap();
        assert!(line.len() <= MAX_PARTIAL_HEAD && !line.contains(&b'\n'), "{}", line.len());
    }

    #[test]
    fn the_same_layer_may_lie_in_an_archive_twice() {
        let archive = b"head-same-and-same-tail";
        assert_eq!(put_together(archive, &[(5, 4), (14, 4)], &(0..23)), archive);
        let parts =
            ArchiveParts { frame: Digest::of(b"frame"), layers: vec![layer(0, 1, "a"), layer(1, 1, "a")] };
        assert_eq!(parts.digests().len(), 2);
    }

    #[test]
    fn layers_that_no_archive_has_are_refused() {
        for (bad, size) in [
            (vec![], 10),
            (vec![layer(0, 0, "empty")], 10),
            (vec![layer(8, 3, "outside")], 10),
            (vec![layer(u64::MAX, 2, "far")], 10),
            (vec![layer(0, 5, "one"), layer(4, 2, "overlaps")], 10),
            (vec![layer(5, 2, "later"), layer(0, 2, "earlier")], 10),
            (vec![layer(0, 1, "one"); MAX_ARCHIVE_LAYERS + 1], 1 << 20),
        ] {
            assert!(check_layers(&bad, size).is_err(), "{bad:?}");
        }
        check_layers(&[layer(0, 4, "one"), layer(4, 6, "two")], 10).unwrap();
    }
}
