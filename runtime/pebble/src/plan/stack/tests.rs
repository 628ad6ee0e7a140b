use proptest::prelude::*;

use super::*;
use crate::plan::{Action, start_order, stop_order};

fn add(stack: &mut Stack, label: &str, yaml: &str, adding: Adding) -> Result<(), String> {
    let limits = PodLimits::default();
    let layer = Layer::read(label, yaml, &limits).map_err(|error| error.to_string())?;
    stack.add(label, layer, adding, &limits).map_err(|error| error.to_string())
}

fn stack(layers: &[&str]) -> Stack {
    let mut stack = Stack::default();
    for (index, yaml) in layers.iter().enumerate() {
        add(&mut stack, &format!("l{index}"), yaml, Adding::OnTop).unwrap();
    }
    stack
}

#[test]
fn layers_merge_and_replace() {
    let stack = stack(&[
        "services: {a: {override: replace, command: one, environment: {X: 1, Y: 'yes'}, after: [b]}, b: {override: replace, command: b}}",
        "services: {a: {override: merge, summary: s, environment: {Y: no, Z: 3}, after: [b, c], on-failure: ignore}}",
        "services: {b: {override: replace, command: two}, c: {override: merge, command: c}}",
    ]);
    let services = &stack.plan().services;
    let a = &services["a"];
    assert_eq!((a.command.as_str(), a.summary.as_str()), ("one", "s"));
    assert_eq!(a.after, ["b", "c"]);
    assert_eq!(a.on_failure, Some(Action::Ignore));
    let environment: Vec<_> = a.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(environment, ["X=1", "Y=no", "Z=3"]);
    assert_eq!(services["b"].command, "two");
    assert_eq!(stack.labels().collect::<Vec<_>>(), ["l0", "l1", "l2"]);
}

#[test]
fn a_layer_is_combined_in_its_place() {
    let mut stack = stack(&[
        "services: {a: {override: replace, command: zero, environment: {ZERO: '0'}}}",
        "services: {a: {override: replace, command: one}}",
        "services: {a: {override: merge, command: two}}",
    ]);
    assert!(add(&mut stack, "l1", "services: {}", Adding::OnTop).unwrap_err().contains("already exists"));
    // The combined layer still replaces what is below it.
    add(&mut stack, "l1", "services: {a: {override: merge, working-dir: /w}}", Adding::Combined).unwrap();
    let a = &stack.plan().services["a"];
    assert_eq!((a.command.as_str(), a.working_dir.as_str(), a.environment.len()), ("two", "/w", 0));
    assert_eq!(stack.labels().count(), 3);
}

#[test]
fn checks_and_log_targets_merge_in_depth() {
    let stack = stack(&[
        "services: {s: {override: replace, command: s}}\n\
         checks: {c: {override: replace, http: {url: 'http://a/', headers: {A: 1}}}}\n\
         log-targets: {t: {override: replace, type: loki, location: x, services: [all], labels: {a: b}}}",
        "checks: {c: {override: merge, threshold: 7, http: {headers: {B: 2}}}}\n\
         log-targets: {t: {override: merge, services: [-s, all], labels: {c: d}}}",
    ]);
    let check = &stack.plan().checks["c"];
    assert_eq!((check.threshold(), check.http.as_ref().unwrap().headers.len()), (7, 2));
    let target = &stack.plan().log_targets["t"];
    assert_eq!(
        (target.services.as_slice(), target.labels.len()),
        (["-s".to_owned(), "all".to_owned()].as_slice(), 2)
    );
}

#[test]
fn the_plan_is_written_so_that_no_text_becomes_a_number_or_a_truth() {
    let yaml = stack(&[
        "services: {'no': {override: replace, command: 'on', environment: {A: 'yes', B: '1:30', C: '0x1'}}}",
    ])
    .plan()
    .to_yaml();
    for part in ["A: \"yes\"", "B: \"1:30\"", "C: \"0x1\"", "command: \"on\""] {
        assert!(yaml.contains(part) || yaml.contains(&part.replace('"', "'")), "{yaml}");
    }
    assert_eq!(Stack::default().plan().to_yaml().trim(), "{}");
}

