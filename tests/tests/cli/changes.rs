//! Changes by an operator: settings, exposure, machines.

use periapt_tests::Installation;

/// Creates a model with one application and no agent.
fn model() -> anyhow::Result<Installation> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("wordpress", [])?;
    Ok(periapt)
}

#[test]
fn settings_are_set_reset_and_read_from_files_together_or_not_at_all() -> anyhow::Result<()> {
    let periapt = model()?;
    let value = |key: &str| periapt.ok(["config", "wordpress", key]);
    periapt.ok(["config", "wordpress", "port=81", "debug=true"])?;
    assert_eq!((value("port")?, value("debug")?), ("81\n".to_owned(), "true\n".to_owned()));
    let error = periapt.refused(["config", "wordpress", "port=82", "debug=perhaps"])?;
    assert!(error.contains("debug"), "{error}");
    assert_eq!(value("port")?, "81\n");
    periapt.ok(["config", "wordpress", "--reset", "port,debug"])?;
    let shown = periapt.json(["config", "wordpress"])?;
    assert_eq!(shown["settings"]["port"]["source"], "default");
    std::fs::write(periapt.path().join("settings.yaml"), "wordpress:\n  port: 83\n  blog-title: A\n")?;
    periapt.ok(["config", "wordpress", "--file", "settings.yaml", "blog-title=B"])?;
    assert_eq!((value("port")?, value("blog-title")?), ("83\n".to_owned(), "B\n".to_owned()));

    // Settings that are shown can be set elsewhere.
    let yaml = periapt.ok(["config", "wordpress", "--format", "yaml"])?;
    std::fs::write(periapt.path().join("shown.yaml"), yaml)?;
    periapt.ok(["deploy", "wordpress.charm", "copy", "--config", "shown.yaml", "--config", "port=84"])?;
    let copy = periapt.json(["config", "copy"])?;
    assert_eq!(copy["settings"]["blog-title"]["value"], "B");
    assert_eq!(copy["settings"]["port"]["value"], 84);
    assert_eq!(copy["settings"]["debug"]["source"], "default");
    Ok(())
}

#[test]
fn a_models_configuration_is_shown_with_its_source() -> anyhow::Result<()> {
    let periapt = model()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let shown = periapt.json(["model-config"])?;
    assert_eq!(shown["automatically-retry-hooks"], serde_json::json!({"Value": false, "Source": "model"}));
    periapt.ok(["model-config", "--reset", "automatically-retry-hooks"])?;
    assert_eq!(periapt.ok(["model-config", "automatically-retry-hooks"])?, "true\n");

    // Controller defaults apply to models that do not set the key themselves, also to later ones.
    periapt.ok(["model-defaults", "hook-timeout=1m", "firewall-mode=none"])?;
    periapt.ok(["model-config", "firewall-mode=instance"])?;
    let shown = periapt.json(["model-config"])?;
    assert_eq!(shown["hook-timeout"], serde_json::json!({"Value": "1m", "Source": "controller"}));
    assert_eq!(shown["firewall-mode"], serde_json::json!({"Value": "instance", "Source": "model"}));
    let config = periapt.json(["config", "wordpress"])?;
    assert_eq!(config["application-config"]["hook-timeout"]["source"], "controller", "{config}");
    let error = periapt.refused(["add-model", "next", "--config", "hook-timeout=5"])?;
    assert!(error.contains("hook-timeout expected a duration"), "{error}");
    periapt.ok(["add-model", "next", "--config", "hook-cpu-budget=5s"])?;
    assert_eq!(periapt.ok(["model-config", "hook-cpu-budget"])?, "5s\n");
    assert_eq!(periapt.ok(["model-config", "firewall-mode"])?, "none\n");
    let defaults = periapt.json(["model-defaults", "hook-timeout", "firewall-mode"])?;
    let expected = serde_json::json!({
        "firewall-mode": {"default": "instance", "controller": "none"},
        "hook-timeout": {"default": "5m", "controller": "1m"},
    });
    assert_eq!(defaults, expected);
    periapt.ok(["model-defaults", "--reset", "hook-timeout"])?;
    assert_eq!(periapt.ok(["model-config", "hook-timeout"])?, "5m\n");
    let error = periapt.refused(["model-defaults", "firewall-mode=some"])?;
    assert!(error.contains("instance, global or none"), "{error}");
    Ok(())
}

#[test]
fn an_application_is_exposed_trusted_and_back() -> anyhow::Result<()> {
    let periapt = model()?;
    let shown = |key: &str| -> anyhow::Result<serde_json::Value> {
        Ok(periapt.json(["show-application", "wordpress"])?["wordpress"][key].clone())
    };
    assert_eq!((shown("exposed")?, shown("trust")?), (false.into(), false.into()));
    periapt.ok(["expose", "wordpress"])?;
    periapt.ok(["trust", "wordpress"])?;
    assert_eq!((shown("exposed")?, shown("trust")?), (true.into(), true.into()));
    periapt.ok(["unexpose", "wordpress"])?;
    periapt.ok(["trust", "wordpress", "--remove"])?;
    assert_eq!((shown("exposed")?, shown("trust")?), (false.into(), false.into()));
    Ok(())
}

