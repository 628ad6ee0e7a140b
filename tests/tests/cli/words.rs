//! Messages for people and scripts: an error names the missing entity once, and the program by the name that called
//! it.

use std::collections::BTreeSet;

use anyhow::ensure;
use periapt_tests::Installation;

/// Each command, with the name of a missing entity.
const MISSING: &[&str] = &[
    "actions nosuch",
    "add-credential nosuch --file nosuch.yaml",
    "add-model blog nosuch",
    "add-ssh-key nosuch",
    "add-storage nosuch/0 data",
    "add-token ci --models nosuch",
    "add-unit nosuch",
    "add-unit mysql --attach-storage nosuch/0",
    "add-unit mysql --to 7",
    "add-unit mysql --to agent=nosuch",
    "attach-resource nosuch data=nosuch.txt",
    "attach-resource mysql nosuch=mysql.charm",
    "attach-storage nosuch/0 data/0",
    "attach-storage mysql/0 nosuch/0",
    "bind nosuch alpha",
    "bind mysql nosuch",
    "bind mysql nosuch=alpha",
    "bootstrap nosuch nosuch-controller",
    "bootstrap other --restore nosuch.tar --passphrase-file nosuch.pass",
    "cancel-event nosuch/0 7",
    "cancel-event mysql/0 7",
    "cancel-task 7",
    "change-user-password nosuch --reset",
    "config nosuch",
    "config nosuch a=b",
    "config mysql nosuch",
    "config mysql nosuch=1",
    "config mysql --file nosuch.yaml",
    "constraints nosuch",
    "consume nosuch.offer",
    "consume test.nosuch",
    "controller join --controller https://127.0.0.1:1 --token-file nosuch.token --member second",
    "controller join --controller https://127.0.0.1:1 --token nosuch.token --member second",
    "controller start nosuch",
    "controller stop nosuch",
    "create-backup --passphrase-file nosuch.pass",
    "debug-log -m nosuch",
    "deploy nosuch",
    "deploy ./nosuch.charm",
    "deploy ./nosuch.yaml",
    "deploy mysql.charm db --to 7",
    "deploy mysql.charm db --to agent=nosuch",
    "deploy mysql.charm db --config nosuch=1",
    "deploy mysql.charm db --config nosuch.yaml",
    "deploy mysql.charm db --storage nosuch=1G",
    "deploy mysql.charm db --attach-storage nosuch/0",
    "deploy mysql.charm db --bind nosuch",
    "deploy mysql.charm db --bind nosuch=alpha",
    "deploy mysql.charm db --resource nosuch=mysql.charm",
    "destroy-controller nosuch -y",
    "destroy-model nosuch -y",
    "detach-storage nosuch/0",
    "disable-user nosuch",
    "enable-user nosuch",
    "exec --unit nosuch/0 -- is-leader",
    "exec --application nosuch -- is-leader",
    "export-bundle -m nosuch",
    "expose nosuch",
    "expose mysql --endpoints nosuch",
    "expose mysql --to-spaces nosuch",
    "find-offers nosuch",
    "grant-secret nosuch mysql",
    "hooks nosuch/0",
    "image pack nosuch",
    "image show nosuch",
    "integrate nosuch mysql",
    "integrate mysql:nosuch wordpress",
    "integrate mysql wordpress:nosuch",
    "integrate mysql nosuch:db",
    "kill-controller nosuch -y",
    "logs nosuch/0",
    "machines -m nosuch",
    "migrate nosuch elsewhere",
    "migrate test nosuch",
    "migrate nosuch --abort",
    "model-config nosuch",
    "model-config nosuch=1",
    "model-config --reset nosuch",
    "model-config --file nosuch.yaml",
    "model-constraints -m nosuch",
    "model-defaults nosuch",
    "model-defaults nosuch=1",
    "models -c nosuch",
    "move-to-space nosuch 192.0.2.0/24",
    "offer nosuch:db",
    "offer mysql:nosuch",
    "offers -m nosuch",
    "operations -m nosuch",
    "pack nosuch",
    "refresh nosuch",
    "refresh nosuch --path ./mysql.charm",
    "refresh mysql --path ./nosuch.charm",
    "remove-application nosuch -y",
    "remove-cloud nosuch",
    "remove-credential nosuch key",
    "remove-machine 7 -y",
    "remove-offer test.nosuch -y",
    "remove-relation nosuch mysql",
    "remove-relation mysql wordpress",
    "remove-relation 7",
    "remove-saas nosuch",
    "remove-secret nosuch",
    "remove-space nosuch -y",
    "remove-agent nosuch -y",
    "remove-ssh-key nosuch",
    "remove-storage nosuch/0",
    "remove-unit nosuch/0 -y",
    "rename-space nosuch dmz",
    "replay-hook nosuch/0",
    "resolved nosuch/0",
    "resources nosuch",
    "restart nosuch/0",
    "resume-relation 7",
    "retry-provisioning nosuch/0",
    "revoke-secret nosuch mysql",
    "run nosuch/0 act",
    "run mysql/0 nosuch",
    "secrets -m nosuch",
    "set-constraints nosuch mem=1G",
    "set-constraints mysql nosuch=1",
    "set-model-constraints nosuch=1",
    "show-action nosuch act",
    "show-action mysql nosuch",
    "show-application nosuch",
    "show-cloud nosuch",
    "show-controller nosuch",
    "show-credential nosuch key",
    "show-machine 7",
    "show-model nosuch",
    "show-offer test.nosuch",
    "show-operation 7",
    "show-secret nosuch",
    "show-space nosuch",
    "show-status-log nosuch/0",
    "show-storage nosuch/0",
    "show-task 7",
    "show-unit nosuch/0",
    "show-user nosuch",
    "spaces -m nosuch",
    "ssh-keys -m nosuch",
    "status -m nosuch",
    "status -m nosuch:test",
    "storage -m nosuch",
    "subnets -m nosuch",
    "suspend-relation 7",
    "switch nosuch",
    "switch local:nosuch",
    "trust nosuch",
    "try-hook ./nosuch.charm",
    "unexpose nosuch",
    "unregister nosuch -y",
    "update-cloud nosuch --file nosuch.yaml",
    "add-cloud nosuch nosuch.yaml",
    "update-secret nosuch a=b",
    "grant nosuch read test",
    "register nosuch",
    "remove-session 0123456789abcdef",
    "remove-user nosuch -y",
    "revoke nosuch read test",
    "sessions nosuch",
    "usage nosuch",
    "wait-for application nosuch --timeout 0",
    "wait-for machine 7 --timeout 0",
    "upgrade-controller --program nosuch",
    "wait-for model nosuch --timeout 0",
    "wait-for unit nosuch/0 --timeout 0",
];

