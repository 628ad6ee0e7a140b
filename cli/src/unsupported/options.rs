//! Juju's options that its verbs do not have here.

/// Options of verbs that are here.
pub(super) struct OptionReason {
    /// The verbs; empty means all.
    pub(super) verbs: &'static [&'static str],
    pub(super) options: &'static [&'static str],
    pub(super) because: &'static str,
    pub(super) instead: &'static str,
}

/// All such options.
pub(super) const OPTIONS: &[OptionReason] = &[
    OptionReason {
        verbs: &["add-cloud", "add-model"],
        options: &["--target-controller"],
        because: "no controller manages others",
        instead: "--controller names the controller itself",
    },
    OptionReason {
        verbs: &["bootstrap"],
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
        instead: "`periapt bootstrap`; other hosts join by `periapt agent-token` and `periapt agent run`",
    },
    OptionReason {
        verbs: &["bootstrap"],
        options: &[
            "--agent-version",
            "--auto-upgrade",
            "--build-agent",
            "--controller-charm-channel",
            "--controller-charm-path",
            "--db-snap",
            "--db-snap-asserts",
        ],
        because: "the controller is this program, in its own version, and no charm",
        instead: "`periapt version` says which",
    },
    OptionReason {
        verbs: &["deploy"],
        options: &["--series"],
        because: "all charms run on one base, wasi@0.2, whatever the host is",
        instead: "leave it out",
    },
    OptionReason {
        verbs: &["deploy"],
        options: &["--channel", "--revision"],
        because: "there is no store of charms: they come from paths",
        instead: "name the path of the version that is meant",
    },
    OptionReason {
        verbs: &["deploy"],
        options: &["--device"],
        because: "a sandbox has no devices",
        instead: "leave it out",
    },
    OptionReason {
        verbs: &["refresh"],
        options: &["--channel", "--switch"],
        because: "there is no store of charms: they come from paths",
        instead: "`--path` names the version that is meant, `--revision` one that the application had",
    },
    OptionReason {
        verbs: &["exec"],
        options: &["--machine"],
        because: "a machine is a place for sandboxes, and a script is run in a unit's hook context",
        instead: "`periapt exec --unit UNIT -- COMMAND`",
    },
    OptionReason {
        verbs: &[],
        options: &["--logging-config"],
        because: "this program's own log is set by a variable",
        instead: "PERIAPT_LOG=periapt_agent=debug, or --debug for all of it",
    },
    OptionReason {
        verbs: &["add-model"],
        options: &["--owner"],
        because: "a model is owned by the user who makes it",
        instead: "`periapt grant USER admin MODEL` gives another user the same access",
    },
    OptionReason {
        verbs: &["controllers"],
        options: &["--managed"],
        because: "no controller manages others",
        instead: "`periapt controllers` lists all that this client knows",
    },
    OptionReason {
        verbs: &["debug-log"],
        options: &["--exclude-labels", "--include-labels", "--location"],
        because: "lines have an entity, a level and a module, and neither labels nor places in a source",
        instead: "--include, --level and --include-module choose among them",
    },
    OptionReason {
        verbs: &["debug-log"],
        options: &["--firehose"],
        because: "each model has a log of its own",
        instead: "`periapt debug-log --model MODEL` shows it",
    },
    OptionReason {
        verbs: &["debug-log"],
        options: &["--retry", "--retry-delay"],
        because: "a log is read from one connection",
        instead: "`periapt debug-log --tail` again goes on with the newest lines",
    },
    OptionReason {
        verbs: &["documentation"],
        options: &["--discourse-ids", "--no-index", "--split", "--url"],
        because: "it is one document, or a manual page for each command",
        instead: "`periapt documentation --format man --out DIR` writes the latter",
    },
    OptionReason {
        verbs: &["export-bundle"],
        options: &["--include-charm-defaults", "--include-series"],
        because: "a bundle says what was set, and the charm the rest",
        instead: "`periapt config APPLICATION` shows all settings with their defaults",
    },
    OptionReason {
        verbs: &["model-defaults"],
        options: &["--cloud", "--region"],
        because: "defaults hold in all models of a controller: there are no clouds and regions",
        instead: "leave it out",
    },
    OptionReason {
        verbs: &["move-to-space"],
        options: &["--format", "--output", "-o"],
        because: "it prints nothing",
        instead: "`periapt subnets --format yaml` shows which space each is in",
    },
    OptionReason {
        verbs: &["offers"],
        options: &["--allowed-consumer"],
        because: "grants of offers are not searched by user",
        instead: "--connected-user names who consumes, `periapt show-offer` who may",
    },
    OptionReason {
        verbs: &["operations"],
        options: &["--machines"],
        because: "tasks run in units, and none on machines",
        instead: "--units names the units",
    },
    OptionReason {
        verbs: &["remove-space"],
        options: &["--force"],
        because: "endpoints would be left in no space",
        instead: "`periapt bind` moves what is bound to another one; `periapt show-space` lists it",
    },
    OptionReason {
        verbs: &["rename-space"],
        options: &["--rename"],
        because: "the new name stands behind the old one",
        instead: "`periapt rename-space OLD NEW`",
    },
    OptionReason {
        verbs: &["show-controller"],
        options: &["--show-password"],
        because: "nobody has a password yet",
        instead: "leave it out",
    },
    OptionReason {
        verbs: &["storage"],
        options: &["--volume"],
        because: "a sandbox has files, not devices",
        instead: "`periapt storage` lists filesystems",
    },
    OptionReason {
        verbs: &["subnets"],
        options: &["--zone"],
        because: "a subnet is where agents have it, in whatever zones",
        instead: "--space chooses among subnets, `periapt agents` shows agents' zones",
    },
];
