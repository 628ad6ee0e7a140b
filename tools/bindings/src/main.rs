//! Writes the guest bindings: `cargo run -p periapt-bindings [REPOSITORY]`.

use anyhow::{Context, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    for file in periapt_bindings::generate(&root)? {
        let path = root.join(&file.path);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, &file.content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
