//! Juju's verbs that Periapt leaves out.

/// Verbs with a common reason for their absence, and an alternative.
pub(super) struct Reason {
    pub(super) verbs: &'static [&'static str],
    pub(super) because: &'static str,
    pub(super) instead: &'static str,
}

/// All such verbs.
pub(super) const VERBS: &[Reason] = &[
    Reason {
        verbs: &["debug-code", "debug-hook", "debug-hooks", "import-ssh-key", "scp", "ssh"],
        because: "a unit is no machine to log in to: its hooks run in a sandbox, which has no shell",
        instead: "`periapt exec` runs hook tools and simple commands in a unit, `periapt exec --container NAME -it UNIT -- sh` is a shell in its container, `periapt debug-log` and `periapt hooks` show what hooks did",
    },
    Reason {
        verbs: &[
            "default-region",
            "grant-cloud",
            "list-regions",
            "regions",
            "revoke-cloud",
            "set-default-region",
            "update-public-clouds",
        ],
        because: "there are no clouds: units run on agents, which are processes on hosts of yours",
        instead: "`periapt agent-token` lets a host's agent join, `periapt agents` lists them",
    },
    Reason {
        verbs: &["autoload-credentials", "default-credential", "set-credential", "set-default-credentials"],
        because: "credentials are kept, and nobody logs in with them",
        instead: "`periapt add-credential` keeps one from a file, `periapt credentials` lists them",
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
    Reason {
        verbs: &["controller-config"],
        because: "a controller has no settings of its own",
        instead: "`periapt model-defaults` says what holds in all its models",
    },
    Reason {
        verbs: &["download-backup"],
        because: "a controller keeps no backups of itself",
        instead: "`periapt create-backup` writes one into a file of the client's",
    },
    Reason {
        verbs: &["dashboard"],
        because: "there is nothing to look at in a browser",
        instead: "`periapt status --watch 1s` shows a model as it changes",
    },
    Reason {
        verbs: &["disable-command", "disabled-commands", "enable-command", "list-disabled-commands"],
        because: "no command can be switched off",
        instead: "leave out --no-prompt: `periapt destroy-model` and its like then ask before they do it",
    },
    Reason {
        verbs: &["enable-destroy-controller"],
        because: "no command can be switched off",
        instead: "`periapt destroy-controller` asks before it does it",
    },
    Reason {
        verbs: &["upgrade-model"],
        because: "a model has no agents of its own: each agent serves all models, in the version of the controllers",
        instead: "`periapt upgrade-controller` has controllers and agents replace their program",
    },
    Reason {
        verbs: &["charm-resources", "list-charm-resources"],
        because: "there is no store of charms: they come from paths",
        instead: "a charm's charmcraft.yaml names its resources, `periapt resources` those of an application",
    },
];