/// The commands that cannot miss anything: they list, create or explain.
const COMPLETE: &[&str] = &[
    "add-secret",
    "add-space",
    "add-user",
    "agent",
    "agent run",
    "agent-token",
    "agents",
    "audit-log",
    "clouds",
    "completion",
    "controller",
    "controller run",
    "controller-token",
    "controllers",
    "credentials",
    "documentation",
    "enable-ha",
    "help-action-commands",
    "help-hook-commands",
    "image",
    "init",
    "login",
    "logout",
    "storage-pools",
    "users",
    "version",
    "wait-for",
    "whoami",
];

/// Returns the pairs of words that a message repeats, without quotes and punctuation.
fn repeated(message: &str) -> Vec<String> {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let words: Vec<_> = message.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    let mut seen = BTreeSet::new();
    let pairs = words.windows(2).map(|pair| pair.join(" "));
    pairs.filter(|pair| !seen.insert(pair.clone())).collect()
}

#[test]
fn who_is_missing_is_named_once_whatever_asks_for_it() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    periapt.deploy("wordpress", [])?;
    let mut wrong = Vec::new();
    for line in MISSING {
        let done = periapt.run(line.split(' '))?;
        let (error, _hint) = done.stderr.split_once("\nhint: ").unwrap_or((&done.stderr, ""));
        let lines = error.lines().filter(|line| line.starts_with("ERROR ")).count();
        let named = ["\"nosuch", " nosuch"].iter().map(|name| error.matches(name).count()).sum::<usize>();
        let again = repeated(error);
        // As in Juju, the command makes an operation, reports that it has no tasks, and exits with code 0.
        let is_refused =
            (done.code != Some(0) && lines == 1) || error.contains("failed to schedule any tasks");
        if !is_refused || named > 1 || !again.is_empty() {
            wrong.push(format!("{line} ({:?}, repeats {again:?}): {}", done.code, done.stderr.trim_end()));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn each_command_is_asked_for_something_that_is_missing() -> anyhow::Result<()> {
    let document = Installation::empty()?.ok(["documentation"])?;
    let verbs = document.lines().filter_map(|line| line.strip_prefix("## periapt "));
    let asked = |verb: &&str| MISSING.iter().any(|line| line.starts_with(&format!("{verb} ")));
    let left_out: Vec<_> = verbs.filter(|verb| !asked(verb) && !COMPLETE.contains(verb)).collect();
    ensure!(left_out.is_empty(), "no line names what is missing to {left_out:?}");
    Ok(())
}

#[test]
fn words_that_come_with_jujus_habits_are_told_what_there_is() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    for (line, parts) in [
        ("deploy postgresql", &["charms are deployed from paths", "hint: ", "./postgresql.charm"][..]),
        ("deploy ch:postgresql", &["charms are deployed from paths", "./postgresql.charm"]),
        ("refresh nosuch", &["ERROR application \"nosuch\" not found"]),
        (
            "deploy probe.charm --resource image=127.0.0.1:1/redis:7",
            &["resource \"image\": registry 127.0.0.1:1 cannot be reached"],
        ),
        ("deploy probe.charm --resource nosuch=redis:7", &["unrecognized resource \"nosuch\""]),
    ] {
        let error = periapt.refused(line.split(' '))?;
        for part in parts {
            assert!(error.contains(part), "{line} does not say {part}: {error}");
        }
    }
    Ok(())
}

#[test]
fn nothing_is_told_that_was_refused() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    for more in
        [&[][..], &["db", "--to", "7"], &["db", "--storage", "nosuch=1G"], &["db", "--bind", "nosuch"]]
    {
        let error = periapt.refused(["deploy", "mysql.charm"].iter().chain(more))?;
        assert!(error.starts_with("ERROR "), "{more:?}: {error}");
    }
    let done = periapt.run(["deploy", "mysql.charm", "db"])?;
    assert!(done.stderr.starts_with("Deploying \"db\" from local charm \"mysql\""), "{done:?}");
    Ok(())
}