#[test]
fn what_is_wrong_is_named_and_changes_nothing() {
    let mut stack = stack(&["services: {good: {override: replace, command: x}}"]);
    let before = stack.clone();
    for (yaml, part) in [
        ("servicess: {}", "servicess"),
        ("services: {a: {override: replace, command: x, comand: y}}", "comand"),
        ("services: {a: {command: x}}", "must define \"override\" for service \"a\""),
        ("services: {a: {override: change, command: x}}", "none of: merge, replace"),
        ("services: {a: {override: replace}}", "must define \"command\" for service \"a\""),
        ("services: {a: {override: replace, command: \"'\"}}", "not closed"),
        ("services: {a: {override: replace, command: x, startup: on}}", "none of: enabled, disabled"),
        ("services: {a: {override: replace, command: x, kill-delay: soon}}", "no duration"),
        ("services: {a: {override: replace, command: x, backoff-factor: 0.5}}", "from 1 to 1000"),
        ("services: {a: {override: replace, command: x, backoff-factor: .nan}}", "from 1 to 1000"),
        ("services: {a: {override: replace, command: x, requires: [zz]}}", "unknown service \"zz\""),
        (
            "services: {a: {override: replace, command: x, on-check-failure: {zz: restart}}}",
            "unknown check \"zz\"",
        ),
        (
            "services: {a: {override: replace, command: x, environment: {'A=B': c}}}",
            "no process can be given",
        ),
        (
            "services: {a: {override: replace, command: x, after: [b]}, b: {override: replace, command: x, after: [a]}}",
            "loop: a, b",
        ),
        ("services: {a: {override: replace, command: x, after: [a]}}", "loop: a"),
        ("checks: {c: {override: replace}}", "one of \"http\", \"tcp\", or \"exec\" for check \"c\""),
        ("checks: {c: {override: replace, tcp: {port: 1}, http: {url: x}}}", "one of"),
        ("checks: {c: {override: replace, tcp: {port: 70000}}}", "a whole number"),
        ("checks: {c: {override: replace, tcp: {}}}", "must set \"port\""),
        ("checks: {c: {override: replace, http: {}}}", "must set \"url\""),
        (
            "checks: {c: {override: replace, exec: {command: x, service-context: zz}}}",
            "non-existent service \"zz\"",
        ),
        ("checks: {c: {override: replace, period: 1ns, exec: {command: x}}}", "period must be"),
        ("checks: {c: {override: replace, timeout: 0s, exec: {command: x}}}", "timeout must not be zero"),
        ("checks: {c: {override: replace, threshold: 0, exec: {command: x}}}", "threshold must be"),
        ("log-targets: {t: {override: replace, location: x}}", "must define \"type\""),
        ("log-targets: {t: {override: replace, type: loki, services: [all]}}", "must define \"location\""),
        (
            "log-targets: {t: {override: replace, type: loki, location: x, services: [zz]}}",
            "unknown service \"zz\"",
        ),
        (
            "log-targets: {t: {override: replace, type: loki, location: x, labels: {pebble_x: y}}}",
            "reserved prefix",
        ),
        (
            "log-targets: {t: {override: replace, type: loki, location: x, labels: {'': y}}}",
            "a label whose name is empty",
        ),
        ("log-targets: {t: {override: replace, type: carrier-pigeon, location: x}}", "none of: loki, syslog"),
        ("services: [", "line 1"),
        ("services: {'': {override: replace, command: x}}", "without a name"),
        ("services: {-a: {override: replace, command: x}}", "do not begin with"),
    ] {
        let error = add(&mut stack, "new", yaml, Adding::OnTop).unwrap_err();
        assert!(error.contains(part), "{yaml}: {error}");
        assert_eq!(stack, before, "{yaml}");
    }
    assert!(add(&mut stack, "", "{}", Adding::OnTop).is_err());
    assert!(add(&mut stack, "a\nb", "{}", Adding::OnTop).is_err());
    for empty in ["", "{}", "null", "services:", "# nothing"] {
        add(&mut stack, &format!("empty {empty}"), empty, Adding::OnTop).unwrap();
    }
}

