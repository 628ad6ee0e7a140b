//! Output to terminals and to programs: hostile texts cannot steer a terminal, and programs get every byte.

use std::{fs, io::Write as _, process::Stdio};

use periapt_host_api::yaml;
use periapt_tests::{Installation, module};
use serde_json::{Value, json};

/// Sets a window's title, clears the screen (also with the one-character form), deletes, reverses the writing
/// direction, and is invisible.
const HOSTILE: &str =
    "a\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{8}\u{202e}b\u{2066}\u{200b}\u{200d}\u{feff}c";

/// Returns the characters that a terminal obeys or hides, without the binary's own colours.
fn steering(text: &str) -> Vec<char> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = rest.strip_prefix("\u{1b}[").and_then(|after| {
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            after[end..].starts_with('m').then(|| &after[end + 1..])
        });
        if let Some(after) = style {
            rest = after;
            continue;
        }
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if hidden || (c.is_control() && !matches!(c, '\n' | '\t')) {
            found.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    found
}

/// Creates a unit whose action logs and returns the hostile text, and which has it in its state and its application's
/// settings.
fn hostile_unit() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", [])?;
    periapt.wait_for(["unit", "probe/0", "--status", "unknown"])?;
    periapt.ok(["run", "--string-args", "probe/0", "greet", &format!("whom={HOSTILE}")])?;
    periapt.ok(["exec", "--unit", "probe/0", "--", &format!("state-set 'key={HOSTILE}'")])?;
    periapt.ok(["exec", "--unit", "probe/0", "--", &format!("status-set active '{HOSTILE}'")])?;
    periapt.ok(["exec", "--unit", "probe/0", "--", &format!("juju-log '{HOSTILE}'")])?;
    periapt.ok(["config", "probe", &format!("script=never: log {HOSTILE}")])?;
    periapt.wait_for(["model"])?;
    Ok(periapt)
}

#[test]
fn a_terminal_is_sent_no_control_of_strangers_and_a_program_each_byte() -> anyhow::Result<()> {
    let periapt = hostile_unit()?;
    // Results, state, settings, statuses, logs: all show the characters as escapes.
    for arguments in [
        &["run", "--string-args", "probe/0", "greet", &format!("whom={HOSTILE}")][..],
        &["show-task", "2"],
        &["show-task", "2", "--format", "yaml"],
        &["show-operation", "1"],
        &["exec", "--unit", "probe/0", "--", "state-get", "key"],
        &["config", "probe", "script"],
        &["config", "probe"],
        &["status"],
        &["status", "--format", "yaml"],
        &["show-unit", "probe/0"],
        &["show-status-log", "probe/0"],
        &["debug-log", "--no-tail", "--replay"],
        &["config", "probe", HOSTILE],
        &["add-model", HOSTILE],
        &[HOSTILE],
        &["deploy", HOSTILE],
        &["status", &format!("--{HOSTILE}")],
        &["-v", "status"],
    ] {
        let sent = periapt.on_terminal(arguments)?;
        assert_eq!(steering(&sent), Vec::<char>::new(), "{arguments:?}: {sent:?}");
        assert!(sent.contains("\\u202e") || arguments[0] == "-v", "{arguments:?} hides it: {sent:?}");
    }
    let script = format!("never: log {HOSTILE}");
    let text = format!("hello {HOSTILE}");
    let sent = periapt.on_terminal(["show-task", "2", "--format", "json"])?;
    assert_eq!(steering(&sent), Vec::<char>::new());
    assert_eq!(serde_json::from_str::<Value>(&sent)?["results"]["greeting"]["text"], json!(text));

    assert_eq!(periapt.ok(["config", "probe", "script"])?, format!("{script}\n"));
    assert_eq!(periapt.json(["config", "probe"])?["settings"]["script"]["value"], json!(script));
    let settings: Value = yaml::parse(&periapt.ok(["config", "probe"])?)?;
    assert_eq!(settings["settings"]["script"]["value"], json!(script));
    assert_eq!(periapt.json(["show-task", "2"])?["results"]["greeting"]["text"], json!(text));
    let status = periapt.json(["status"])?;
    let message = status.pointer("/applications/probe/units/probe~10/workload-status/message");
    assert_eq!(message, Some(&json!(HOSTILE)));
    let kept = periapt.ok(["exec", "--unit", "probe/0", "--", "state-get", "key"])?;
    assert_eq!(kept, format!("{HOSTILE}\n"));
    Ok(())
}

