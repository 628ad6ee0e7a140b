//! A model with all that operators give to applications, for controllers of two releases.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, packed_changed};
use serde_json::{Map, Value};

/// The storage and the resource that the database of the shop has in addition.
const MORE: &str = "\
storage:
  data:
    type: filesystem
    location: /srv/data
resources:
  schema:
    type: file
    filename: schema.sql
";

/// Makes the model `shop`: two related applications with units, storage, a resource, a secret, an offer, and a user who
/// may read it.
pub(crate) fn furnish(host: &Installation) -> anyhow::Result<()> {
    host.ok(["add-model", "shop"])?;
    write_schema(host, "one")?;
    let archive = packed_changed("mysql", "shop", host.path(), |text| format!("{text}\n{MORE}"))?;
    let archive = archive.to_str().context("a path")?;
    host.ok(["deploy", archive, "--storage", "data=10M", "--resource", "schema=schema.sql"])?;
    host.deploy("wordpress", ["--config", "blog-title=Cats"])?;
    host.ok(["integrate", "wordpress:db", "mysql:db"])?;
    host.ok(["add-secret", "password", "password=hunter2"])?;
    host.ok(["grant-secret", "password", "mysql"])?;
    host.ok(["offer", "shop.mysql:db"])?;
    host.ok(["add-user", "jane"])?;
    host.ok(["grant", "jane", "read", "shop"])?;
    is_served(host)
}

/// Writes another content of the resource.
pub(crate) fn write_schema(host: &Installation, content: &str) -> anyhow::Result<()> {
    Ok(fs::write(host.path().join("schema.sql"), content)?)
}

/// Waits until the blog has its database.
pub(crate) fn is_served(host: &Installation) -> anyhow::Result<()> {
    host.wait_for(["application", "wordpress", "--message", "serving*"])
}

/// Returns what a host's controller shows of the model, in a form that programs of both releases print.
pub(crate) fn facts(host: &Installation) -> anyhow::Result<Vec<String>> {
    let shown = |words: &[&str], place: &str| -> anyhow::Result<Value> {
        let all = host.json(words)?;
        all.pointer(place).cloned().with_context(|| format!("{words:?} has no {place}: {all}"))
    };
    let mut facts = Vec::new();
    let applications = shown(&["status"], "/applications")?;
    for application in applications.as_object().into_iter().flat_map(Map::values) {
        let units = application.get("units").and_then(Value::as_object);
        for (name, unit) in units.into_iter().flatten() {
            let (current, message) =
                (unit.pointer("/workload-status/current"), unit.pointer("/workload-status/message"));
            facts.push(format!("{name}: {current:?} {message:?}"));
        }
    }
    ensure!(!facts.is_empty(), "no units: {applications}");
    let secrets = shown(&["secrets"], "")?;
    let mut names: Vec<_> = secrets
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .map(|secret| format!("secret {:?}, revision {:?}", secret.get("name"), secret.get("revision")))
        .collect();
    names.sort();
    facts.extend(names);
    for (words, place) in [
        (&["config", "mysql"][..], "/settings/max-connections/value"),
        (&["config", "wordpress"], "/settings/blog-title/value"),
        (&["resources", "mysql"], "/resources/0/fingerprint"),
        (&["show-model", "shop"], "/shop/users/jane/access"),
    ] {
        facts.push(format!("{words:?}: {}", shown(words, place)?));
    }
    for (words, place) in [(&["storage"], "/storage"), (&["offers"], "")] {
        let entities = shown(words, place)?;
        let names: Vec<_> = entities.as_object().into_iter().flat_map(Map::keys).collect();
        ensure!(!names.is_empty(), "{words:?} shows none: {entities}");
        facts.push(format!("{words:?}: {names:?}"));
    }
    Ok(facts)
}
