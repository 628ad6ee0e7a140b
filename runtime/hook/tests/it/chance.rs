//! Guests that make arbitrary calls.

use periapt_hook::{BagSelector, CallAnswer, CharmStatus, HookLimits, MAX_ASKED, OwnBag, Ports};
use periapt_host_api::{RelationId, logs::LogLevel};
use proptest::prelude::*;

use crate::world::{World, changed, lease, now};

fn words() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "-",
        "--",
        "-r",
        "-r1",
        "-rdb:1",
        "db:1",
        "2",
        "--app",
        "--app=True",
        "--format",
        "--format=json",
        "yaml",
        "-o",
        "--file",
        "-a",
        "--all",
        "--endpoints",
        "--endpoints=web",
        "web,db",
        "a=1",
        "a=",
        "=",
        "host",
        "b/0",
        "a/0",
        "a/1",
        "a",
        "b",
        "80",
        "80-90/udp",
        "icmp",
        "active",
        "--application",
        "--include-data",
        "-l",
        "--debug",
        "--help",
        "-h",
        "private-address",
        "",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,12}", 1 => "-{1,3}[a-z=]{0,6}"]
}

fn tools() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "config-get",
        "unit-get",
        "is-leader",
        "juju-log",
        "application-version-set",
        "status-set",
        "status-get",
        "relation-ids",
        "relation-list",
        "relation-get",
        "relation-set",
        "relation-model-get",
        "open-port",
        "close-port",
        "opened-ports",
        "leader-get",
        "leader-set",
        "secret-get",
        "action-fail",
    ]);
    prop_oneof![20 => known.prop_map(str::to_owned), 1 => ".{0,12}"]
}

/// Generates a tool, its arguments, and its standard input.
fn lines() -> impl Strategy<Value = (String, Vec<String>, Option<String>)> {
    (tools(), proptest::collection::vec(words(), 0..6), proptest::option::of(".{0,20}"))
}

fn small_limits() -> HookLimits {
    HookLimits {
        effect_bytes: 2_000,
        effect_keys: 3,
        log_bytes: 500,
        statuses: 3,
        journal_bytes: 2_000,
        ..HookLimits::default()
    }
}

proptest! {
    /// Exit codes and streams follow the rules, nothing panics, and effects stay within their bounds.
    #[test]
    fn any_command_lines_leave_a_run_within_its_bounds(
        lines in proptest::collection::vec(lines(), 0..30),
        leader in any::<bool>(),
        renewal in any::<bool>(),
    ) {
        let mut world = if leader { World::leader() } else { World::new() };
        world.inputs.lease = if leader && !renewal { lease(3, 60) } else { lease(3, 10) };
        world.inputs.limits = small_limits();
        let mut context = world.event(changed("b/0")).start().context;
        let mut files = 0;
        for (name, arguments, stdin) in &lines {
            let stdin = stdin.as_deref().map(str::as_bytes);
            let mut answer = context.run_tool(now(), name, arguments, stdin);
            for _ in 0..MAX_ASKED {
                match answer {
                    CallAnswer::NeedsLease => context.lease_renewed(lease(3, 60)),
                    CallAnswer::NeedsFile(request) => {
                        files += 1;
                        context.file_answered(request, Ok(b"a: 1".to_vec()));
                    }
                    _ => break,
                }
                answer = context.run_tool(now(), name, arguments, stdin);
            }
            let CallAnswer::Ready(output) = answer else { panic!("{name} asks without end") };
            match output.exit_code {
                0 => prop_assert!(!output.stderr.starts_with("ERROR ")),
                1 | 2 => prop_assert!(output.stdout.is_empty() && output.stderr.starts_with("ERROR ")),
                other => prop_assert!(false, "exit code {}", other),
            }
        }
        let gathered = context.finish();
        prop_assert!(serde_json::to_vec(&gathered.effects).unwrap().len() <= 2_000 + 200);
        prop_assert!(gathered.early.len() <= 3 + 500 / 64 + 1);
        prop_assert_eq!(gathered.calls.calls.len() as u64 + gathered.calls.omitted, lines.len() as u64 + files);
        let leader_only = !gathered.effects.leader_settings.is_empty()
            || gathered.effects.bags.values().any(|bag| !bag.application.is_empty());
        prop_assert!(!leader_only || gathered.leader_term.is_some());
    }

    /// Both interfaces share one behaviour: each reads the other's writes.
    #[test]
    fn what_one_door_writes_the_other_reads(key in "[a-z][a-z0-9-]{0,8}", value in "[!-~]{0,20}") {
        let mut hook = World::leader().event(changed("b/0")).start();
        let changes = [(key.clone(), value.clone())];
        for (bag, read) in [
            (OwnBag::Unit, "relation-get --format=json - a/0"),
            (OwnBag::Application, "relation-get --format=json --app - a"),
        ] {
            let written = hook.context.relation_set(now(), RelationId(1), bag, &changes);
            prop_assert_eq!(written, CallAnswer::Ready(Ok(())));
            let printed: serde_json::Value = serde_json::from_str(&hook.tool(read).stdout).unwrap();
            let expected = (!value.is_empty()).then(|| serde_json::Value::from(value.clone()));
            prop_assert_eq!(printed.get(&key).cloned(), expected);
        }
    }

    #[test]
    fn typed_calls_take_any_text(
        text in ".{0,40}",
        first in any::<u16>(),
        last in any::<u16>(),
        relation in 0_u32..4,
    ) {
        let mut context = World::leader().event(changed("b/0")).start().context;
        let relation = RelationId(relation);
        let texts = [text.clone()];
        context.config_get(&text);
        context.relation_ids(&text);
        context.log(now(), LogLevel::Info, &text);
        let _ = context.relation_members(relation);
        let _ = context.relation_get(now(), relation, &BagSelector::Unit(text.clone()));
        let _ = context.relation_get(now(), relation, &BagSelector::Application(text.clone()));
        let changes = [(text.clone(), text.clone())];
        let _ = context.relation_set(now(), relation, OwnBag::Application, &changes);
        let _ = context.open_ports(Ports::Tcp(first, last), &texts);
        let opened = context.open_ports(Ports::Udp(first, last), &[]);
        prop_assert_eq!(opened.is_ok(), first <= last);
        let _ = context.status_set(now(), CharmStatus::Active, &text);
        prop_assert!(context.finish().effects.bags.keys().all(|id| matches!(id.0, 1 | 2)));
    }
}
