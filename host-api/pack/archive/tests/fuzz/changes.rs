//! Changes of valid bytes, for tests that generate uploads.

use proptest::{prelude::*, sample::Index};

/// One change of some bytes.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Flips bits of one byte.
    Flip(Index, u8),
    /// Overwrites bytes.
    Write(Index, Vec<u8>),
    /// Inserts bytes.
    Insert(Index, Vec<u8>),
    /// Removes bytes.
    Cut(Index, usize),
    /// Repeats bytes elsewhere.
    Repeat(Index, usize, Index),
    /// Removes the rest.
    End(Index),
}

/// Returns the largest and smallest numbers of the formats, and bytes with a meaning in them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![0xff, 0xff, 0xff, 0xff, 0x0f]),
        Just(vec![0xff; 8]),
        Just(vec![0; 4]),
        Just(b"PK\x01\x02".to_vec()),
        Just(b"\0asm\x0d\0\x01\0".to_vec()),
        prop::collection::vec(any::<u8>(), 1..16),
    ]
}

/// Returns a few changes.
pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || any::<Index>();
    let change = prop_oneof![
        4 => (at(), 1..=u8::MAX).prop_map(|(at, bits)| Change::Flip(at, bits)),
        3 => (at(), bytes()).prop_map(|(at, bytes)| Change::Write(at, bytes)),
        2 => (at(), bytes()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), 1..64_usize).prop_map(|(at, length)| Change::Cut(at, length)),
        2 => (at(), 1..512_usize, at()).prop_map(|(at, length, to)| Change::Repeat(at, length, to)),
        1 => at().prop_map(Change::End),
    ];
    prop::collection::vec(change, 1..8)
}

/// Applies changes to bytes.
pub(crate) fn changed(original: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for change in changes {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        let span = |at: &Index, most: usize| {
            let from = at.index(length);
            from..from.saturating_add(most).min(length)
        };
        match change {
            Change::Flip(at, bits) => bytes[at.index(length)] ^= bits,
            Change::Write(at, new) => {
                let span = span(at, new.len());
                bytes.splice(span, new.iter().copied());
            }
            Change::Insert(at, new) => {
                let span = span(at, 0);
                bytes.splice(span, new.iter().copied());
            }
            Change::Cut(at, most) => drop(bytes.drain(span(at, *most))),
            Change::Repeat(at, most, to) => {
                let piece = bytes[span(at, *most)].to_vec();
                bytes.splice(span(to, 0), piece);
            }
            Change::End(at) => bytes.truncate(at.index(length)),
        }
    }
    bytes
}
