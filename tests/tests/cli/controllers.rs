//! Controllers: bootstrapped, killed, started again, selected, removed.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

use anyhow::Context as _;
use periapt_tests::{Installation, signal};

#[test]
fn a_controller_that_was_killed_goes_on_where_it_was() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", ["-n", "2"])?;
    periapt.wait_for(["model"])?;
    let before = periapt.json(["controllers"])?;

    signal(periapt.controller_process("local")?, "KILL")?;
    let error = periapt.refused(["status"])?;
    assert!(error.contains("does not answer"), "{error}");
    assert!(error.contains("periapt controller start"), "{error}");
    let down = periapt.json(["controllers"])?["controllers"]["local"].clone();
    assert_eq!(down["status"], "down");
    assert!(down["controller-machines"].is_null(), "nobody knows how many there are: {down}");

    periapt.ok(["controller", "start", "local"])?;
    let after = periapt.json(["controllers"])?;
    assert_eq!(before["controllers"]["local"]["uuid"], after["controllers"]["local"]["uuid"]);
    assert_eq!(
        before["controllers"]["local"]["api-endpoints"], after["controllers"]["local"]["api-endpoints"],
        "agents on other machines would not find it"
    );
    let machines = &after["controllers"]["local"]["controller-machines"];
    assert_eq!(*machines, serde_json::json!({"active": 1, "total": 1}));
    let row = periapt.ok(["controllers"])?;
    assert!(row.lines().any(|line| line.split_whitespace().any(|cell| cell == "none")), "{row}");
    periapt.wait_for(["model"])?;
    periapt.ok(["add-unit", "mysql"])?;
    periapt.wait_for(["application", "mysql", "--units", "3"])
}

#[test]
fn a_stopped_controller_is_started_again_with_its_agent() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["controller", "stop"])?;
    periapt.refused(["agents"])?;
    periapt.ok(["controller", "start"])?;
    // A second start does nothing.
    let process = periapt.controller_process("local")?;
    periapt.ok(["controller", "start"])?;
    assert_eq!(periapt.controller_process("local")?, process);
    let agents = periapt.json(["agents"])?;
    assert_eq!((&agents[0]["name"], &agents[0]["alive"]), (&"first".into(), &true.into()));
    Ok(())
}

#[test]
fn a_name_is_taken_once() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let error = periapt.refused(["bootstrap", "--no-agent"])?;
    assert!(error.contains("controller \"local\" already exists"), "{error}");
    assert!(error.contains("destroy-controller local"), "{error}");
    assert!(periapt.ok(["agents"])?.starts_with("Agent"), "the first is still there");
    Ok(())
}

#[test]
fn a_bootstrap_that_fails_leaves_nothing_and_says_why() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let error = periapt.refused(["bootstrap", "--listen", &address])?;
    assert!(error.contains("the controller did not start"), "{error}");
    assert!(error.contains(&format!("cannot listen on {address}")), "{error}");
    assert!(!periapt.path().join("data/controllers/local").exists());
    periapt.ok(["bootstrap", "--no-agent"]).map(drop)
}

#[test]
fn several_controllers_and_models_are_told_apart() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for name in ["one", "two"] {
        periapt.ok(["bootstrap", name, "--no-agent"])?;
    }
    periapt.ok(["add-model", "a"])?;
    periapt.ok(["add-model", "b"])?;
    periapt.ok(["add-model", "c", "-c", "one"])?;
    assert_eq!(periapt.ok(["switch"])?, "two:admin/b\n");
    periapt.ok(["switch", "admin/a"])?;
    assert_eq!(periapt.json(["status"])?["model"]["name"], "a");
    assert_eq!(periapt.json(["status", "-m", "one:c"])?["model"]["controller"], "one");
    periapt.ok(["switch", "one"])?;
    assert_eq!(periapt.ok(["switch"])?, "one:admin/c\n");
    let said = |target: &str| periapt.run(["switch", target]).map(|done| done.stderr);
    assert_eq!(said("one")?, "one:admin/c (no change)\n");
    assert_eq!(said("two:admin/b")?, "one:admin/c -> two:admin/b\n");
    assert!(said("two:jane/b")?.starts_with("ERROR \"two:jane/b\" is not the name of a model or controller"));
    for (what, variable) in [("model", "PERIAPT_MODEL"), ("controller", "PERIAPT_CONTROLLER")] {
        let refused = periapt.command(["switch", "one"]).env(variable, "one:c").output()?;
        let text = format!("ERROR cannot switch when {variable} is overriding the {what} (set to \"one:c\")");
        assert!(String::from_utf8(refused.stderr)?.starts_with(&text), "{variable}");
    }
    let error = periapt.refused(["switch", "two:c"])?;
    assert!(error.contains("\"two:c\" is not the name"), "{error}");
    let error = periapt.refused(["destroy-controller", "two", "--no-prompt"])?;
    assert!(error.contains("controller two has models: a, b"), "{error}");
    periapt.ok(["destroy-controller", "two", "--no-prompt", "--destroy-all-models"])?;
    let left = periapt.json(["controllers"])?;
    assert_eq!(left["controllers"].as_object().map(serde_json::Map::len), Some(1), "{left}");
    Ok(())
}

