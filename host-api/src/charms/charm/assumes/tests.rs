use serde_json::{Value, json};

use super::*;
use crate::{
    JUJU_VERSION,
    charm::{CharmFiles, CharmMeta},
};

fn read(assumes: &str) -> Result<CharmMeta, String> {
    let text = format!("name: c\nsummary: s\ndescription: d\nassumes: {assumes}\n");
    let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
    CharmMeta::parse(&files).map_err(|error| error.to_string())
}

/// Returns the text of the refusal, or `None` if the model has all features.
fn unmet(assumes: &str) -> Option<String> {
    read(assumes).unwrap().assumes.check().err().map(|unmet| unmet.to_string())
}

#[test]
fn what_a_model_has_is_met_in_every_form() {
    for met in [
        "[]",
        "",
        "[juju]",
        "[juju >= 3]",
        "[juju>=3.6]",
        "['juju  >=  3.6.0', juju < 4]",
        "[{any-of: [k8s-api, juju >= 3.6]}]",
        "[{any-of: [{all-of: [juju >= 2.9.44, juju < 3]}, {all-of: [juju >= 3.1.6, juju < 4]}]}]",
        "[{all-of: [juju >= 3.1, {any-of: [juju >= 9, juju < 8]}]}]",
    ] {
        assert_eq!(unmet(met), None, "{met}");
    }
    assert_eq!(unmet(&format!("[juju >= {JUJU_VERSION}]")), None);
    assert!(unmet(&format!("[juju < {JUJU_VERSION}]")).is_some());
}

#[test]
fn versions_are_compared_number_by_number() {
    let version = |text: &str| text.parse::<FeatureVersion>().unwrap();
    assert_eq!(version("3"), version("3.0.0"));
    assert!(version("3.10") > version("3.9.12") && version("10") > version("9.99.99"));
    assert_eq!(version("3.06").to_string(), "3.6.0");
    for bad in ["", ".", "3.", ".6", "3.6.1.4", "3.6-beta1", "+3", "-1", "4294967296", "3,6", "３"] {
        assert!(bad.parse::<FeatureVersion>().is_err(), "{bad}");
    }
}

#[test]
fn what_is_missing_is_told_with_what_is_there() {
    let expected = format!(
        "Charm feature requirements cannot be met:
  - charm requires feature \"k8s-api\" but model does not support it
  - charm requires at least one of the following:
    - charm requires all of the following:
      - charm requires feature \"juju\" (version < 3.0.0) but model currently supports version {JUJU_VERSION}
    - charm requires feature \"juju\" (version >= 4.1.0) but model currently supports version {JUJU_VERSION}
  - charm requires feature \"k8s-api\" (version >= 1.21.0) but model does not support it

Feature descriptions:
  - \"juju\": the version of Juju used by the model
  - \"k8s-api\": the API of a Kubernetes cluster; units here run in sandboxes, and in no cluster"
    );
    let assumes = "[k8s-api, juju >= 3.1, {any-of: [{all-of: [juju >= 2.9, juju < 3]}, juju >= 4.1]}, 'k8s-api >= 1.21']";
    assert_eq!(unmet(assumes).unwrap(), expected);
    let unknown = unmet("[juju-secrets]").unwrap();
    assert!(unknown.ends_with("\"juju-secrets\" but model does not support it"), "{unknown}");
    let features = read(assumes).unwrap().assumes.check().unwrap_err().features();
    let here = |text: &str| format!("{text} (here: {JUJU_VERSION})");
    let expected = ["k8s-api".to_owned(), here("juju < 3.0.0"), here("juju >= 4.1.0")];
    assert_eq!(features[..3], expected);
}

