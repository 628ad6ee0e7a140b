//! Goal state (`hook-model.md` 5.14).

use periapt_host_api::{
    Timestamp,
    status::{Life, RelationState, StatusInfo, WorkloadStatus},
    view::UnitOutline,
};

use crate::world::{DB, World, unit};

fn world() -> World {
    let mut world = World::new();
    let since = Timestamp::from_second(1_700_000_000).unwrap();
    for (name, life, status) in [
        ("b/0", Life::Alive, WorkloadStatus::Active),
        ("b/1", Life::Dying, WorkloadStatus::Active),
        ("b/2", Life::Dead, WorkloadStatus::Active),
    ] {
        let outline =
            UnitOutline { name: unit(name), life, workload_status: StatusInfo::new(status, "", since) };
        world.inputs.view.outlines.insert(unit(name), outline);
    }
    let relation = world.relation(DB);
    (relation.state, relation.state_since) = (RelationState::Joining, since);
    world
}

#[test]
fn wanted_units_are_shown_here_and_by_endpoint() {
    let mut hook = world().start();
    let yaml = "relations:\n  db:\n    b:\n      since: \"2023-11-14 22:13:20Z\"\n      status: joining\n    b/0:\n      \
        since: \"2023-11-14 22:13:20Z\"\n      status: active\n    b/1:\n      since: \"2023-11-14 22:13:20Z\"\n      \
        status: dying\nunits:\n  a/0:\n    since: \"1970-01-01 00:00:00Z\"\n    status: active\n  a/1:\n    \
        since: \"1970-01-01 00:00:00Z\"\n    status: blocked\n";
    hook.check(&[("goal-state", yaml), ("goal-state --format yaml", yaml)]);
    let json: serde_json::Value =
        serde_json::from_str(&hook.tool("goal-state --format=json").stdout).unwrap();
    assert_eq!(json["relations"]["db"]["b/1"]["status"], "dying");
    assert!(json["relations"].get("ring").is_none(), "peers are among the units");
    hook.check_errors(&[
        (
            "goal-state --format smart",
            2,
            "invalid value \"smart\" for option --format: unknown format \"smart\"",
        ),
        ("goal-state x", 2, "unrecognized args: [\"x\"]"),
    ]);
}

#[test]
fn both_doors_show_what_the_hook_itself_said() {
    let mut hook = world().start();
    hook.check(&[("status-set waiting for-b", "")]);
    let goal = hook.context.goal_state();
    assert_eq!(goal.units["a/0"].status, "waiting");
    assert_eq!(goal.relations.len(), 1);
    let shown = hook.tool("goal-state").stdout;
    assert!(shown.contains("status: waiting"), "{shown}");
}
