//! The words of the SDK for Go, compared with the sandbox's answers.

use std::fs;

use periapt_tests::Installation;
use serde_json::{Value, json};

use super::bench;
use crate::text;

/// Returns the lines that a hook logged.
fn logged(tried: &Value) -> Vec<&str> {
    let early = tried["early"].as_array().into_iter().flatten();
    early.filter_map(|effect| effect.pointer("/log/message")?.as_str()).collect()
}

#[test]
fn each_word_of_the_sdk_for_go_is_the_contracts() -> anyhow::Result<()> {
    let Some(bench) = bench(Installation::empty)? else { return Ok(()) };
    const GRANTED: &str = "ctgg1h9p6qk5fqb3k8n0";
    let directory = bench.written(
        "words",
        &include_str!("charms/words.go").replace("secret:GRANTED", &format!("secret:{GRANTED}")),
    )?;
    let metadata = "name: words\ntype: charm\nsummary: x\ndescription: x\nrequires: {sink: x}\n\
                    storage: {data: {type: filesystem, location: /srv/data}}\nresources: {page: {type: file, filename: page.txt}}\n\
                    actions: {large: {}}\ncontainers: {web: {}}\nconfig: {options: {mode: {type: string, default: words}, whole: {type: int, default: -7}, \
                    part: {type: float, default: 0.5}, truth: {type: boolean, default: true}, unset: {type: int}}}\n";
    fs::write(directory.join("charmcraft.yaml"), metadata)?;
    let archive = bench.pack(&directory)?.map_err(anyhow::Error::msg)?;
    let (page, disk) = (bench.periapt.path().join("page.txt"), bench.periapt.path().join("disk"));
    fs::write(&page, "h\u{e4}llo")?;
    fs::create_dir(&disk)?;
    let secret = json!({
        "id": GRANTED,
        "owner": {"application": "b"},
        "revisions": {"1": {"value": "old"}, "2": {"value": "new"}},
        "grants": {"words": 4},
        "tracked": 1,
        "consumer-label": "theirs",
    });
    let scene = |event: Value| {
        json!({
            "unit": "words/0", "leader": true, "event": event, "state": {"old": "x"},
            "relations": [{
                "id": 4, "endpoint": "sink", "remote-application": "b", "remote-settings": {"version": "8"},
                "members": {"b/0": {"host": "10.0.0.4", "port": "1"}, "b/1": {}},
            }],
            "secrets": [secret], "resources": {"page": page}, "storages": [{"id": "data/0", "directory": disk}],
            "budgets": {"hook-cpu-budget": "60s"},
        })
    };
    let changed = json!({"hook": "sink-relation-changed", "relation": 4, "remote-unit": "b/0"});
    let tried = bench.tried(&archive, &scene(changed))?;
    assert_eq!(tried["outcome"], "handled", "{tried}");
    let expected: Vec<_> = include_str!("words.txt").lines().collect();
    assert_eq!(logged(&tried), expected);
    let bags = json!({"4": {"unit": {"a": "1", "b": "2"}, "application": {"c": "3"}}});
    assert_eq!(tried["effects"]["bags"], bags, "{tried}");
    assert_eq!(tried["effects"]["state"], json!({"k": "v", "empty": "", "old": null}), "{tried}");

    for (event, said) in [
        (
            json!({"hook": "sink-relation-batch", "relation": 4,
                "batch": {"application-changed": true, "joined": ["b/0"], "changed": ["b/0", "b/1"], "departed": ["b/2"]}}),
            "batch sink:4 true [b/0] [b/0 b/1] [b/2]",
        ),
        (
            json!({"hook": "sink-relation-departed", "relation": 4, "remote-unit": "b/1", "departing-unit": "b/1"}),
            "told sink-relation-departed relation-departed b b/1 b/1      0  1",
        ),
        (
            json!({"hook": "sink-relation-broken", "relation": 4}),
            "told sink-relation-broken relation-broken b        0  1",
        ),
        (
            json!({"hook": "data-storage-attached", "storage": "data/0"}),
            "told data-storage-attached storage-attached    data data/0 /srv/data   0  1",
        ),
        (
            json!({"hook": "secret-changed", "secret": GRANTED}),
            "told secret-changed secret-changed       secret:ctgg1h9p6qk5fqb3k8n0 theirs 0  1",
        ),
        (
            json!({"hook": "later", "kind": "custom", "data": {"n": 1}}),
            "told later-custom custom    later     0 {\"n\":1} 1",
        ),
        (
            json!({"hook": "web-pebble-custom-notice", "notice": {"id": 3, "key": "example.com/done"}}),
            "notice web-pebble-custom-notice web 3 example.com/done",
        ),
        (json!({"hook": "web-pebble-check-failed", "check": "up"}), "check web-pebble-check-failed web up"),
        (json!({"hook": "install"}), "told install install         0  1"),
    ] {
        let tried = bench.tried(&archive, &scene(event))?;
        // Lines of a relation's hooks start with the relation.
        let lines: Vec<_> =
            logged(&tried).iter().map(|line| line.trim_start_matches("sink:4: ").to_owned()).collect();
        assert_eq!(lines, [said], "{tried}");
    }

    // More than an answer may hold: each stored byte is printed as six.
    let mut large = scene(json!({"hook": "large", "kind": "action"}));
    let stored = (0..14).map(|key| (key.to_string(), json!("\u{1}".repeat(60_000))));
    large["state"] = Value::Object(stored.collect());
    let tried = bench.tried(&archive, &large)?;
    assert_eq!(text(&tried, "/outcome/failed/message")?, "realloc return: beyond end of memory");
    Ok(())
}
