//! New charms: copies of charms of this repository, each with a custom section of its own in its component.
//!
//! The copies share memory images, files and the modules of Python with their originals. Digests differ, so an agent
//! compiles each component anew.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use periapt_archive::{Archive, COMPONENT};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

pub(crate) struct Archives {
    bases: Vec<Archive>,
    directory: PathBuf,
    made: usize,
}

impl Archives {
    /// Creates a generator that copies these charms by turns.
    pub(crate) fn of<const N: usize>(names: [&str; N], directory: &Path) -> anyhow::Result<Self> {
        let mut bases = Vec::new();
        for name in names {
            let packed = periapt_tests::packed(name, directory)?;
            bases.push(Archive::read(&fs::read(&packed)?)?);
            fs::remove_file(packed)?;
        }
        Ok(Self { bases, directory: directory.to_owned(), made: 0 })
    }

    /// Packs the next copy and returns its path.
    pub(crate) fn next(&mut self) -> anyhow::Result<PathBuf> {
        let base = self.bases.get(self.made % self.bases.len().max(1)).context("a charm")?;
        self.made += 1;
        let place = self.directory.join(format!("{}.charm", self.made));
        let mut zip = ZipWriter::new(File::create(&place)?);
        // The compression that packing uses.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6));
        for (path, content) in base.files() {
            zip.start_file(path, options)?;
            zip.write_all(content)?;
            if path == COMPONENT {
                zip.write_all(&section(self.made))?;
            }
        }
        zip.finish()?;
        Ok(place)
    }
}

/// Returns a custom section: its id, its length, and a name of eight bytes.
fn section(number: usize) -> Vec<u8> {
    let name = format!("{:08}", number % 100_000_000);
    [&[0, 9, 8], name.as_bytes()].concat()
}