#[test]
fn what_a_file_says_of_itself_steers_no_terminal_before_anything_is_deployed() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let charm = periapt.path().join("charm");
    fs::create_dir(&charm)?;
    fs::copy(module("mysql")?, charm.join("charm.wasm"))?;
    for metadata in [
        format!("name: {}\nsummary: s\ndescription: d\n", json!(HOSTILE)),
        format!("name: a\nsummary: s\ndescription: d\nrequires: {{{}: {{interface: i}}}}\n", json!(HOSTILE)),
        format!("name: a\nsummary: s\ndescription: d\nstorage: {{data: {{type: {}}}}}\n", json!(HOSTILE)),
        format!("name: a\nsummary: s\ndescription: d\n{}: 1\n{0}: 1\n", json!(HOSTILE)),
        format!(
            "name: a\nsummary: s\ndescription: d\npeers: {{a: {{interface: i, scope: {}}}}}\n",
            json!(HOSTILE)
        ),
        format!(
            "name: a\nsummary: s\ndescription: d\nconfig: {{options: {{o: {{type: int, default: {}}}}}}}\n",
            json!(HOSTILE)
        ),
    ] {
        fs::write(charm.join("charmcraft.yaml"), &metadata)?;
        for text in [periapt.on_terminal(["pack", "charm"])?, periapt.run(["pack", "charm"])?.stderr] {
            assert_eq!(steering(&text), Vec::<char>::new(), "{text:?}");
            assert!(text.starts_with("ERROR "), "{text:?}");
        }
    }
    Ok(())
}

#[test]
fn a_line_break_in_a_message_makes_no_line_of_the_log() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", [])?;
    periapt.wait_for(["unit", "probe/0", "--status", "unknown"])?;
    let forged = "unit-mysql-0: 12:00:00 ERROR unit.mysql/0.juju-log";
    for end in ["\n", "\r\n", "\r", "\u{b}", "\u{85}", "\u{2028}"] {
        let message = format!("an honest beginning{end}{forged} all is lost");
        periapt.ok(["exec", "--unit", "probe/0", "--", &format!("juju-log '{message}'")])?;
    }
    let log = periapt.ok(["debug-log", "--no-tail", "--replay"])?;
    // Line breaks as Python defines them.
    let lines = log.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    for line in lines {
        assert!(!line.starts_with("unit-mysql-0"), "{log}");
    }
    assert_eq!(log.matches(forged).count(), 6, "all of it is shown: {log}");
    // The messages of an action arrive while it runs, one per line.
    let done = periapt.run(["run", "--string-args", "probe/0", "greet", "whom=you\n12:00:00 forged"])?;
    assert!(done.stderr.contains("greeting you\n    12:00:00 forged\n"), "{}", done.stderr);
    Ok(())
}

#[test]
fn a_question_that_nobody_can_see_or_answer_is_a_no() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let destroy = ["destroy-controller", "local"];
    // An endless answer.
    let endless = periapt.command(destroy).stdin(fs::File::open("/dev/zero")?).output()?;
    assert_eq!(endless.status.code(), Some(1));
    let mut unseen = periapt.command(destroy);
    unseen.stdin(Stdio::piped()).stderr(fs::File::options().write(true).open("/dev/full")?);
    let mut unseen = unseen.spawn()?;
    unseen.stdin.take().unwrap().write_all(b"y\n")?;
    assert_eq!(unseen.wait()?.code(), Some(1));
    assert!(periapt.ok(["controllers"])?.contains("available"));
    Ok(())
}
