//! The entries of a backup: their names, and the header that tar has before each.

use std::fmt;

use periapt_host_api::Digest;

/// The size of tar's blocks: headers are one block, and contents are filled up to a whole number of them.
pub(super) const BLOCK: usize = 512;

/// The largest content of an entry: the most that a header's eleven octal digits can tell.
pub(super) const MAX_CONTENT: u64 = 0o777_7777_7777;

/// The longest name of a store's file.
const MAX_FILE_NAME: usize = 64;

/// The name of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryName {
    /// The manifest.
    Manifest,
    /// The encrypted keys.
    Keys,
    /// A part of what the controller keeps.
    Part(PartName),
    /// The digest of a part that is as it was in the backup that this one builds on.
    Unchanged(PartName),
    /// The digest of all before it.
    Digest,
}

/// The name of a part of what the controller keeps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartName {
    /// A file of the store.
    Store(String),
    /// A charm's archive.
    Charm(Digest),
    /// The content of a resource.
    Resource(Digest),
}

/// The directory of the parts that an incremental backup leaves out.
const UNCHANGED: &str = "unchanged/";

impl EntryName {
    fn path(&self) -> String {
        match self {
            Self::Manifest => "periapt-backup.json".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Part(part) => part.to_string(),
            Self::Unchanged(part) => format!("{UNCHANGED}{part}"),
            Self::Digest => "digest".to_owned(),
        }
    }

    fn parse(path: &str) -> Option<Self> {
        let name = match path {
            "periapt-backup.json" => Self::Manifest,
            "keys" => Self::Keys,
            "digest" => Self::Digest,
            _ => match path.strip_prefix(UNCHANGED) {
                Some(part) => Self::Unchanged(PartName::parse(part)?),
                None => Self::Part(PartName::parse(path)?),
            },
        };
        // Another spelling of a digest would be another entry for the same blob.
        (name.path() == path).then_some(name)
    }
}

impl PartName {
    fn parse(path: &str) -> Option<Self> {
        Some(match path.split_once('/')? {
            ("store", name) => Self::Store(store_file(name)?.to_owned()),
            ("charms", digest) => Self::Charm(digest.parse().ok()?),
            ("resources", digest) => Self::Resource(digest.parse().ok()?),
            _ => return None,
        })
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(name) => write!(f, "store/{name}"),
            Self::Charm(digest) => write!(f, "charms/{digest}"),
            Self::Resource(digest) => write!(f, "resources/{digest}"),
        }
    }
}

/// Returns the name of a file that belongs to a store; none for other files of RocksDB (its log for humans, its lock), and
/// for all else.
pub(super) fn store_file(name: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = match name.rsplit_once(['.', '-']) {
        None => name == "CURRENT",
        Some((number, "sst" | "log")) => is_number(number),
        Some(("MANIFEST" | "OPTIONS", number)) => is_number(number),
        Some(_) => false,
    };
    (fits && name.len() <= MAX_FILE_NAME).then_some(name)
}

/// Returns the header of an entry.
pub(super) fn header(name: &EntryName, size: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (to, from) in block.iter_mut().skip(at).zip(text) {
            *to = *from;
        }
    };
    put(0, name.path().as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    for (to, from) in block.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").as_bytes()) {
        *to = *from;
    }
    block
}

/// Returns the name and the size in a header; none if it is not byte for byte the header of an entry.
pub(super) fn parse(block: &[u8; BLOCK]) -> Option<(EntryName, u64)> {
    let text = |range: std::ops::Range<usize>| {
        let field = block.get(range)?;
        let end = field.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(field.get(..end)?).ok()
    };
    let name = EntryName::parse(text(0..100)?)?;
    let size = u64::from_str_radix(text(124..136)?, 8).ok()?;
    (header(&name, size) == *block).then_some((name, size))
}

/// Returns the number of zeros that follow a content of this size.
pub(super) fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    (BLOCK - over) % BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_no_other_bytes_are() {
        let digest = Digest::of(b"x");
        let names = [
            EntryName::Manifest,
            EntryName::Keys,
            EntryName::Part(PartName::Store("000123.sst".into())),
            EntryName::Part(PartName::Charm(digest)),
            EntryName::Unchanged(PartName::Store(format!("{}.sst", "1".repeat(MAX_FILE_NAME - 4)))),
            EntryName::Unchanged(PartName::Resource(digest)),
            EntryName::Digest,
        ];
        for name in names {
            for size in [0, 1, 511, MAX_CONTENT] {
                let block = header(&name, size);
                assert_eq!(parse(&block), Some((name.clone(), size)));
                for at in 0..BLOCK {
                    let mut changed = block;
                    changed[at] ^= 1;
                    assert_eq!(parse(&changed), None, "byte {at} of {name:?}");
                }
            }
        }
        assert_eq!((padding(0), padding(1), padding(512), padding(513)), (0, 511, 0, 511));
    }

    #[test]
    fn only_files_that_a_store_consists_of_have_a_name() {
        for name in ["CURRENT", "MANIFEST-000005", "OPTIONS-000007", "000123.sst", "000004.log"] {
            assert_eq!(store_file(name), Some(name));
        }
        let long = format!("{}.sst", "1".repeat(MAX_FILE_NAME));
        for name in [
            "", "LOG", "LOCK", "IDENTITY", "..", "../1.sst", "a/1.sst", "x.sst", ".sst", "1.sst.", "-1",
            &long,
        ] {
            assert_eq!(store_file(name), None, "{name}");
        }
        for path in [
            "store/../keys",
            "/etc/passwd",
            "charms/x",
            "charms/../x",
            "store/",
            "other",
            "unchanged/keys",
            "unchanged/unchanged/store/CURRENT",
        ] {
            assert_eq!(EntryName::parse(path), None, "{path}");
        }
    }
}
