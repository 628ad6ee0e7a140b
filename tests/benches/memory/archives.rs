//! Charms that nobody has yet: charms of this repository whose components differ in a few bytes that no engine runs.
//!
//! Their memory images and files are those of the charms that they were made of, and nothing of the components beside the
//! modules that all Python charms share is known to be equal: digests differ, and with them each compiled component.

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
    /// Of these charms in turn.
    pub(crate) fn of<const N: usize>(names: [&str; N], directory: &Path) -> anyhow::Result<Self> {
        let mut bases = Vec::new();
        for name in names {
            let packed = periapt_tests::packed(name, directory)?;
            bases.push(Archive::read(&fs::read(&packed)?)?);
            fs::remove_file(packed)?;
        }
        Ok(Self { bases, directory: directory.to_owned(), made: 0 })
    }

    /// Another one.
    pub(crate) fn next(&mut self) -> anyhow::Result<PathBuf> {
        let base = self.bases.get(self.made % self.bases.len().max(1)).context("a charm")?;
        self.made += 1;
        let place = self.directory.join(format!("{}.charm", self.made));
        let mut zip = ZipWriter::new(File::create(&place)?);
        // As archives are packed.
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

/// A custom section: its id, its length, and a name of eight bytes.
fn section(number: usize) -> Vec<u8> {
    let name = format!("{:08}", number % 100_000_000);
    [&[0, 9, 8], name.as_bytes()].concat()
}
