//! Behaviour that all tools share.

use periapt_hook::hook_tools;
use periapt_host_api::event::{Event, StorageContext};

use crate::world::{World, changed};

#[test]
fn each_tool_explains_itself() {
    let mut hook = World::new().start();
    for tool in hook_tools().map(|tool| tool.name) {
        for flag in ["--help", "-h"] {
            let output = hook.tool(&format!("{tool} {flag}"));
            assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""), "{tool}");
            assert!(output.stdout.starts_with(&format!("Usage: {tool} [options]")), "{}", output.stdout);
            assert!(output.stdout.contains("\n\nSummary:\n"), "{}", output.stdout);
        }
    }
    let gathered = hook.finish();
    assert!(gathered.effects.is_empty() && gathered.early.is_empty());
}

#[test]
fn the_help_tells_usage_summary_and_options() {
    let output = World::new().start().tool("relation-list --help");
    let expected = "Usage: relation-list [options]\n\nSummary:\nList the remote units of a relation.\n\nOptions:\n\
        --app  (= false)\n    Print the remote application instead\n\
        --format  (= smart)\n    Specify output format (json|smart|yaml)\n\
        -o, --output (= \"\")\n    Write to a file of the hook's own instead of standard output (-)\n\
        -r, --relation  (= )\n    Specify a relation by id\n";
    assert_eq!(output.stdout, expected);
}

/// ops before 3.4 and charmhelpers read the defaults in the help.
#[test]
fn the_help_names_what_the_hook_is_about_as_the_value_of_a_flag_that_is_not_given() {
    let attached = Event::StorageAttached(StorageContext {
        storage: "data/0".parse().unwrap(),
        location: "/srv/data".into(),
    });
    let update = World::new().start();
    for (mut hook, line, holds) in [
        (World::new().event(attached).start(), "storage-get --help", "\n-s  (= data/0)\n    Specify"),
        (
            World::new().event(changed("b/0")).start(),
            "relation-get -h",
            "\n-r, --relation  (= db:1)\n    Specify",
        ),
        (World::new().event(changed("b/0")).start(), "relation-set --help", "\n--file  (= )\n    Read"),
        (World::new().start(), "secret-add --help", "\n--owner (= \"application\")\n    The owner"),
        (update, "storage-get --help", "\n-s  (= )\n    Specify"),
    ] {
        let printed = hook.tool(line);
        assert!(printed.exit_code == 0 && printed.stdout.contains(holds), "{line}: {}", printed.stdout);
    }
}

#[test]
fn each_tool_refuses_a_flag_that_it_does_not_know() {
    let mut hook = World::new().start();
    for tool in hook_tools().map(|tool| tool.name) {
        let error = "option provided but not defined: --colour";
        hook.check_errors(&[(&format!("{tool} --colour"), 2, error)]);
    }
}

#[test]
fn standard_input_that_is_not_text_is_refused() {
    let mut hook = World::new().event(changed("b/0")).start();
    let arguments = ["--file".to_owned(), "-".to_owned()];
    let answer = hook.context.run_tool(crate::world::now(), "relation-set", &arguments, Some(&[0xff, 0xfe]));
    let output = crate::world::ready(answer);
    assert_eq!((output.exit_code, output.stderr.as_str()), (1, "ERROR standard input is not UTF-8\n"));
}

/// Makes the tool calls of Python's operator framework, in its spelling.
#[test]
fn the_calls_of_the_operator_framework_are_understood() {
    let mut hook = World::leader().event(changed("b/0")).start();
    for (line, stdin) in [
        ("application-version-set -- 1.2", None),
        ("config-get --format=json", None),
        ("goal-state --format=json", None),
        ("is-leader --format=json", None),
        ("network-get db -r 1 --format=json", None),
        ("open-port 80/tcp", None),
        ("close-port 80/tcp", None),
        ("opened-ports --format=json --endpoints", None),
        ("opened-ports --format=json", None),
        ("relation-ids db --format=json", None),
        ("relation-list --format=json -r db:1", None),
        ("relation-list --format=json -r db:1 --app", None),
        ("relation-get --format=json -r db:1 - b/0", None),
        ("relation-get --format=json -r db:1 --app - b", None),
        ("relation-get --format=json -r db:1 --app - a", None),
        ("relation-set -r db:1 --file -", Some("{\"key\": \"value\"}")),
        ("relation-set -r db:1 --app --file -", Some("{\"key\": \"\"}")),
        ("relation-model-get", None),
        ("state-get key", None),
        ("state-set --file -", Some("{\"key\": \"value\"}")),
        ("state-delete key", None),
        ("status-set --application=False active -- ready", None),
        ("status-set --application=True waiting -- ", None),
        ("status-get --include-data --format=json --application=false", None),
        ("status-get --include-data --format=json --application=true", None),
        ("juju-log --log-level INFO -- text", None),
        ("juju-log --log-level CRITICAL -- text", None),
        ("relation-get -r db:1 - b/0 --format=json", None),
        ("unit-get private-address --format=json", None),
    ] {
        let output = hook.tool_with(line, stdin);
        assert_eq!((output.exit_code, output.stderr.as_str()), (0, ""), "{line}");
    }
}