#[test]
fn log_targets_and_their_labels_have_bounds() {
    let mut stack = stack(&["services: {s: {override: replace, command: x}}"]);
    let target = |name: u32, extra: &str| {
        format!("log-targets: {{t{name}: {{override: replace, type: loki, location: x, {extra}}}}}")
    };
    let mut add = |name: u32, extra: &str| add(&mut stack, "l", &target(name, extra), Adding::Combined);
    for number in 0..16 {
        add(number, "services: [all]").unwrap();
    }
    assert!(add(16, "services: [s]").unwrap_err().contains("17 log targets with services; at most 16"));
    // Those without services count for nothing, and make room.
    add(16, "services: [s, -all]").unwrap();
    add(0, "services: [-all]").unwrap();
    add(16, "services: [s]").unwrap();
    let labels: Vec<String> = (0..33).map(|number| format!("l{number}: v")).collect();
    assert!(add(17, &format!("labels: {{{}}}", labels.join(", "))).unwrap_err().contains("at most 32"));
    let label = format!("n: {}", "v".repeat(2_049));
    assert!(add(17, &format!("labels: {{{label}}}")).unwrap_err().contains("longer than"));
}

#[test]
fn names_that_are_too_long_for_a_key_are_refused() {
    let (mut stack, long) = (Stack::default(), "n".repeat(256));
    let layer =
        |kind: &str, entry: &str| format!("{kind}:\n  e:\n    override: replace\n{entry}\n      {long}: v\n");
    for (kind, entry, of) in [
        ("services", "    command: x\n    environment:", "plan service \"e\" environment"),
        ("checks", "    exec:\n     command: x\n     environment:", "plan check \"e\" environment"),
        ("checks", "    http:\n     url: x\n     headers:", "plan check \"e\" headers"),
        ("log-targets", "    type: loki\n    labels:", "log target \"e\" labels"),
    ] {
        let error = add(&mut stack, "new", &layer(kind, entry), Adding::OnTop).unwrap_err();
        assert!(error.ends_with(&format!("{of} has a name of more than 255 bytes")), "{error}");
    }
}

#[test]
fn everything_has_a_bound() {
    let limits = PodLimits { layer: 200, layers: 2, services: 3, stack: 400, ..PodLimits::default() };
    let mut stack = Stack::default();
    assert!(Layer::read("l", &"#".repeat(201), &limits).is_err());
    let services = |names: std::ops::Range<u32>| {
        let services =
            names.map(|it| format!("s{it}: {{override: replace, command: x}}")).collect::<Vec<_>>();
        Layer::read("l", &format!("services: {{{}}}", services.join(", ")), &limits).unwrap()
    };
    assert!(stack.add("l", services(0..4), Adding::OnTop, &limits).unwrap_err().0.contains("at most 3"));
    stack.add("l", services(0..2), Adding::OnTop, &limits).unwrap();
    stack.add("m", Layer::default(), Adding::OnTop, &limits).unwrap();
    assert!(stack.add("n", Layer::default(), Adding::OnTop, &limits).unwrap_err().0.contains("no more"));
    // The same layer, combined again and again, grows until it is refused.
    let mut refused = None;
    for round in 0..100 {
        let yaml = format!("services: {{s0: {{override: merge, environment: {{V{round}: x}}}}}}");
        let layer = Layer::read("l", &yaml, &limits).unwrap();
        if let Err(error) = stack.add("l", layer, Adding::Combined, &limits) {
            refused = Some(error.0);
            break;
        }
    }
    assert!(refused.unwrap().contains("all layers together"));
}

#[test]
fn services_start_after_those_they_wait_for_and_stop_before() {
    let stack = stack(&["services:\n  \
         a: {override: replace, command: x, requires: [b], after: [b]}\n  \
         b: {override: replace, command: x, before: [c]}\n  \
         c: {override: replace, command: x}\n  \
         d: {override: replace, command: x}"]);
    let plan = stack.plan();
    assert_eq!(start_order(plan, ["a"]).unwrap(), ["b", "a"]);
    assert_eq!(start_order(plan, ["c", "b", "d"]).unwrap(), ["b", "d", "c"]);
    assert_eq!(stop_order(plan, ["b"]).unwrap(), ["a", "b"]);
    assert!(start_order(plan, ["zz"]).unwrap_err().0.contains("\"zz\" does not exist"));
}

