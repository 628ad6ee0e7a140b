//! What Juju has and Periapt has not, on purpose: whoever types it is told why, and what there is instead.
//!
//! `docs/juju-differences.md` lists the same. What is only not there yet is not in here.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Failure;

/// Verbs with the one reason that they are not here, and what to do instead.
struct Reason {
    verbs: &'static [&'static str],
    because: &'static str,
    instead: &'static str,
}

/// Options of verbs that are here.
struct OptionReason {
    verb: &'static str,
    options: &'static [&'static str],
    because: &'static str,
    instead: &'static str,
}

const VERBS: &[Reason] = &[
    Reason {
        verbs: &["debug-code", "debug-hook", "debug-hooks", "import-ssh-key", "scp", "ssh"],
        because: "a unit is no machine to log in to: its hooks run in a sandbox, which has no shell",
        instead: "`periapt exec` runs a hook tool in a unit, `periapt debug-log` and `periapt hooks` show what hooks did",
    },
    Reason {
        verbs: &[
            "default-region",
            "grant-cloud",
            "list-regions",
            "regions",
            "revoke-cloud",
            "update-public-clouds",
        ],
        because: "there are no clouds: units run on agents, which are processes on hosts of yours",
        instead: "`periapt agent run` on a host adds an agent, `periapt agents` lists them",
    },
    Reason {
        verbs: &[
            "autoload-credentials",
            "default-credential",
            "set-credential",
            "show-credential",
            "show-credentials",
            "update-credentials",
        ],
        because: "there are no clouds, and so no credentials for them",
        instead: "`periapt agent run` on a host adds an agent",
    },
    Reason {
        verbs: &["add-k8s", "remove-k8s", "scale-application", "update-k8s"],
        because: "units run in sandboxes of agents, not in Kubernetes",
        instead: "`periapt add-unit` and `periapt remove-unit` say how many units there are",
    },
    Reason {
        verbs: &["add-machine"],
        because: "a machine is a place on an agent, and comes and goes with the units on it",
        instead: "`periapt deploy` and `periapt add-unit` take `--to MACHINE` and `--to agent=NAME`",
    },
    Reason {
        verbs: &["set-application-base", "set-series", "upgrade-machine", "upgrade-series"],
        because: "all charms run on one base, wasi@0.2, whatever the host is",
        instead: "`periapt refresh` gives an application another charm",
    },
    Reason {
        verbs: &["download", "find", "info"],
        because: "there is no store of charms: they come from paths",
        instead: "`periapt pack` makes a charm, `periapt deploy ./NAME.charm` deploys it",
    },
    Reason {
        verbs: &[
            "add-secret-backend",
            "list-secret-backends",
            "model-secret-backend",
            "remove-secret-backend",
            "secret-backends",
            "show-secret-backend",
            "update-secret-backend",
        ],
        because: "secrets are sealed by the controller under a key that is not in its database; there is no other backend",
        instead: "`periapt secrets` lists them",
    },
    Reason {
        verbs: &["create-storage-pool", "import-filesystem", "remove-storage-pool", "update-storage-pool"],
        because: "there is one pool: directories on the disks of agents",
        instead: "`periapt deploy --storage NAME=SIZE` says how large each is",
    },
    Reason {
        verbs: &["firewall-rules", "list-firewall-rules", "set-firewall-rule"],
        because: "firewalls are derived from open ports and exposure",
        instead: "`periapt expose --to-cidrs` says from where, `periapt machines --format yaml` shows the rules",
    },
    Reason {
        verbs: &["reload-spaces"],
        because: "agents say which subnets their hosts have, without being asked",
        instead: "`periapt subnets` lists them",
    },
    Reason {
        verbs: &["list-payloads", "payloads"],
        because: "a sandboxed charm starts no payloads",
        instead: "`periapt status` shows what runs",
    },
    Reason {
        verbs: &["collect-metrics", "metrics", "set-meter-status"],
        because: "charms collect no metrics of Juju's",
        instead: "`periapt usage` shows what units have used",
    },
    Reason {
        verbs: &["sync-agent-binaries", "sync-agent-binary", "sync-tools"],
        because: "a controller hands out no agents: client, controller and agent are one program",
        instead: "install that program on the agent's host",
    },
    Reason {
        verbs: &["agree", "agreements", "list-agreements", "sla"],
        because: "charms come without terms to agree to",
        instead: "a charm's licence lies in its archive",
    },
    Reason {
        verbs: &["diff-bundle"],
        because: "deploying a bundle compares it with the model already",
        instead: "`periapt deploy ./bundle.yaml --dry-run` says what differs",
    },
    Reason { verbs: &["add-relation"], because: "it was renamed", instead: "`periapt integrate`" },
    Reason { verbs: &["upgrade-charm"], because: "it was renamed", instead: "`periapt refresh`" },
    Reason { verbs: &["run-action"], because: "it was renamed", instead: "`periapt run`" },
    Reason {
        verbs: &["show-action-output", "show-action-status"],
        because: "they were renamed",
        instead: "`periapt show-task`, `periapt operations`",
    },
];