#[test]
fn a_controller_in_the_foreground_stops_when_told_to() -> anyhow::Result<()> {
    for signal in ["TERM", "INT"] {
        let periapt = Installation::empty()?;
        let mut controller =
            periapt.spawn(["controller", "run", "--data", "c", "--listen", "127.0.0.1:0"])?;
        let line = controller.first_line()?;
        assert!(line.starts_with("ready https://127.0.0.1:"), "{line}");
        // A running controller locks its data directory.
        let error = periapt.refused(["controller", "run", "--data", "c", "--listen", "127.0.0.1:0"])?;
        assert!(error.contains("another"), "{error}");
        assert_eq!(controller.end(signal)?, Some(0));
    }
    Ok(())
}

#[test]
fn the_environment_says_where_commands_go_unless_it_is_empty_or_an_option_does() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for name in ["one", "two"] {
        periapt.ok(["bootstrap", name, "--no-agent"])?;
        periapt.ok(["add-model", "a"])?;
        periapt.ok(["add-model", "b"])?;
    }
    let run = |arguments: &[&str], controller: &str, model: &str| {
        let mut command = periapt.command(arguments);
        command.env("PERIAPT_CONTROLLER", controller).env("PERIAPT_MODEL", model).output()
    };
    let said = |arguments: &[&str], controller: &str, model: &str| -> anyhow::Result<String> {
        let output = run(arguments, controller, model)?;
        Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
    };
    let shown = |arguments: &[&str], controller: &str, model: &str| -> anyhow::Result<(String, String)> {
        let output = run(&[arguments, &["--format", "json"]].concat(), controller, model)?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).context(error)?;
        let part = |name: &str| status["model"][name].as_str().unwrap_or_default().to_owned();
        Ok((part("controller"), part("name")))
    };
    let at = |controller: &str, model: &str| (controller.to_owned(), model.to_owned());
    assert_eq!(shown(&["status"], "", "")?, at("two", "b"));
    assert_eq!(shown(&["status"], "", "a")?, at("two", "a"));
    assert_eq!(shown(&["status"], "one", "a")?, at("one", "a"));
    assert_eq!(shown(&["status"], "two", "one:a")?, at("one", "a"));
    assert_eq!(shown(&["status", "-m", "b"], "one", "a")?, at("one", "b"));
    // A named model takes precedence over the environment.
    assert_eq!(said(&["wait-for", "model", "a", "--timeout", "30s"], "one", "no-such-model")?, "");
    assert!(
        said(&["wait-for", "model", "--timeout", "30s"], "one", "no-such-model")?.contains("no-such-model")
    );
    assert!(said(&["controllers"], "", "::")?.starts_with("Controller"), "it goes by no model");
    assert!(said(&["status"], "", "::")?.starts_with("ERROR PERIAPT_MODEL: "));
    assert!(said(&["models"], "a b", "")?.starts_with("ERROR PERIAPT_CONTROLLER: "));
    Ok(())
}

#[test]
fn what_clients_are_told_of_a_controller_is_how_it_is_reached() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent", "--public-name", "localhost"])?;
    let place = periapt.path().join("data/controllers/local/controller");
    let authority = std::fs::read_to_string(place.join("ca.pem"))?;
    let listed = &periapt.json(["controllers"])?["controllers"]["local"];
    let shown = &periapt.json(["show-controller"])?["local"]["details"];
    for told in [listed, shown] {
        assert_eq!(told["ca-cert"].as_str(), Some(authority.as_str()), "{told}");
        let url = told["url"].as_str().context("a URL")?;
        let server = url.strip_prefix("https://").context("TLS")?;
        assert_eq!(told["api-endpoints"], serde_json::json!([server]), "{told}");
        assert!(server.starts_with("localhost:"), "{server}");
    }
    // Another program would be told apart, and asked nothing.
    let client = periapt.path().join("data/client.json");
    let mut data: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&client)?)?;
    periapt.ok(["bootstrap", "other", "--no-agent"])?;
    let other = std::fs::read_to_string(periapt.path().join("data/controllers/other/controller/ca.pem"))?;
    periapt.ok(["kill-controller", "other", "--no-prompt"])?;
    let kept = std::fs::read_to_string(&client)?;
    data["controllers"]["local"]["local"] = serde_json::Value::Null;
    data["controllers"]["local"]["ca-cert"] = other.into();
    std::fs::write(&client, data.to_string())?;
    let error = periapt.refused(["models"])?;
    assert!(
        error.contains("is not trusted: another authority than the one that this client trusts"),
        "{error}"
    );
    std::fs::write(&client, kept)?;
    Ok(())
}

