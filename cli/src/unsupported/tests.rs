//! Each command and option of Juju is here, or is refused with its reason.

use std::collections::BTreeSet;

use super::*;

fn asked(line: &[&str]) -> Option<String> {
    let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    let error = grammar::read(&[&["periapt"], line].concat()).map(drop).unwrap_err();
    answer(&error, &arguments).map(|failure| failure.to_string())
}

#[test]
fn each_verb_and_option_of_the_tables_is_answered_with_its_reason_and_is_not_here() {
    let mut seen = BTreeSet::new();
    for reason in VERBS {
        for verb in reason.verbs {
            assert!(seen.insert((*verb).to_owned()), "{verb} is given twice");
            for line in [vec![*verb], vec![*verb, "x", "--y"], vec!["--quiet", *verb]] {
                let text = asked(&line).unwrap_or_else(|| panic!("{line:?} is answered by another rule"));
                let start = format!("{verb} is not supported, because {}", reason.because);
                assert_eq!(text, format!("{start}\nhint: {}", reason.instead));
            }
        }
    }
    for reason in OPTIONS {
        let verbs = if reason.verbs.is_empty() { &["status", "models"][..] } else { reason.verbs };
        for (verb, option) in verbs.iter().flat_map(|verb| reason.options.iter().map(move |it| (*verb, *it)))
        {
            assert!(seen.insert(format!("{verb} {option}")), "{verb} {option} is given twice");
            for line in [vec![verb, option], vec![verb, &format!("{option}=1")]] {
                let text = asked(&line).unwrap_or_else(|| panic!("{line:?} is answered by another rule"));
                assert!(text.starts_with(&format!("{verb} {option} is not supported, because ")), "{text}");
            }
        }
    }
    let command = grammar::shown();
    for verb in VERBS.iter().flat_map(|reason| reason.verbs) {
        assert!(command.find_subcommand(verb).is_none(), "{verb} is here");
    }
}

#[test]
fn what_is_nobodys_verb_is_left_to_the_parser() {
    assert_eq!(asked(&["no-such-command"]), None);
    assert_eq!(asked(&["deploy", "x", "--no-such-option"]), None);
    assert_eq!(asked(&["deploy"]), None);
    assert_eq!(asked(&["config", "x", "--channel", "edge"]), None);
}

#[test]
fn what_is_told_instead_is_here() {
    let command = grammar::shown();
    let texts = VERBS.iter().map(|reason| reason.instead).chain(OPTIONS.iter().map(|reason| reason.instead));
    let mut checked = 0;
    for text in texts {
        for quoted in text.split('`').skip(1).step_by(2) {
            let Some(verb) = quoted.strip_prefix("periapt ").and_then(|rest| rest.split(' ').next()) else {
                continue;
            };
            assert!(command.find_subcommand(verb).is_some(), "{quoted} is not here");
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn the_list_of_differences_names_each_verb() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/juju-differences.md");
    let text = std::fs::read_to_string(path).unwrap();
    for verb in VERBS.iter().flat_map(|reason| reason.verbs) {
        assert!(text.contains(&format!("`{verb}`")), "docs/juju-differences.md does not name {verb}");
    }
}

/// Returns the options that one word of the table stands for.
fn options(word: &str) -> Vec<&str> {
    match word {
        "%model" => vec!["-m", "--model"],
        "%controller" => vec!["-c", "--controller"],
        "%output" => vec!["--format", "-o", "--output"],
        option => vec![option],
    }
}

/// Returns true if a command takes an option, shown or hidden.
fn takes(command: &clap::Command, option: &str) -> bool {
    command.get_arguments().any(|argument| match option.strip_prefix("--") {
        Some(long) => {
            argument.get_long() == Some(long)
                || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
        }
        None => option.strip_prefix('-').is_some_and(|short| {
            argument.get_short().is_some_and(|it| short.chars().eq([it]))
                || argument
                    .get_all_short_aliases()
                    .is_some_and(|it| it.iter().any(|it| short.chars().eq([*it])))
        }),
    })
}

#[test]
fn each_command_and_option_of_juju_is_here_or_is_refused_with_its_reason() {
    let mut cli = grammar::shown();
    cli.build();
    let mut wrong = Vec::new();
    let (mut verbs, mut checked) = (0, 0);
    let table = include_str!("juju.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    for line in table {
        let (names, row) = line.split_once(':').unwrap();
        for name in names.split_whitespace() {
            verbs += 1;
            let words: Vec<_> = name.split('_').collect();
            let found = words.iter().try_fold(&cli, |command, word| command.find_subcommand(word));
            let topic = crate::help::resolved(vec!["periapt".into(), "help".into(), name.into()]);
            if found.is_none() && verb(name).is_none() && topic[1] == "help" {
                wrong.push(format!("{name} is neither here nor refused"));
            }
            // `help` is the parser's own command.
            let Some(command) = found.filter(|command| command.get_name() != "help") else { continue };
            let everywhere = [
                "--debug",
                "--quiet",
                "--show-log",
                "--verbose",
                "--logging-config",
                "-B",
                "--no-browser-login",
            ];
            for option in everywhere.into_iter().chain(row.split_whitespace()).flat_map(options) {
                checked += 1;
                let (here, refused) = (takes(command, option), self::option(words[0], option).is_some());
                let canonical = self::option(command.get_name(), option).is_some();
                if here == (refused || canonical) {
                    wrong.push(format!("{name} {option}: here {here}, refused {refused}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(verbs > 200 && checked > 1_500, "{verbs} commands, {checked} options");
}