#[test]
fn a_program_that_is_called_by_a_link_names_itself_so() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let done = periapt.run_as("juju", ["status"])?;
    assert_eq!(done.stderr, "ERROR there is no controller yet\nhint: `juju bootstrap` makes one\n");
    let done = periapt.run_as("juju", ["ssh", "mysql/0"])?;
    assert!(
        done.stderr.contains("hint: `juju exec` runs hook tools and simple commands in a unit"),
        "{done:?}"
    );
    let done = periapt.run_as("juju", ["deploy"])?;
    assert!(done.stderr.contains("Usage: juju deploy "), "{done:?}");
    for arguments in [&["help", "deploy"][..], &["deploy", "--help"], &["--help"]] {
        let done = periapt.run_as("juju", arguments)?;
        assert!(done.stdout.contains("\n  juju deploy ./"), "{done:?}");
        assert!(!done.stdout.contains("periapt deploy"), "{done:?}");
    }
    let done = periapt.run_as("juju", ["completion", "bash"])?;
    assert!(done.stdout.lines().any(|line| line.ends_with(" juju")), "{done:?}");
    let done = periapt.run_as("juju", ["bootstrap", "--no-agent"])?;
    assert!(done.stderr.contains("\tjuju add-model <model-name>"), "{done:?}");
    let done = periapt.run(["status"])?;
    assert!(done.stderr.contains("`periapt add-model NAME`"), "{done:?}");
    Ok(())
}

#[test]
fn settings_of_jujus_are_kept_with_a_word_and_read_back() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let config = "--config=audit-log-max-size=10M";
    let done = periapt.run(["bootstrap", "--no-agent", config, "--model-default", "test-mode=true"])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("--config audit-log-max-size has no effect"), "{done:?}");
    assert!(done.stderr.contains("setting test-mode is stored without effect"), "{done:?}");
    periapt.ok(["add-model", "test"])?;
    assert_eq!(periapt.ok(["model-config", "logging-config"])?, "<root>=INFO\n");
    let done = periapt.run(["model-config", "logging-config=<root>=WARNING;unit=DEBUG"])?;
    assert!(done.stderr.contains("setting logging-config is stored without effect"), "{done:?}");
    assert_eq!(periapt.ok(["model-config", "logging-config"])?, "<root>=WARNING;unit=DEBUG\n");
    let listed = periapt.json(["model-config"])?;
    assert_eq!(listed["logging-config"]["Source"], "model");
    assert_eq!(listed["test-mode"], serde_json::json!({"Value": true, "Source": "controller"}));
    // Reading a known setting without a value is no error; a misspelt one is.
    assert_eq!(periapt.ok(["model-config", "image-stream"])?, "released\n");
    assert!(
        periapt.refused(["model-config", "logging-cofnig"])?.contains("unknown model setting logging-cofnig")
    );
    assert!(periapt.refused(["model-config", "test-mode=maybe"])?.contains("expected true or false"));
    periapt.ok(["model-config", "--reset", "logging-config"])?;
    assert_eq!(periapt.ok(["model-config", "logging-config"])?, "<root>=INFO\n");
    Ok(())
}
