//! Checks that the Python package and the sandbox know the same hook tools.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::Context as _;
use periapt_hook::{hook_tools, is_hook_tool};

#[test]
fn the_package_knows_each_tool_of_the_sandbox_and_no_other() -> anyhow::Result<()> {
    let names =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../host-api/sdk/python/periapt_ops/stand_ins/names.py");
    let text = fs::read_to_string(&names).with_context(|| names.display().to_string())?;
    let (_, tools) = text.split_once("HOOK_TOOLS = ").context("the tools")?;
    let known: BTreeSet<&str> =
        tools.split("\"\"\"").nth(1).context("their names")?.split_whitespace().collect();
    let unknown: Vec<_> = known.iter().filter(|name| !is_hook_tool(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let missing: Vec<_> = hook_tools().map(|tool| tool.name).filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    Ok(())
}
