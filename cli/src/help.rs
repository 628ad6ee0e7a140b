//! Juju's help topics: `help hook-tool relation-get` is the command `help-hook-commands relation-get`.

use std::ffi::{OsStr, OsString};

/// Juju's names of help topics on charms' tools, with the verbs that explain them here.
const TOPICS: [(&[&str], &str); 2] = [
    (&["hook-tool", "hook-tools", "hook-command", "hook-commands"], "help-hook-commands"),
    (&["action-command", "action-commands"], "help-action-commands"),
];

/// Replaces a topic of `help` in the arguments by its verb. The program's name comes first.
pub(crate) fn resolved(arguments: Vec<OsString>) -> Vec<OsString> {
    let asked = |at: usize| arguments.get(at).and_then(|word| OsStr::to_str(word));
    let (Some("help"), Some(topic)) = (asked(1), asked(2)) else { return arguments };
    let verb = match topic {
        // The topic of all commands is `help` itself.
        "commands" => "help",
        topic => match TOPICS.iter().find(|(names, _)| names.contains(&topic)) {
            Some((_, verb)) => verb,
            None => return arguments,
        },
    };
    let mut resolved: Vec<OsString> = arguments.iter().take(1).cloned().collect();
    resolved.push(verb.into());
    resolved.extend(arguments.into_iter().skip(3));
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let words = line.split_whitespace().map(OsString::from).collect();
        let words: Vec<_> = resolved(words).into_iter().map(|word| word.into_string().unwrap()).collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_topic_stands_for_its_verb() {
        check("periapt help hook-tool relation-get", "periapt help-hook-commands relation-get");
        check("periapt help hook-tools", "periapt help-hook-commands");
        check("periapt help action-command", "periapt help-action-commands");
        check("periapt help commands", "periapt help");
        check("periapt help deploy", "periapt help deploy");
        check("periapt status help", "periapt status help");
        check("periapt", "periapt");
    }
}
