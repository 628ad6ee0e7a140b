//! Layers of Pebble's that cannot be used, and services that do not start: what the charm is told, and what `status` says.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::Scene;

impl Scene {
    /// Adds a layer as the charm does, and returns the code and the result of the answer.
    fn add_layer(&self, layer: &str) -> anyhow::Result<(String, Value)> {
        let add = json!({"action": "add", "combine": true, "label": "l", "format": "yaml", "layer": layer});
        let answer = self.ask(&format!("web POST /v1/layers {add}"))?;
        let (_, answer) = answer.split_once("/v1/layers: ").with_context(|| answer.clone())?;
        let (code, body) = answer.split_once(' ').with_context(|| answer.to_owned())?;
        let body: Value = serde_json::from_str(body)?;
        Ok((code.to_owned(), body.get("result").cloned().unwrap_or_default()))
    }
}

#[test]
fn a_layer_that_cannot_be_used_is_one_error_and_a_service_that_does_not_start_is_in_status()
-> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let periapt = &scene.periapt;
    periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    for (layer, expected) in [
        ("services: [", "cannot parse layer \"l\": line 1 column 11: a mapping is expected"),
        (
            "services: {web: {override: replace, command: sleep 60, requires: [nosuch]}}",
            "plan service \"web\" requires the unknown service \"nosuch\"",
        ),
        (
            "services: {web: {override: replace, command: sleep 60, after: [b]}, \
             b: {override: replace, command: sleep 60, after: [web]}}",
            "services in before/after loop: b, web",
        ),
    ] {
        let (code, result) = scene.add_layer(layer)?;
        ensure!(code == "400" && result["message"] == expected, "{layer}: {code} {result}");
    }
    let plan = periapt.ok(["exec", "--unit", "probe/0", "--container", "web", "--", "pebble", "plan"])?;
    ensure!(!plan.contains("sleep"), "nothing of them is kept: {plan}");

    let layer = "services: {command: {override: replace, command: /bin/nosuch -x, startup: enabled}, \
                 user: {override: replace, command: sleep 60, startup: enabled, user: nosuch}}";
    let (code, result) = scene.add_layer(layer)?;
    ensure!(code == "200", "{code} {result}");
    scene.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
    let expected = [
        "service command of container web does not start: cannot find executable \"/bin/nosuch\"",
        "service user of container web does not start: unknown user \"nosuch\"",
    ];
    let problems = |status: &Value| {
        status.pointer("/applications/probe/units/probe~10/workload-problems").cloned().unwrap_or_default()
    };
    periapt.json_until(&["status"], |status| problems(status) == json!(expected))?;
    let text = periapt.ok(["show-unit", "probe/0"])?;
    ensure!(text.contains("cannot-start: "), "{text}");

    // A command of the operator's, which is a task.
    let absent = ["exec", "--unit", "probe/0", "--container", "web", "--", "/bin/nosuch", "-x"];
    let done = periapt.run(absent)?;
    ensure!(
        done.code == Some(1) && done.stdout.ends_with(" failed: cannot find executable \"/bin/nosuch\"\n"),
        "{done:?}"
    );
    Ok(())
}
