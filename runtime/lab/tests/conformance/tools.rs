//! H: the relation tools in hooks of a running unit (`docs/hook-model.md` 2.7 to 2.9, 5.1). The table of hook tools has
//! their outputs; these tests need a model around them.

use crate::bench::{Related, bag_of, printed, tool_result, tries};

/// Returns a model in which `b/0` has written two keys, and `a/0`'s hook on that ran these tools.
fn changed(lines: &[&str]) -> Related {
    let mut bench = Related::joined(1);
    bench.lab.script("a/0", "db-relation-changed", tries(lines)).unwrap();
    write(&mut bench, &[("host", "10.0.0.4"), ("port", "3306")]);
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    bench
}

/// Writes to the bag of `b/0`.
fn write(bench: &mut Related, settings: &[(&str, &str)]) {
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, settings).unwrap();
}

#[test]
fn h01_in_a_relation_hook_relation_get_gives_all_of_the_remote_units_keys() {
    let bench = changed(&["relation-get --format=json", "relation-get host"]);
    let (code, output, _) = tool_result(&bench.lab, "relation-get --format=json");
    let theirs = bag_of(&bench.lab, bench.relation, "b/0");
    assert!(theirs.contains_key("host") && theirs.contains_key("ingress-address"), "{theirs:?}");
    assert_eq!((code, serde_json::from_str(&output).unwrap()), (0, theirs));
    printed(&bench.lab, "relation-get host", "10.0.0.4\n");
}

#[test]
fn h05_a_key_that_was_set_and_emptied_is_absent_at_once_and_afterwards() {
    let lines =
        ["relation-set a=1 b=2", "relation-get a a/0", "relation-set a=", "relation-get --format=json - a/0"];
    let bench = changed(&lines);
    printed(&bench.lab, "relation-get a a/0", "1\n");
    let (_, seen, _) = tool_result(&bench.lab, "relation-get --format=json - a/0");
    let own = bag_of(&bench.lab, bench.relation, "a/0");
    assert_eq!((own.get("a"), own["b"].as_str()), (None, "2"));
    assert_eq!(serde_json::from_str::<periapt_host_api::relation::Settings>(&seen).unwrap(), own);
}

#[test]
fn h06_a_bag_that_changes_meanwhile_is_the_same_throughout_a_hook() {
    let mut bench = Related::joined(1);
    bench
        .lab
        .script("a/0", "db-relation-changed", tries(&["relation-get host", "relation-get host"]))
        .unwrap();
    write(&mut bench, &[("host", "old")]);
    // The hook is decided. Before it reads anything, the bag changes, and the agent gets the frame.
    assert!(bench.lab.micro_step("a/0").unwrap());
    write(&mut bench, &[("host", "new")]);
    assert_eq!(bench.news(), ["db-relation-changed b/0", "db-relation-changed b/0"]);
    let [first, second] = bench.lab.trace().last_chunk::<2>().unwrap();
    let answers = |traced: &periapt_lab::Traced| -> Vec<String> {
        traced.tools.iter().map(|call| call.output.stdout.clone()).collect()
    };
    assert_eq!((answers(first), answers(second)), (vec!["old\n".to_owned(); 2], vec!["new\n".to_owned(); 2]));
}

#[test]
fn h08_who_departs_is_not_listed_and_is_readable() {
    let mut bench = Related::joined(2);
    write(&mut bench, &[("host", "10.0.0.4")]);
    bench.news();
    let lines = ["relation-list", "relation-get host b/0"];
    bench.lab.script("a/0", "db-relation-departed", tries(&lines)).unwrap();
    bench.lab.remove_unit("b/0").unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0"]);
    printed(&bench.lab, "relation-list", "b/1\n");
    printed(&bench.lab, "relation-get host b/0", "10.0.0.4\n");
}

#[test]
fn h13_a_relation_without_members_lists_nobody() {
    let mut bench = Related::new(2);
    let lines = ["relation-list", "relation-list --format=json"];
    bench.lab.script("a/0", "db-relation-created", tries(&lines)).unwrap();
    bench.run();
    // Two are in scope, and the unit was told of neither.
    printed(&bench.lab, "relation-list", "");
    printed(&bench.lab, "relation-list --format=json", "[]\n");
}
