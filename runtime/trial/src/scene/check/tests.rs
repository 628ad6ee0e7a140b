//! The table of invalid states, as scenes. The harnesses of the SDKs read the same table.

use periapt_host_api::{
    Digest,
    charm::{CharmFiles, CharmMeta},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Scene, run::PreparedScene, scene::view::OfCharm};
use std::collections::BTreeMap;

const TABLE: &str = include_str!("../../../../hook/tests/impossible.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The `charmcraft.yaml` of each charm, by name.
    charms: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    #[serde(default = "usual")]
    charm: String,
    /// The calls of a harness, the last of which is invalid.
    #[serde(default)]
    steps: Option<Vec<Vec<Value>>>,
    /// The parts of a scene beside its unit.
    #[serde(default)]
    scene: Option<Map<String, Value>>,
    /// The text of the refusal; none if the state is valid.
    says: Option<String>,
}

fn usual() -> String {
    "app".to_owned()
}

fn played(charm: &str, case: &Map<String, Value>) -> Result<(), String> {
    let files = CharmFiles { charmcraft: Some(charm.to_owned()), ..CharmFiles::default() };
    let meta = CharmMeta::parse(&files).unwrap();
    let mut scene = json!({"unit": "app/0", "event": {"hook": "config-changed"}});
    scene.as_object_mut().unwrap().extend(case.clone());
    let scene: Scene = serde_json::from_value(scene).map_err(|error| format!("malformed: {error}"))?;
    let charm = OfCharm { digest: Digest::of(b"app"), meta: &meta };
    PreparedScene::new(&scene, &charm).map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_scene_that_cannot_be_is_refused_with_what_would_be_right() {
    let table: Table = serde_json::from_str(TABLE).unwrap();
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for case in &table.cases {
        assert!(case.steps.is_some() || case.scene.is_some(), "{} says nothing", case.case);
        let Some(scene) = &case.scene else { continue };
        asked += 1;
        let told = played(&table.charms[&case.charm], scene).err();
        let expected = case.says.as_ref().map(|says| format!("scene: {says}"));
        if told != expected {
            wrong.push(format!("{}\n  is  {told:?}\n  not {expected:?}", case.case));
        }
    }
    assert!(asked > 50, "{asked} scenes were tried");
    assert!(wrong.is_empty(), "{} of {asked} differ\n{}", wrong.len(), wrong.join("\n"));
}