#[test]
fn a_machine_is_removed_when_it_is_empty_or_by_force() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let error = periapt.refused(["remove-machine", "0", "--no-prompt"])?;
    assert!(error.contains("mysql/0"), "{error}");
    assert_eq!(periapt.json(["machines"])?["machines"]["0"]["instance-id"], "first");
    periapt.ok(["remove-machine", "0", "--no-prompt", "--force"])?;
    periapt.wait_for(["unit", "mysql/0", "--gone"])?;
    Ok(())
}

#[test]
fn relations_are_refused_when_they_are_ambiguous_or_there_already() -> anyhow::Result<()> {
    let periapt = model()?;
    periapt.deploy("mysql", [])?;
    periapt.ok(["relate", "wordpress:db", "mysql:db"])?;
    let error = periapt.refused(["integrate", "wordpress", "mysql"])?;
    assert!(error.contains("exists"), "{error}");
    let status = periapt.ok(["status", "--relations"])?;
    assert!(status.contains("mysql:db"), "{status}");
    // No unit has entered the scope: the relation is removed at once.
    periapt.ok(["remove-relation", "mysql", "wordpress"])?;
    let left = periapt.json(["status"])?;
    let kinds: Vec<_> = left["relations"].as_array().into_iter().flatten().map(|r| &r["type"]).collect();
    assert_eq!(kinds, ["peer", "peer"]);
    Ok(())
}

#[test]
fn past_statuses_are_shown_as_juju_shows_them() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let text = periapt.ok(["show-status-log", "mysql/0", "-n", "100"])?;
    let mut lines = text.lines();
    let heading: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(heading, ["Time", "Type", "Status", "Message"]);
    assert!(text.contains("juju-unit  executing    running install hook"), "{text}");
    let only = periapt.json(["show-status-log", "mysql/0", "--type", "workload", "--days", "1"])?;
    let only = only.as_array().cloned().unwrap_or_default();
    assert!(!only.is_empty() && only.iter().all(|line| line["type"] == "workload"), "{only:?}");
    assert_eq!(only[0]["status"], "waiting");
    let machine = periapt.ok(["show-status-log", "0", "--type", "machine", "--utc"])?;
    assert!(machine.contains("machine  started"), "{machine}");
    let error = periapt.refused(["show-status-log", "mysql/7"])?;
    assert!(error.contains("unit \"mysql/7\" not found"), "{error}");
    Ok(())
}

#[test]
fn a_model_is_shown_as_juju_shows_it_by_any_of_its_names() -> anyhow::Result<()> {
    let periapt = model()?;
    let shown = periapt.json(["show-model"])?;
    let test = &shown["test"];
    assert_eq!(test["short-name"], "test", "{shown}");
    let owner = test["owner"].as_str().unwrap_or_default();
    assert_eq!(test["name"], format!("{owner}/test"), "{shown}");
    assert_eq!((&test["controller-name"], &test["model-type"]), (&"local".into(), &"iaas".into()), "{shown}");
    assert_eq!(
        (&test["life"], &test["status"]["current"]),
        (&"alive".into(), &"available".into()),
        "{shown}"
    );
    assert_eq!(test["users"][owner]["access"], "admin", "{shown}");
    assert!(test["status"]["since"].is_string() && test["agent-version"].is_string(), "{shown}");
    for name in ["test".to_owned(), format!("{owner}/test"), format!("local:{owner}/test")] {
        assert_eq!(periapt.json(["show-model", &name])?, shown, "{name}");
        assert_eq!(periapt.json(["status", "-m", &name])?["model"]["name"], "test", "{name}");
    }
    assert!(periapt.refused(["show-model", "nobody/test"])?.contains("model nobody/test not found"));

    let controller = periapt.json(["show-controller"])?;
    assert_eq!(controller["local"]["current-model"], format!("{owner}/test"), "{controller}");
    assert_eq!(controller["local"]["models"]["test"]["unit-count"], 1, "{controller}");
    assert_eq!(periapt.json(["show-machine"])?, serde_json::json!({"model": "test", "machines": {}}));
    assert!(periapt.refused(["show-machine", "7"])?.contains("machine 7 not found"));
    periapt.ok(["add-space", "internal", "192.0.2.0/24"])?;
    periapt.ok(["bind", "wordpress", "db=internal"])?;
    periapt.ok(["rename-space", "internal", "backend"])?;
    let space = serde_json::json!({
        "space": {
            "id": "backend", "name": "backend",
            "subnets": [{"cidr": "192.0.2.0/24", "vlan-tag": 0, "zones": []}],
        },
        "applications": ["wordpress"],
        "machine-count": 0,
    });
    assert_eq!(periapt.json(["show-space", "backend"])?, space);
    assert!(periapt.refused(["show-space", "internal"])?.contains("space \"internal\" not found"));

    periapt.ok(["config", "wordpress", "update-status-hook-interval=15m", "trust=true"])?;
    assert_eq!(periapt.ok(["config", "wordpress", "update-status-hook-interval"])?, "15m\n");
    assert_eq!(periapt.ok(["config", "wordpress", "trust"])?, "true\n");
    assert_eq!(periapt.json(["config", "wordpress"])?["application-config"]["trust"]["source"], "user");
    periapt.ok(["trust", "wordpress", "--remove"])?;
    assert_eq!(periapt.ok(["config", "wordpress", "trust"])?, "false\n");
    Ok(())
}
