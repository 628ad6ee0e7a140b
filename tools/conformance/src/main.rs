//! Writes `docs/conformance.md` and `docs/rules.md`: `cargo run -p periapt-conformance [REPOSITORY]`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use periapt_conformance::{List, PAGE, RULES_PAGE, Rules, by_row, page, tests};

fn main() -> Result<()> {
    let root = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let tests = tests(&root)?;
    let write = |place: &str, text: String| {
        let path = root.join(place);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    write(PAGE, page(&List::read(&root)?, &by_row(&tests)))?;
    write(RULES_PAGE, Rules::read(&root)?.page(&tests)?)
}
