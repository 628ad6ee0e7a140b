//! Spaces, bindings, and the sources that may reach an application's ports.

use periapt_tests::Installation;

/// Returns the first subnet of the installation's host; none if the host has only loopback addresses.
fn first_subnet(periapt: &Installation) -> anyhow::Result<Option<String>> {
    let spaces = periapt.json(["spaces"])?;
    let subnets = spaces.pointer("/spaces/0/subnets").and_then(|subnets| subnets.as_object());
    Ok(subnets.and_then(|subnets| subnets.keys().next().cloned()))
}

#[test]
fn a_unit_is_told_the_address_that_it_has_in_its_space() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["add-space", "internal", "2001:db8:ffff:ffff::/64"])?;
    let script = "script=install: tool network-get sink --ingress-address\nconfig-changed: tool network-get db\n\
                  *: status active fine";
    periapt.deploy("probe", ["--bind", "alpha db=internal", "--config", script])?;
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"]["probe"]["endpoint-bindings"]["db"], "internal");
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    assert!(log.contains("tool network-get: 0 "), "{log}");
    assert!(log.contains("ERROR machine \"0\" has no devices in space \"internal\""), "{log}");
    periapt.ok(["bind", "probe", "db=alpha"])?;
    let unbound = periapt.refused(["remove-space", "nowhere"])?;
    assert!(unbound.contains("space \"nowhere\" not found"), "{unbound}");
    periapt.ok(["remove-space", "internal"])?;
    if let Some(subnet) = first_subnet(&periapt)? {
        periapt.ok(["add-space", "lan", &subnet])?;
        let subnets = periapt.json(["subnets", "--space", "lan"])?;
        assert_eq!(subnets["subnets"][&subnet]["space"], "lan");
    }
    Ok(())
}

#[test]
fn what_is_exposed_is_what_the_machines_firewall_is_to_let_in() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", ["--config", "script=install: open-port 80/tcp\n*: status active fine"])?;
    periapt.wait_for(["model"])?;
    let rules = || -> anyhow::Result<serde_json::Value> {
        Ok(periapt.json(["machines"])?["machines"]["0"]["ingress-rules"]["80/tcp"].clone())
    };
    assert!(rules()?.is_null(), "nobody asked for it");
    periapt.ok(["expose", "probe"])?;
    assert_eq!(rules()?, serde_json::json!(["0.0.0.0/0", "::/0"]));
    periapt.ok(["expose", "probe", "--endpoints", "db", "--to-cidrs", "10.0.0.0/8,192.0.2.0/24"])?;
    periapt.ok(["unexpose", "probe", "--endpoints", ""])?;
    assert_eq!(rules()?, serde_json::json!(["10.0.0.0/8", "192.0.2.0/24"]));
    let error = periapt.refused(["expose", "probe", "--endpoints", "x"])?;
    assert!(error.contains("endpoint \"x\" not found"), "{error}");
    periapt.ok(["unexpose", "probe"])?;
    assert!(rules()?.is_null());
    Ok(())
}
