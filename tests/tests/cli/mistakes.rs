//! The messages for mistakes on the command line.

use periapt_tests::Installation;

#[test]
fn a_command_line_that_makes_no_sense_ends_with_code_2() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for arguments in [
        vec!["no-such-command"],
        vec!["deploy"],
        vec!["integrate", "wordpress"],
        vec!["deploy", "x", "Not_A_Name"],
        vec!["add-unit", "mysql", "-n", "0"],
        vec!["status", "-m", "a b"],
        vec!["remove-unit", "a b"],
        vec!["resolved"],
    ] {
        let done = periapt.run(&arguments)?;
        assert_eq!(done.code, Some(2), "{arguments:?}: {done:?}");
        assert!(done.stderr.starts_with("ERROR "), "{arguments:?}: {done:?}");
        assert_eq!(done.stdout, "", "{arguments:?}");
    }
    Ok(())
}

#[test]
fn options_that_juju_does_not_take_together_are_refused() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for (arguments, expected) in [
        (
            vec!["destroy-model", "test", "--no-prompt", "--timeout", "60s"],
            "ERROR --timeout can only be used with --force",
        ),
        (
            vec!["destroy-controller", "local", "--destroy-all-models", "--model-timeout=60s"],
            "ERROR --model-timeout can only be used with --force",
        ),
        (
            vec!["show-secret", "pw", "--reveal", "--revisions"],
            "ERROR specify either --revisions or --reveal but not both",
        ),
        (
            vec!["show-secret", "pw", "--revision", "1", "--revisions"],
            "ERROR specify either --revisions or --revision but not both",
        ),
    ] {
        let done = periapt.run(&arguments)?;
        assert_eq!(done.code, Some(2), "{arguments:?}: {done:?}");
        assert!(done.stderr.starts_with(expected), "{arguments:?}: {done:?}");
    }
    // A flag with `=false` counts as absent.
    let done = periapt.run(["show-secret", "pw", "--reveal=false", "--revisions"])?;
    assert!(done.stderr.contains("there is no controller yet"), "{done:?}");
    Ok(())
}

#[test]
fn what_is_not_here_on_purpose_says_why() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for (arguments, parts) in [
        (vec!["ssh", "mysql/0", "ls", "-l"], vec!["ERROR ssh is not supported", "no shell", "hint: "]),
        (vec!["add-k8s", "c"], vec!["ERROR add-k8s is not supported", "Kubernetes"]),
        (vec!["help", "scp"], vec!["ERROR scp is not supported"]),
        (vec!["deploy", "x", "--channel", "edge"], vec!["ERROR deploy --channel is not supported", "paths"]),
        (
            vec!["bootstrap", "--credential=c"],
            vec!["ERROR bootstrap --credential is not supported", "no cloud"],
        ),
    ] {
        let error = periapt.refused(&arguments)?;
        for part in parts {
            assert!(error.contains(part), "{arguments:?} does not say {part}: {error}");
        }
    }
    Ok(())
}

#[test]
fn without_a_controller_each_command_says_how_to_make_one() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for arguments in [vec!["status"], vec!["models"], vec!["agents"], vec!["add-model", "a"]] {
        let error = periapt.refused(&arguments)?;
        assert_eq!(error, "ERROR there is no controller yet\nhint: `periapt bootstrap` makes one\n");
    }
    let error = periapt.refused(["status", "-m", "other:a"])?;
    assert!(error.contains("controller other not found"), "{error}");
    Ok(())
}

#[test]
fn each_refusal_names_what_was_wrong_and_changes_nothing() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let error = periapt.refused(["status"])?;
    assert!(error.contains("no model of controller local is selected"), "{error}");
    assert!(error.contains("periapt add-model"), "{error}");
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    for (arguments, parts) in [
        (vec!["add-model", "test"], vec!["test", "exists"]),
        (vec!["status", "-m", "nowhere"], vec!["nowhere"]),
        (vec!["deploy", "/nonexistent"], vec!["/nonexistent", "hint: "]),
        (vec!["deploy", "mysql.charm"], vec!["mysql", "exists"]),
        (vec!["deploy", "mysql.charm", "db", "--config", "no-such-option=1"], vec!["no-such-option"]),
        (vec!["deploy", "mysql.charm", "db", "--config", "max-connections=many"], vec!["max-connections"]),
        (vec!["deploy", "mysql.charm", "db", "--to", "7"], vec!["7"]),
        (vec!["deploy", "mysql.charm", "db", "--to", "agent=nobody"], vec!["nobody"]),
        (vec!["config", "shop"], vec!["shop"]),
        (vec!["config", "mysql", "no-such-option"], vec!["no-such-option", "hint: "]),
        (vec!["config", "mysql", "no-such-option=1"], vec!["no-such-option"]),
        (vec!["integrate", "mysql", "shop"], vec!["shop"]),
        (vec!["remove-relation", "7"], vec!["7"]),
        (vec!["add-unit", "shop"], vec!["shop"]),
        (vec!["remove-unit", "mysql/7", "-y"], vec!["mysql/7"]),
        (vec!["remove-application", "shop", "-y"], vec!["shop"]),
        (vec!["remove-machine", "7", "-y"], vec!["7"]),
        (vec!["resolved", "mysql/0"], vec!["mysql/0"]),
        (vec!["show-unit", "mysql/7"], vec!["mysql/7"]),
        (vec!["show-application", "shop"], vec!["shop"]),
        (vec!["model-config", "no-such-key=1"], vec!["no-such-key"]),
        (vec!["model-config", "update-status-hook-interval=1"], vec!["update-status-hook-interval"]),
    ] {
        let error = periapt.refused(&arguments)?;
        for part in parts {
            assert!(error.contains(part), "{arguments:?} does not say {part}: {error}");
        }
    }
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"].as_object().map(serde_json::Map::len), Some(1), "{status}");
    assert_eq!(status["applications"]["mysql"]["units"].as_object().map(serde_json::Map::len), Some(1));
    Ok(())
}

#[test]
fn of_several_commands_one_that_is_refused_stops_none() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", ["-n", "3"])?;
    let error = periapt.refused(["remove-unit", "mysql/0", "mysql/7", "mysql/2", "--no-prompt"])?;
    assert!(error.contains("mysql/7"), "{error}");
    let left = periapt.json(["status"])?;
    let left: Vec<_> = left["applications"]["mysql"]["units"].as_object().into_iter().flatten().collect();
    assert_eq!(left.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["mysql/1"]);
    Ok(())
}

#[test]
fn nothing_is_destroyed_before_the_operator_confirms() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    for arguments in [
        vec!["remove-unit", "mysql/0"],
        vec!["remove-application", "mysql"],
        vec!["destroy-model", "test"],
        vec!["destroy-controller", "local", "--destroy-all-models"],
        vec!["kill-controller", "local"],
    ] {
        let error = periapt.refused(&arguments)?;
        assert!(error.contains("WARNING ") && error.contains("aborted"), "{arguments:?}: {error}");
    }
    assert_eq!(periapt.json(["models"])?["models"][0]["units"], 1);
    Ok(())
}
