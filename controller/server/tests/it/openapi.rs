//! The document `docs/openapi.json` matches the controller.

use std::path::Path;

use periapt_controller::openapi;

use crate::{fixture::Fixture, raw};

#[test]
fn the_document_in_the_repository_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("PERIAPT_UPDATE").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&openapi()).unwrap() + "\n").unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap_or_default();
    assert!(kept == openapi(), "docs/openapi.json is out of date: run this test with PERIAPT_UPDATE=1");
}

#[tokio::test]
async fn every_path_of_the_document_is_answered_and_refuses_other_methods() {
    let fixture = Fixture::start().await;
    let document = openapi();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 18, "{}", paths.len());
    for (path, item) in paths {
        let target = path
            .replace("{uuid}", "00000000-0000-0000-0000-000000000001")
            .replace("{digest}", &"0".repeat(64))
            .replace("{number}", "0")
            .replace(['{', '}'], "");
        let allowed = raw::request(fixture.handle.address(), &format!("PATCH {target}"), &[], "").await;
        assert_eq!(allowed.status, 405, "{path}");
        let mut offered: Vec<String> = allowed
            .header("allow")
            .unwrap()
            .split(',')
            .map(|method| method.trim().to_ascii_lowercase())
            .collect();
        // Every GET path also answers HEAD; the document names HEAD only where it is useful.
        offered.retain(|method| method != "head" || item.get("head").is_some());
        offered.sort();
        offered.dedup();
        let mut described: Vec<String> = item.as_object().unwrap().keys().cloned().collect();
        described.sort();
        assert_eq!(offered, described, "{path}");
    }
    fixture.stop().await;
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    fn references<'a>(value: &'a serde_json::Value, found: &mut Vec<&'a str>) {
        match value {
            serde_json::Value::Object(object) => {
                found.extend(object.get("$ref").and_then(|reference| reference.as_str()));
                object.values().for_each(|value| references(value, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = openapi();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for reference in found {
        assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
    }
}
