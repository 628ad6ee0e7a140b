//! Writes `docs/conformance.md`: `cargo run -p periapt-conformance [REPOSITORY]`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use periapt_conformance::{List, PAGE, page, tests};

fn main() -> Result<()> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let path = root.join(PAGE);
    std::fs::write(&path, page(&List::read(&root)?, &tests(&root)?))
        .with_context(|| format!("writing {}", path.display()))
}
