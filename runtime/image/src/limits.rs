//! The bounds within which an image is read. Everything in an image comes from strangers.

use std::time::{Duration, Instant};

/// The largest index, manifest or configuration, in bytes: the bound that the specification names for registries.
pub const MAX_DOCUMENT: u64 = 4 << 20;

/// The most layers of an image. Docker makes no image with more than 127; a mount of an overlay takes 500.
pub const MAX_LAYERS: usize = 127;

/// The most indexes on the way to a manifest. Tools write one, or one within another.
pub const MAX_INDEXES: usize = 3;

/// The most members of an archive of an image: each layer has one to three.
pub const MAX_MEMBERS: u64 = 4096;

/// The longest path below an image's root, and the longest target of a link, in bytes: those of Linux.
pub const MAX_PATH: usize = 4095;

/// The longest name of a file, in bytes: that of Linux.
pub const MAX_NAME: usize = 255;

/// The most directories on the way to a file. Trees of Node.js's packages come to some 40.
pub const MAX_DEPTH: usize = 128;

/// The most bytes of an entry's extended header: paths, ids and extended attributes.
pub const MAX_EXTENSION: u64 = 1 << 20;

/// The most pieces of a sparse file.
pub const MAX_PIECES: usize = 10_000;

/// The most extended attributes of an entry whose names are kept.
pub const MAX_ATTRIBUTES: usize = 64;

/// The largest window of zstd, as a power of two: 128 MiB, the bound of the program `zstd` itself.
pub(crate) const ZSTD_WINDOW: u32 = 27;

/// The least bytes that an entry takes on a disk.
pub(crate) const BLOCK: u64 = 4096;

/// The bounds that depend on the host and on its operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLimits {
    /// The most bytes of a layer as it is stored.
    pub layer: u64,
    /// The most bytes of all layers as they are stored.
    pub stored: u64,
    /// The most bytes of one file.
    pub file: u64,
    /// The most bytes that all layers unpack to, counted in blocks of a disk.
    pub unpacked: u64,
    /// The most entries of all layers.
    pub entries: u64,
    /// The bytes that any layer may unpack to, even a small one.
    pub allowance: u64,
    /// The further bytes that a layer may unpack to, for each of its stored bytes. Programs and their data come to 2 to
    /// 5, text to 10; gzip can make 1,000 of one, zstd 30,000.
    pub ratio: u64,
    /// The longest time for reading, unpacking or pulling one image.
    pub time: Duration,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            layer: 4 << 30,
            stored: 8 << 30,
            file: 4 << 30,
            unpacked: 16 << 30,
            entries: 500_000,
            allowance: 16 << 20,
            ratio: 100,
            time: Duration::from_secs(600),
        }
    }
}

impl ImageLimits {
    /// Returns the bytes to which a layer may unpack.
    pub(crate) fn unpacked_of(&self, stored: u64) -> u64 {
        self.allowance.saturating_add(stored.saturating_mul(self.ratio)).min(self.unpacked)
    }
}

/// The parts of an image's bounds that are not used up.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pub(crate) limits: ImageLimits,
    pub(crate) entries: u64,
    pub(crate) unpacked: u64,
    until: Option<Instant>,
}

impl Budget {
    pub(crate) fn new(limits: &ImageLimits) -> Self {
        Self {
            entries: limits.entries,
            unpacked: limits.unpacked,
            until: Instant::now().checked_add(limits.time),
            limits: limits.clone(),
        }
    }

    /// Returns the time after which nothing is read.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Takes one entry with its content.
    pub(crate) fn take(&mut self, size: u64) -> Result<(), String> {
        if size > self.limits.file {
            return Err(format!("it has {size} bytes, and a file may have {}", self.limits.file));
        }
        let entries = self.limits.entries;
        self.entries = self
            .entries
            .checked_sub(1)
            .ok_or_else(|| format!("the image has more than {entries} entries"))?;
        let taken = size.div_ceil(BLOCK).saturating_add(1).saturating_mul(BLOCK);
        let most = self.limits.unpacked;
        let left = self.unpacked.checked_sub(taken);
        self.unpacked = left.ok_or_else(|| format!("the image unpacks to more than {most} bytes"))?;
        Ok(())
    }
}

/// Returns the error of an image that takes too long.
pub(crate) fn too_slow(limit: Duration) -> String {
    format!("it took longer than {} s", limit.as_secs())
}
