//! The command line: the global options and the commands.

use clap::Parser;

use crate::{commands::Command, logging::Process, output::ColorChoice};

/// Juju's model for charms that you did not write and do not trust: their hooks run in a sandbox.
#[derive(Debug, Parser)]
#[command(name = "periapt", bin_name = "periapt", version, max_term_width = 110, after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    /// Colour the output; without a value, always
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_enum,
        default_value = "auto",
        default_missing_value = "always",
        num_args = 0..=1,
        require_equals = true,
        value_name = "WHEN"
    )]
    color: ColorChoice,
    /// Do not colour the output
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "color")]
    no_color: bool,
    /// Show no informational output
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with_all = ["verbose", "debug"])]
    pub(crate) quiet: bool,
    /// Show more verbose output
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
    /// Show debug output
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) debug: bool,
    /// The same as --verbose
    #[arg(long, global = true, help_heading = GLOBAL, conflicts_with = "quiet")]
    pub(crate) show_log: bool,
    /// Accepted for compatibility with Juju; there is no browser login
    #[arg(short = 'B', long, global = true, hide = true)]
    no_browser_login: bool,
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The words that name the command, without its arguments.
    #[arg(skip)]
    pub(crate) verb: String,
}

/// The help heading of the options of all commands.
const GLOBAL: &str = "Global options";

const FIRST_STEPS: &str = "\
First steps:
  periapt bootstrap                      a controller and an agent on this machine
  periapt add-model blog
  periapt deploy ./mysql.charm
  periapt deploy ./wordpress.charm -n 3
  periapt integrate wordpress mysql
  periapt status --watch 1s

Exit codes: 0 it was done, 1 it failed or was refused, 2 the command line is invalid, 128+N signal N ended it.
Environment: PERIAPT_DATA, PERIAPT_CONTROLLER, PERIAPT_MODEL, PERIAPT_LOG (such as periapt_agent=debug), NO_COLOR.
Traces: with OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:PORT spans are sent there; TRACEPARENT names the caller's step.
Grammar: of an option that is given twice the last counts, unless it is a list; a flag takes =true and =false.
Completion: `periapt completion SHELL` prints what makes a shell ask for commands, options and names.";

impl Cli {
    /// Returns the level of the log. A service, and a process of one, has no message but its log.
    pub(crate) fn log_level(&self, process: Process) -> &'static str {
        match (self.debug, self.verbose || self.show_log, self.quiet, process) {
            (true, ..) => "debug",
            (_, true, ..) | (_, _, false, Process::Service(_) | Process::OfService) => "info",
            (_, _, true, _) => "error",
            (_, _, false, Process::Verb) => "warn",
        }
    }

    /// Returns the choice of colours.
    pub(crate) fn color(&self) -> ColorChoice {
        match self.no_color {
            true => ColorChoice::Never,
            false => self.color,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::grammar;

    /// Returns the commands of an example text, split into words, without prompts and comments.
    fn examples(text: &str) -> Vec<Vec<String>> {
        let lines = text.lines().map(str::trim).map(|line| line.strip_prefix("$ ").unwrap_or(line));
        lines
            .filter(|line| line.starts_with("periapt "))
            .map(|line| {
                line.split_once(" # ").or_else(|| line.split_once("   ")).map_or(line, |(code, _)| code)
            })
            .map(words)
            .collect()
    }

    /// Splits at blanks, except within single quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    fn check(text: &str) -> usize {
        let examples = examples(text);
        for example in &examples {
            if let Err(error) = grammar::read(example) {
                assert!(error.exit_code() == 0, "{}: {error}", example.join(" "));
            }
        }
        examples.len()
    }

    /// Checks the examples of a command and its subcommands, and returns their number.
    fn check_help(command: &clap::Command) -> usize {
        let own = command.get_after_help().map_or(0, |help| check(&help.to_string()));
        own + command.get_subcommands().map(check_help).sum::<usize>()
    }

    #[test]
    fn each_example_in_a_help_text_and_in_the_readme_is_a_command() {
        let count = check_help(&Cli::command());
        assert!(count > 30, "{count} examples found");
        let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        assert!(check(&readme) > 3, "the README shows no use");
        assert!(grammar::read(&examples("periapt no-such-command")[0]).is_err());
    }

    #[test]
    fn colours_are_asked_for_and_refused_in_jujus_way_too() {
        let color =
            |words: &[&str]| grammar::read(&[&["periapt"], words].concat()).map(|cli| cli.color()).ok();
        assert_eq!(color(&["status"]), Some(ColorChoice::Auto));
        assert_eq!(color(&["status", "--color", "mysql"]), Some(ColorChoice::Always));
        assert_eq!(color(&["--color=never", "status"]), Some(ColorChoice::Never));
        assert_eq!(color(&["status", "--no-color"]), Some(ColorChoice::Never));
        assert_eq!(color(&["status", "--no-color", "--color"]), None);
    }

    #[test]
    fn a_model_is_named_before_and_after_what_a_command_is_about() {
        let command = Cli::command();
        let of_models = |command: &&clap::Command| {
            command.get_arguments().any(|arg| arg.get_id() == "model" && arg.get_short() == Some('m'))
        };
        let commands: Vec<_> =
            command.get_subcommands().filter(of_models).map(clap::Command::get_name).collect();
        assert!(commands.len() > 50, "{commands:?}");
        for line in [
            &["status", "mysql"][..],
            &["config", "mysql", "a=b"],
            &["run", "mysql/0", "act", "a=b"],
            &["deploy", "./mysql"],
        ] {
            let (verb, rest) = line.split_first().unwrap();
            for option in [&["-m", "blog"][..], &["--model", "blog"], &["--model=blog"]] {
                let before = ["periapt", verb].iter().chain(option).chain(rest).copied().collect::<Vec<_>>();
                let after = ["periapt", verb].iter().chain(rest).chain(option).copied().collect::<Vec<_>>();
                assert!(grammar::read(&before).is_ok(), "{before:?}");
                assert!(grammar::read(&after).is_ok(), "{after:?}");
            }
        }
    }

    #[test]
    fn whatever_has_forms_goes_into_a_file_as_well() {
        // A log and a status are streams with formats of their own.
        let streams = ["debug-log", "documentation"];
        for command in Cli::command().get_subcommands() {
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            let excepted = streams.contains(&command.get_name());
            assert!(!has("format") || has("output") || excepted, "{} has no --output", command.get_name());
        }
    }

    #[test]
    fn each_command_says_what_it_does() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
        }
    }
}
