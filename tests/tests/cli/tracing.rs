//! The trace of one command through all processes.

use std::collections::BTreeSet;

use anyhow::Context as _;
use periapt_tests::{TraceTree, TracedInstallation};

/// Returns the services of the spans of a name.
fn services(tree: &TraceTree, name: &str) -> BTreeSet<String> {
    tree.all_named(name).iter().map(|tree| tree.span.service.clone()).collect()
}

#[test]
fn a_config_command_is_traced_from_the_command_line_to_the_last_hook_that_it_caused() -> anyhow::Result<()> {
    let traced = TracedInstallation::bootstrapped()?;
    traced.deploy()?;
    let tree = traced.configure()?;
    let shown = tree.render();
    assert_eq!((tree.span.name.as_str(), tree.span.attribute("outcome")), ("verb", "ok"), "{shown}");

    // The request, and its command's way to the disk.
    let command = tree
        .all_at(&["request", "command"])
        .into_iter()
        .find(|tree| tree.span.attribute("command") == "SetConfig")
        .with_context(|| shown.clone())?;
    assert_eq!(command.span.attribute("outcome"), "done", "{shown}");
    let commit = command.at(&["batch", "commit"]).with_context(|| shown.clone())?;
    assert_eq!(commit.span.attribute("revision"), command.span.attribute("revision"), "{shown}");

    // The runner that took in its revision, and the hooks of both units.
    let hooks = command.all_at(&["runner", "unit", "operation", "hook"]);
    let configured: BTreeSet<&str> = hooks
        .iter()
        .filter(|hook| hook.span.attribute("event") == "config-changed")
        .map(|hook| hook.span.attribute("unit"))
        .collect();
    assert_eq!(configured, BTreeSet::from(["wordpress/0", "wordpress/1"]), "{shown}");
    for hook in &hooks {
        assert_eq!(hook.span.attribute("outcome"), "handled", "{shown}");
        assert!(hook.span.attribute("fuel").parse::<u64>()? > 0, "{shown}");
    }

    // A hook's commit is a command of its own, and causes the hooks of the units' peers. A unit that has not ended its
    // work when the commit's frame arrives goes on with them in the same span.
    let operations = command.all_at(&["runner", "unit", "operation"]);
    let caused: Vec<_> = operations
        .iter()
        .flat_map(|operation| operation.all_at(&["command", "runner", "unit", "operation", "hook"]))
        .chain(hooks.iter().copied())
        .collect();
    assert!(
        caused.iter().any(|hook| hook.span.attribute("event").starts_with("loadbalancer-relation-changed")),
        "{shown}"
    );

    for (name, service) in [
        ("verb", "periapt"),
        ("request", "periapt-controller"),
        ("command", "periapt-controller"),
        ("batch", "periapt-controller"),
        ("commit", "periapt-controller"),
        ("runner", "periapt-agent"),
        ("unit", "periapt-agent"),
        ("operation", "periapt-agent"),
        ("hook", "periapt-agent"),
    ] {
        assert_eq!(services(&tree, name), BTreeSet::from([service.to_owned()]), "{name}\n{shown}");
    }
    Ok(())
}