#[test]
fn bad_grammar_is_refused_with_what_would_be_right() {
    for (assumes, reason) in [
        ("juju", "assumes: a list is expected"),
        ("{any-of: [juju]}", "assumes: a list is expected"),
        ("[3]", "invalid condition \"3\""),
        ("[null]", "invalid condition \"null\""),
        ("[[juju]]", "invalid condition "),
        ("[juju > 3]", "condition \"juju > 3\": versions are compared by >= or <"),
        ("[juju <= 3]", "versions are compared by >= or <"),
        ("[juju == 3]", "versions are compared by >= or <"),
        ("[juju 3]", "versions are compared by >= or <"),
        ("[juju >= three]", "invalid version \"three\""),
        ("['juju >=']", "invalid version \"\""),
        ("[juju >= 3 4]", "invalid version \"3 4\""),
        ("[Juju]", "invalid feature \"Juju\""),
        ("['']", "invalid feature \"\""),
        ("[-api]", "invalid feature "),
        ("[{any-of: []}]", "any-of: a list of at least one condition is expected"),
        ("[{all-of: juju}]", "all-of: a list of at least one condition is expected"),
        ("[{none-of: [juju]}]", "invalid group \"none-of\""),
        ("[{any-of: [juju], all-of: [juju]}]", "a group has one name, any-of or all-of, and not 2"),
        ("[{}]", "a group has one name, any-of or all-of, and not 0"),
    ] {
        let error = read(assumes).unwrap_err();
        assert!(
            error.starts_with("charmcraft.yaml: assumes: ") && error.contains(reason),
            "{assumes}: {error}"
        );
    }
}

#[test]
fn neither_many_conditions_nor_deep_ones_nor_long_ones_get_through() {
    let many = |count: usize| format!("[{}]", vec!["juju"; count].join(", "));
    assert!(read(&many(64)).is_ok());
    assert!(read(&many(65)).unwrap_err().contains("more than 64 conditions"));
    let in_groups = format!("[{}]", vec!["{any-of: [juju, juju]}"; 22].join(", "));
    assert!(read(&in_groups).unwrap_err().contains("more than 64 conditions"));
    let deep = |depth: usize| format!("[{}juju{}]", "{any-of: [".repeat(depth), "]}".repeat(depth));
    assert!(read(&deep(8)).is_ok());
    assert!(read(&deep(9)).unwrap_err().contains("more than 8 deep"));
    let long = "x".repeat(500_000);
    for assumes in [format!("[{long}]"), format!("[juju >= {long}]"), format!("[{{{long}: [juju]}}]")] {
        let error = read(&assumes).unwrap_err();
        assert!(error.len() < 600, "{} bytes", error.len());
    }
    // The longest possible refusal.
    let group = |inner: &str| format!("{{any-of: [{inner}]}}");
    let wide = vec![format!("{}a >= 4294967295.4294967295.4294967295", "b".repeat(63)); 56].join(", ");
    let worst = (0..8).fold(wide, |inner, _| group(&inner));
    let text = unmet(&format!("[{worst}]")).unwrap();
    assert!(text.len() < 16 << 10, "{} bytes", text.len());
}

#[test]
fn it_is_stored_in_a_form_of_its_own_and_read_back() {
    let assumes = read("[k8s-api, {any-of: [juju >= 3.6, {all-of: [juju < 3]}]}]").unwrap().assumes;
    let stored = serde_json::to_value(&assumes).unwrap();
    let feature = |bound: Value| json!({ "feature": { "name": "juju", "version": bound } });
    let expected = json!([
        { "feature": { "name": "k8s-api" } },
        { "any-of": [
            feature(json!({ "at-least": "3.6.0" })),
            { "all-of": [feature(json!({ "below": "3.0.0" }))] },
        ] },
    ]);
    assert_eq!(stored, expected);
    assert_eq!(serde_json::from_value::<Assumes>(stored).unwrap(), assumes);
    for bad in [json!([{ "feature": { "name": "No" } }]), json!([feature(json!({ "below": "x" }))])] {
        assert!(serde_json::from_value::<Assumes>(bad).is_err());
    }
}
