//! What all tools have in common, and those that do nothing here.

use crate::world::{World, changed};

const TOOLS: &[&str] = &[
    "action-fail",
    "action-get",
    "action-log",
    "action-set",
    "application-version-set",
    "close-port",
    "config-get",
    "goal-state",
    "is-leader",
    "juju-log",
    "leader-get",
    "leader-set",
    "network-get",
    "open-port",
    "opened-ports",
    "relation-get",
    "relation-ids",
    "relation-list",
    "relation-model-get",
    "relation-set",
    "state-delete",
    "state-get",
    "state-set",
    "status-get",
    "status-set",
    "unit-get",
];

#[test]
fn each_tool_explains_itself() {
    let mut hook = World::new().start();
    for tool in TOOLS {
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
        --format <format>\n    Specify output format (json|smart|yaml); smart by default\n\
        -o, --output <file>\n    Specify an output file; in the sandbox only - (standard output)\n\
        -r, --relation <relation id>\n    Specify a relation by id; the hook's by default\n\
        --app\n    Print the remote application instead\n";
    assert_eq!(output.stdout, expected);
}

#[test]
fn each_tool_refuses_a_flag_that_it_does_not_know() {
    let mut hook = World::new().start();
    for tool in TOOLS {
        let error = "option provided but not defined: --colour";
        hook.check_errors(&[(&format!("{tool} --colour"), 2, error)]);
    }
}

#[test]
fn output_goes_to_standard_output_only() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[("config-get title -o -", "hello\n")]);
    let error = "cannot write to \"/tmp/x\": in the sandbox a hook tool writes to its standard output only";
    hook.check_errors(&[
        ("config-get title --output=/tmp/x", 1, error),
        ("relation-get -o /tmp/x", 1, error),
        ("config-get --format xml", 2, "invalid value \"xml\" for option --format: unknown format \"xml\""),
    ]);
}

#[test]
fn tools_that_are_not_offered_say_so() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        ("juju-reboot --now", 1, "juju-reboot is not supported in the sandbox"),
        ("payload-register a b c", 1, "payload-register is not supported in the sandbox"),
        ("action-get --format=json", 1, "not running an action"),
        ("action-set a=b", 1, "not running an action"),
        ("rm -rf /", 1, "unknown command \"rm\""),
    ]);
    let help = hook.tool("resource-get --help");
    assert_eq!(help.exit_code, 0);
    assert_eq!(
        help.stdout,
        "Usage: resource-get\n\nSummary:\nresource-get is not supported by this version\n"
    );
}

#[test]
fn a_call_is_bounded_and_an_error_quotes_no_mebibyte() {
    let mut hook = World::new().event(changed("b/0")).start();
    let long = "x".repeat(1 << 19);
    let output = hook.tool(&format!("open-port {long}"));
    assert_eq!(output.exit_code, 2);
    assert!(output.stderr.len() < 5_000);
    let error = "the call's arguments are 1048588 bytes long; at most 1048576 are allowed";
    hook.check_errors(&[(&format!("relation-set {long} b={long}yyyyyyyyyy"), 1, error)]);
    let stdin = format!("a: {}\n", "x".repeat(1 << 20));
    let output = hook.tool_with("relation-set --file -", Some(&stdin));
    assert_eq!(output.exit_code, 1);
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn standard_input_that_is_not_text_is_refused() {
    let mut hook = World::new().event(changed("b/0")).start();
    let arguments = ["--file".to_owned(), "-".to_owned()];
    let answer = hook.context.run_tool(crate::world::now(), "relation-set", &arguments, Some(&[0xff, 0xfe]));
    let output = crate::world::ready(answer);
    assert_eq!((output.exit_code, output.stderr.as_str()), (1, "ERROR standard input is not UTF-8\n"));
}

/// The forms in which Python's operator framework calls the tools.
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