#[test]
fn a_controller_whose_authority_is_unusable_does_not_start_and_says_what_to_do() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let run = ["controller", "run", "--data", "c", "--listen", "127.0.0.1:0"];
    let mut controller = periapt.spawn(run)?;
    assert!(controller.first_line()?.starts_with("ready https://"));
    assert_eq!(controller.end("TERM")?, Some(0));
    let key = periapt.path().join("c/ca-key.pem");
    std::fs::rename(&key, key.with_extension("away"))?;
    let error = periapt.refused(run)?;
    assert!(error.contains("ca-key.pem is missing, but"), "{error}");
    assert!(error.contains("restore it from a backup; or move the other file away"), "{error}");
    // A key that others can read, files that are none, and two that do not belong together.
    let authority = periapt.path().join("c/ca.pem");
    let (own, made) = (std::fs::read(key.with_extension("away"))?, std::fs::read(&authority)?);
    let mut other = periapt.spawn(["controller", "run", "--data", "e", "--listen", "127.0.0.1:0"])?;
    assert!(other.first_line()?.starts_with("ready https://"));
    assert_eq!(other.end("TERM")?, Some(0));
    let (others, rubbish) = (std::fs::read(periapt.path().join("e/ca-key.pem"))?, b"rubbish".to_vec());
    let both = "restore both files from a backup; or move both away";
    for (content, certificate, mode, told) in [
        (
            &own,
            &made,
            0o644,
            "ca-key.pem has mode 644, and others than its owner can reach it; `chmod 600` it",
        ),
        (&rubbish, &made, 0o600, both),
        (&own, &rubbish, 0o600, both),
        (&others, &made, 0o600, both),
    ] {
        std::fs::write(&key, content)?;
        std::fs::write(&authority, certificate)?;
        std::fs::set_permissions(&key, Permissions::from_mode(mode))?;
        let error = periapt.refused(run)?;
        assert!(error.contains(told), "{error}");
        assert_eq!((&std::fs::read(&key)?, &std::fs::read(&authority)?), (content, certificate), "unchanged");
    }
    std::fs::remove_file(&key)?;
    std::fs::create_dir(&key)?;
    std::fs::set_permissions(&key, Permissions::from_mode(0o700))?;
    let error = periapt.refused(run)?;
    assert!(error.contains("ca-key.pem: Is a directory"), "{error}");
    std::fs::remove_dir(&key)?;
    std::fs::write(&authority, &made)?;
    std::fs::rename(key.with_extension("away"), &key)?;
    let mut controller = periapt.spawn(run)?;
    assert!(controller.first_line()?.starts_with("ready https://"), "it goes on with its authority");
    assert_eq!(controller.end("TERM")?, Some(0));
    let error = periapt.refused(["controller", "run", "--data", "d", "--listen", "0.0.0.0:0"])?;
    assert!(error.contains("--public-name says by which name or address clients reach it"), "{error}");
    let error = periapt.run(["controller", "run", "--data", "d", "--public-name", "https://x"])?;
    assert!(error.stderr.contains("is neither a DNS name nor an IP address"), "{error:?}");
    Ok(())
}

#[test]
fn a_controller_that_lost_the_key_of_its_secrets_does_not_start_with_another_one() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let key = periapt.path().join("data/controllers/local/controller/secret-key");
    // Without secrets nothing is lost.
    periapt.ok(["controller", "stop"])?;
    std::fs::remove_file(&key)?;
    periapt.ok(["controller", "start"])?;
    periapt.ok(["add-secret", "token", "token=hunter2"])?;
    periapt.ok(["controller", "stop"])?;
    let away = key.with_extension("away");
    std::fs::rename(&key, &away)?;
    for _ in 0..2 {
        let error = periapt.refused(["controller", "start"])?;
        assert!(error.contains("secret-key is missing, and no other key opens the secrets"), "{error}");
        assert!(error.contains("restore it from a backup"), "{error}");
        assert!(!key.exists(), "no other key was made");
    }
    std::fs::rename(&away, &key)?;
    std::fs::set_permissions(&key, Permissions::from_mode(0o644))?;
    let error = periapt.refused(["controller", "start"])?;
    assert!(error.contains("it has mode 644, and others than its owner can reach it"), "{error}");
    std::fs::set_permissions(&key, Permissions::from_mode(0o600))?;
    periapt.ok(["controller", "start"])?;
    assert!(periapt.ok(["show-secret", "token", "--reveal"])?.contains("hunter2"));
    Ok(())
}
