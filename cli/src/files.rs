//! Directories that only their owner may enter.

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt as _, path::Path};

use crate::error::{Explain as _, Result};

/// Makes a directory that only its owner may enter.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.explain(|| format!("cannot make {}", path.display()))
}