fn entry() -> impl Strategy<Value = String> {
    let word = prop_oneof![Just("merge"), Just("replace")];
    let lists = proptest::collection::vec("[abc]", 0..3);
    (word, proptest::option::of("[xyz]"), lists, proptest::collection::btree_map("[PQ]", "[0-9]", 0..2))
        .prop_map(|(word, directory, environment_names, environment)| {
            let mut environment = environment;
            environment
                .extend(environment_names.into_iter().map(|name| (name.to_uppercase(), "1".to_owned())));
            let environment = environment
                .iter()
                .map(|(name, value)| format!("{name}: '{value}'"))
                .collect::<Vec<_>>()
                .join(", ");
            let directory = directory.map(|it| format!(", working-dir: /{it}")).unwrap_or_default();
            format!("{{override: {word}, command: c{directory}, environment: {{{environment}}}}}")
        })
}

/// The services among which log targets choose.
const CHOSEN: [&str; 3] = ["a", "b", "c"];

proptest! {
    #[test]
    fn a_log_target_selects_what_its_words_leave_one_after_the_other_in_all_layers(
        layers in proptest::collection::vec(proptest::collection::vec("-?(all|a|b|c)", 0..6), 1..4),
        at in 0..4usize,
    ) {
        let services = CHOSEN.map(|name| format!("{name}: {{override: replace, command: x}}")).join(", ");
        let mut stack = stack(&[format!("services: {{{services}}}").as_str()]);
        let mut expected = std::collections::BTreeSet::new();
        for (index, words) in layers.iter().enumerate() {
            let target = format!("{{override: merge, type: loki, location: x, services: [{}]}}", words.join(", "));
            let label = if index == at { index.saturating_sub(1) } else { index };
            add(&mut stack, &label.to_string(), &format!("log-targets: {{t: {target}}}"), Adding::Combined).unwrap();
            for word in words {
                match word.strip_prefix('-') {
                    Some("all") => expected.clear(),
                    Some(name) => expected.retain(|it| *it != name),
                    None if word == "all" => expected.extend(CHOSEN),
                    None => expected.extend(CHOSEN.into_iter().filter(|it| it == word)),
                }
            }
        }
        let target = &stack.plan().log_targets["t"];
        let selected: std::collections::BTreeSet<_> =
            CHOSEN.into_iter().filter(|name| target.selects(name)).collect();
        prop_assert_eq!(selected, expected);
        prop_assert!(target.services.len() <= 8, "each word is there once");
    }

    #[test]
    fn combining_neighbours_gives_the_same_plan_as_stacking_them(
        layers in proptest::collection::vec(proptest::collection::btree_map("[st]", entry(), 1..3), 1..5),
        at in 0..4usize,
    ) {
        let texts: Vec<String> = layers
            .iter()
            .map(|services| {
                let services: Vec<_> = services.iter().map(|(name, it)| format!("{name}: {it}")).collect();
                format!("services: {{{}}}", services.join(", "))
            })
            .collect();
        let (mut stacked, mut combined) = (Stack::default(), Stack::default());
        for (index, text) in texts.iter().enumerate() {
            add(&mut stacked, &format!("l{index}"), text, Adding::OnTop).unwrap();
            let label = if index > 0 && index == at { index - 1 } else { index };
            add(&mut combined, &format!("l{label}"), text, Adding::Combined).unwrap();
        }
        let plain = |stack: &Stack| {
            let mut services = stack.plan().services.clone();
            services.values_mut().for_each(|service| service.mode = None);
            services
        };
        prop_assert_eq!(plain(&stacked), plain(&combined));
    }

    #[test]
    fn no_text_panics(text in "[a-z{}:\\[\\]&*\n -]{0,80}") {
        let _ = Layer::read("l", &text, &PodLimits::default());
    }
}