const OPTIONS: &[OptionReason] = &[
    OptionReason {
        verb: "add-cloud",
        options: &["--target-controller"],
        because: "no controller manages others",
        instead: "`periapt add-cloud --controller NAME` names the controller itself",
    },
    OptionReason {
        verb: "bootstrap",
        options: &[
            "--bootstrap-base",
            "--bootstrap-constraints",
            "--bootstrap-image",
            "--bootstrap-series",
            "--clouds",
            "--constraints",
            "--credential",
            "--metadata-source",
            "--region",
            "--regions",
            "--storage-pool",
            "--to",
        ],
        because: "a controller is a process on this machine: there is no cloud to start one in",
        instead: "`periapt bootstrap`; more hosts are added by `periapt agent run`",
    },
    OptionReason {
        verb: "bootstrap",
        options: &[
            "--agent-version",
            "--auto-upgrade",
            "--build-agent",
            "--controller-charm-channel",
            "--controller-charm-path",
        ],
        because: "the controller is this program, in its own version, and no charm",
        instead: "`periapt version` says which",
    },
    OptionReason {
        verb: "bootstrap",
        options: &["--config"],
        because: "a controller has no settings, and no model of its own that could have some",
        instead: "leave it out",
    },
    OptionReason {
        verb: "add-model",
        options: &["--credential"],
        because: "there are no clouds, and so no credentials for them",
        instead: "leave it out",
    },
    OptionReason {
        verb: "deploy",
        options: &["--base", "--series"],
        because: "all charms run on one base, wasi@0.2, whatever the host is",
        instead: "leave it out",
    },
    OptionReason {
        verb: "deploy",
        options: &["--channel", "--revision"],
        because: "there is no store of charms: they come from paths",
        instead: "name the path of the version that is meant",
    },
    OptionReason {
        verb: "deploy",
        options: &["--device"],
        because: "a sandbox has no devices",
        instead: "leave it out",
    },
    OptionReason {
        verb: "refresh",
        options: &["--channel", "--revision", "--switch"],
        because: "there is no store of charms: they come from paths",
        instead: "`--path` names the version that is meant",
    },
    OptionReason {
        verb: "refresh",
        options: &["--base"],
        because: "all charms run on one base, wasi@0.2, whatever the host is",
        instead: "leave it out",
    },
    OptionReason {
        verb: "exec",
        options: &["--machine"],
        because: "a machine is a place for sandboxes, and what is run is a hook tool of a unit in one",
        instead: "`periapt exec --unit UNIT -- TOOL`",
    },
];

/// What is said to a command line that was not understood because it is Juju's; none for all others.
pub(crate) fn answer(error: &clap::Error, arguments: &[String]) -> Option<Failure> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(named(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let verb = arguments.iter().find(|argument| !argument.starts_with('-'))?;
            option(verb, named(ContextKind::InvalidArg)?)
        }
        _ => None,
    }
}

fn verb(verb: &str) -> Option<Failure> {
    let found = VERBS.iter().find(|reason| reason.verbs.contains(&verb))?;
    let text = format!("{verb} is not here, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}

fn option(verb: &str, option: &str) -> Option<Failure> {
    // As it is named in the error, it may have a value.
    let name = option.split('=').next().unwrap_or(option);
    let found = OPTIONS.iter().find(|reason| reason.verb == verb && reason.options.contains(&name))?;
    let text = format!("{verb} {name} is not here, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::args::Cli;

    fn asked(line: &[&str]) -> Option<String> {
        let arguments: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let error = Cli::try_parse_from(std::iter::once("periapt").chain(line.iter().copied())).unwrap_err();
        answer(&error, &arguments).map(|failure| failure.to_string())
    }

    #[test]
    fn each_verb_and_option_of_the_tables_is_answered_with_its_reason_and_is_not_here() {
        let mut seen = BTreeSet::new();
        for reason in VERBS {
            for verb in reason.verbs {
                assert!(seen.insert((*verb).to_owned()), "{verb} stands there twice");
                for line in [vec![*verb], vec![*verb, "x", "--y"], vec!["--quiet", *verb]] {
                    let text =
                        asked(&line).unwrap_or_else(|| panic!("{line:?} is answered by somebody else"));
                    let start = format!("{verb} is not here, because {}", reason.because);
                    assert_eq!(text, format!("{start}\nhint: {}", reason.instead));
                }
            }
        }
        for reason in OPTIONS {
            for option in reason.options {
                assert!(seen.insert(format!("{} {option}", reason.verb)), "{option} stands there twice");
                for line in [vec![reason.verb, *option], vec![reason.verb, &format!("{option}=1")]] {
                    let text =
                        asked(&line).unwrap_or_else(|| panic!("{line:?} is answered by somebody else"));
                    assert!(
                        text.starts_with(&format!("{} {option} is not here, because ", reason.verb)),
                        "{text}"
                    );
                }
            }
        }
        let command = Cli::command();
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
        let command = Cli::command();
        let texts =
            VERBS.iter().map(|reason| reason.instead).chain(OPTIONS.iter().map(|reason| reason.instead));
        let mut checked = 0;
        for text in texts {
            for quoted in text.split('`').skip(1).step_by(2) {
                let Some(verb) = quoted.strip_prefix("periapt ").and_then(|rest| rest.split(' ').next())
                else {
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
}
