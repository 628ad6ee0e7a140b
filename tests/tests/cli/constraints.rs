//! Where units are placed: constraints, and what is tried again.

use periapt_tests::Installation;

#[test]
fn constraints_say_where_units_go_and_a_unit_that_found_no_place_says_why() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    for (constraint, expected) in [
        ("cpu-power=4", "constraint \"cpu-power\" is not here, because a hook runs on one core"),
        ("colour=red", "unknown constraint \"colour\"; known are cores, mem, tags and zones"),
        ("mem=2T", "hook-memory-limit expected a size from 1M to 1G"),
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
