//! Applications of one model that use another model's offers.

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::{Value, json};

use crate::text;

/// Creates `mysql` in the model `prod`, offered, and `wordpress` in the current model `test`.
fn offered() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["add-model", "prod", "--no-switch"])?;
    periapt.deploy("mysql", ["-m", "prod"])?;
    periapt.deploy("wordpress", ["--config", "blog-title=Cats"])?;
    let done = periapt.run(["offer", "prod.mysql:db"])?;
    assert_eq!(
        done.stderr.trim(),
        "Application \"mysql\" endpoints [db] available at \"admin/prod.mysql\"",
        "{done:?}"
    );
    Ok(periapt)
}

/// Returns the relation's id in the offering model.
fn connection(periapt: &Installation) -> anyhow::Result<String> {
    let offers = periapt.json(["offers", "-m", "prod"])?;
    let id = offers.pointer("/mysql/connections/0/relation-id").context("no connection")?;
    Ok(id.to_string())
}

fn relation_is(status: &Value, wanted: &str) -> bool {
    let relations = status["relations"].as_array().into_iter().flatten();
    let mut across = relations.filter(|relation| relation["interface"] == "mysql");
    across.any(|relation| relation["status"] == wanted)
}

#[test]
fn an_offer_is_found_related_suspended_resumed_and_removed() -> anyhow::Result<()> {
    let periapt = offered()?;
    let found = periapt.json(["find-offers", "--interface", "mysql"])?;
    assert_eq!(text(&found, "/local:admin~1prod.mysql/access")?, "admin");
    assert_eq!(text(&found, "/local:admin~1prod.mysql/endpoints/db/role")?, "provider");
    let shown = periapt.ok(["show-offer", "prod.mysql"])?;
    let heading: Vec<_> = shown.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(heading, ["Store", "URL", "Access", "Description", "Endpoint", "Interface", "Role"]);
    assert!(
        periapt.refused(["find-offers", "--interface", "none"])?.contains("no matching application offers")
    );

    periapt.ok(["integrate", "wordpress", "admin/prod.mysql"])?;
    periapt.wait_for(["application", "wordpress", "--message", "serving*"])?;
    let status = periapt.json_until(&["status"], |status| relation_is(status, "joined"))?;
    assert_eq!(text(&status, "/application-endpoints/mysql/url")?, "admin/prod.mysql");
    assert_eq!(text(&status, "/application-endpoints/mysql/application-status/current")?, "active");
    let table = periapt.ok(["status"])?;
    assert!(table.contains("SAAS   Status  Store  URL\nmysql  active  local  admin/prod.mysql\n"), "{table}");
    let table = periapt.ok(["status", "-m", "prod"])?;
    let offer = table.lines().skip_while(|line| !line.starts_with("Offer ")).nth(1).unwrap_or_default();
    let cells: Vec<_> = offer.split_whitespace().collect();
    assert_eq!(cells, ["mysql", "mysql", "mysql", "0", "1/1", "db", "mysql", "provider"], "{table}");

    let units = periapt.json(["show-unit", "wordpress/0"])?;
    let relations = units.pointer("/wordpress~10/relation-info").and_then(Value::as_array);
    let db = relations.into_iter().flatten().find(|relation| relation["endpoint"] == "db");
    assert_eq!(db.context("no relation db")?["cross-model"], true, "{units}");

    let id = connection(&periapt)?;
    periapt.ok(["suspend-relation", "-m", "prod", &id, "--message", "unpaid"])?;
    periapt.wait_for(["application", "wordpress", "--status", "blocked"])?;
    let table = periapt.json_until(&["status", "-m", "prod"], |status| relation_is(status, "suspended"))?;
    assert!(table.to_string().contains("unpaid"), "{table}");
    let wrong = periapt.refused(["suspend-relation", "99"])?;
    assert!(wrong.contains("relation 99 not found"), "{wrong}");
    periapt.ok(["resume-relation", "-m", "prod", &id])?;
    periapt.wait_for(["application", "wordpress", "--message", "serving*"])?;

    for refused in [
        &["remove-offer", "prod.mysql"][..],
        &["remove-application", "-m", "prod", "mysql", "--no-prompt"],
        &["destroy-model", "prod", "--no-prompt"],
    ] {
        let error = periapt.refused(refused)?;
        assert!(
            error.contains("1 relation")
                || error.contains("1 consumer")
                || error.contains("1 application offer"),
            "{error}"
        );
    }
    periapt.ok(["remove-saas", "mysql"])?;
    periapt.wait_for(["application", "wordpress", "--status", "blocked"])?;
    periapt.json_until(&["offers", "-m", "prod"], |offers| offers["mysql"]["connections"].is_null())?;
    periapt.ok(["remove-offer", "prod.mysql"])?;
    assert_eq!(periapt.json(["offers", "-m", "prod"])?, json!({}));
    Ok(())
}

#[test]
fn a_controller_that_starts_again_goes_on_with_relations_across_models() -> anyhow::Result<()> {
    let periapt = offered()?;
    periapt.ok(["consume", "prod.mysql", "database"])?;
    periapt.ok(["integrate", "wordpress:db", "database:db"])?;
    periapt.wait_for(["application", "wordpress", "--message", "serving*"])?;
    periapt_tests::signal(periapt.controller_process("local")?, "KILL")?;
    periapt.ok(["controller", "start", "local"])?;
    periapt.ok(["remove-offer", "prod.mysql", "--force", "--no-prompt"])?;
    periapt.wait_for(["application", "wordpress", "--status", "blocked"])?;
    let status = periapt.json_until(&["status"], |status| {
        status["application-endpoints"]["database"]["application-status"]["current"] == "terminated"
    })?;
    assert_eq!(status["application-endpoints"]["database"]["relations"], Value::Null, "{status}");
    periapt.ok(["destroy-model", "prod", "--no-prompt"])?;
    periapt.ok(["destroy-model", "test", "--no-prompt"])?;
    Ok(())
}
