//! Batches, in reads and variables that no tool's table covers.

use periapt_host_api::relation::Scope;

use crate::world::{DB, World, batch, joined};

#[test]
fn who_joins_in_a_batch_of_a_container_relation_is_readable() {
    let mut world = World::new();
    world.relation(DB).scope = Scope::Container;
    world.members(DB, &[]);
    let mut hook = world.event(batch(&["b/1"], &[], &[])).start();
    hook.check(&[("relation-get host b/1", "10.0.0.5\n")]);
    hook.check_errors(&[("relation-get host b/0", 1, "permission denied")]);
}

#[test]
fn a_charm_that_goes_by_names_knows_a_batch_as_a_change_of_no_unit() {
    let hook = World::new().event(batch(&["b/3"], &[], &[])).start();
    let variables: std::collections::BTreeMap<_, _> = hook.context.environment().into_iter().collect();
    assert_eq!(variables["JUJU_DISPATCH_PATH"], "hooks/db-relation-changed");
    assert_eq!(variables["JUJU_HOOK_NAME"], "db-relation-changed");
    assert_eq!(variables["JUJU_REMOTE_UNIT"], "");
    assert_eq!(variables["JUJU_REMOTE_APP"], "b");
    assert_eq!(variables["PERIAPT_RELATION_BATCH"], "true");
    assert!(!variables.contains_key("JUJU_DEPARTING_UNIT"));
    let other = World::new().event(joined("b/3")).start().context.environment();
    assert!(other.iter().all(|(name, _)| name != "PERIAPT_RELATION_BATCH"));
}
