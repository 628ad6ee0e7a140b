//! Constraints on the placement of units, and retries of placement.

use periapt_tests::Installation;

#[test]
fn constraints_say_where_units_go_and_a_unit_that_found_no_place_says_why() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    for (constraint, expected) in [
        ("cpu-power=much", "bad \"cpu-power\" constraint: invalid number \"much\""),
        ("spaces=dmz", "constraint \"spaces\" is not supported, because endpoints are bound to spaces"),
        ("colour=red", "unknown constraint \"colour\"; known are cores, mem, tags and zones"),
        ("mem=much", "invalid size \"much\""),
    ] {
        let error = periapt.refused(["set-model-constraints", constraint])?;
        assert!(error.contains(expected), "{error}");
    }
    periapt.deploy("mysql", ["--constraints", "mem=64M tags=ssd"])?;
    assert_eq!(periapt.ok(["constraints", "mysql"])?, "mem=64M tags=ssd\n");
    let shown = periapt.json(["constraints", "mysql"])?;
    assert_eq!(shown, serde_json::json!({"mem": 64, "tags": ["ssd"]}));
    assert_eq!(periapt.ok(["config", "mysql", "hook-memory-limit"])?, "64M\n");
    let status = periapt.json_until(&["status"], |status| {
        status["applications"]["mysql"]["units"]["mysql/0"]["juju-status"]["current"] == "error"
    })?;
    let told = &status["applications"]["mysql"]["units"]["mysql/0"]["juju-status"]["message"];
    assert_eq!(told, "waiting for an agent: none that is connected meets the constraints tags=ssd");
    periapt.ok(["retry-provisioning", "mysql/0"])?;
    let error = periapt.refused(["retry-provisioning", "0"])?;
    assert!(error.contains("machine 0 is not in an error state"), "{error}");

    periapt.ok(["set-constraints", "mysql"])?;
    periapt.wait_for(["model"])?;
    let error = periapt.refused(["retry-provisioning", "mysql/0"])?;
    assert!(error.contains("it has machine 0"), "{error}");
    periapt.ok(["set-model-constraints", "zones=north", "mem=128"])?;
    assert_eq!(periapt.ok(["model-constraints"])?, "mem=128M zones=north\n");
    periapt.ok(["add-unit", "mysql"])?;
    periapt.json_until(&["status"], |status| {
        let unit = &status["applications"]["mysql"]["units"]["mysql/1"]["juju-status"];
        unit["message"].as_str().is_some_and(|text| text.ends_with("meets the constraints zones=north"))
    })?;
    Ok(())
}

#[test]
fn constraints_that_no_sandbox_meets_are_taken_with_a_word_and_shown() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("mysql", periapt.path())?;
    let asked = "mem=8G root-disk=20G virt-type=virtual-machine";
    let done = periapt.run(["deploy", "mysql.charm", "--constraints", asked])?;
    assert_eq!(done.code, Some(0), "{done:?}");
    let told: Vec<_> = done.stderr.lines().filter(|line| line.contains("stored without effect")).collect();
    let [told] = told.as_slice() else { anyhow::bail!("not told in one line: {done:?}") };
    for part in ["mem=8192M (a hook has at most 1G", "root-disk=20480M (files that last are storage"] {
        assert!(told.contains(part), "{told}");
    }
    let shown = "mem=8192M root-disk=20480M virt-type=virtual-machine\n";
    assert_eq!(periapt.ok(["constraints", "mysql"])?, shown);
    let listed = serde_json::json!({"mem": 8192, "root-disk": 20480, "virt-type": "virtual-machine"});
    assert_eq!(periapt.json(["constraints", "mysql"])?, listed);
    assert_eq!(periapt.json(["show-application", "mysql"])?["mysql"]["constraints"], listed);
    assert_eq!(periapt.ok(["config", "mysql", "hook-memory-limit"])?, "1G\n");
    let bundle = periapt.ok(["export-bundle"])?;
    assert!(bundle.contains(shown.trim_end()), "{bundle}");

    for verb in [&["set-constraints", "mysql"][..], &["set-model-constraints"]] {
        let done = periapt.run(verb.iter().chain(&["instance-type=m5.large"]))?;
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.stderr.contains("instance-type=m5.large (units run in sandboxes"), "{done:?}");
    }
    assert_eq!(periapt.ok(["model-constraints"])?, "instance-type=m5.large\n");
    let met = periapt.run(["set-constraints", "mysql", "mem=512M", "cores=1"])?;
    assert_eq!((met.code, met.stderr.as_str()), (Some(0), ""));

    // A bundle deploys again as it was exported, without changes.
    std::fs::write(periapt.path().join("exported.yaml"), periapt.ok(["export-bundle"])?)?;
    let again = periapt.run(["deploy", "./exported.yaml"])?;
    assert!(again.stderr.contains("No changes to apply"), "{again:?}");
    Ok(())
}
