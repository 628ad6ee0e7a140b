//! Many concurrent operators, as in a script that deploys in parallel.

use std::{fs, process::Stdio};

use anyhow::ensure;
use periapt_tests::{Installation, edition};
use serde_json::Value;

const HELLO: &[u8] = include_bytes!("../../../runtime/sandbox/tests/fixtures/hello-0.1.0.charm");

#[test]
fn forty_deploys_at_once_of_one_charm_and_of_others_all_succeed() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    fs::write(periapt.path().join("hello.charm"), HELLO)?;
    let mut deploys = Vec::new();
    for number in 0..40_u8 {
        let mut archive = "hello.charm".to_owned();
        if number % 4 == 0 {
            archive = format!("hello-{number}.charm");
            fs::write(periapt.path().join(&archive), edition(HELLO, number))?;
        }
        let mut deploy = periapt.command(["deploy", &format!("./{archive}"), &format!("hello{number}")]);
        deploys.push(deploy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    }
    for deploy in deploys {
        let done = deploy.wait_with_output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let status = periapt.json(["status"])?;
    let applications = status.get("applications").and_then(Value::as_object);
    assert_eq!(applications.map(serde_json::Map::len), Some(40));
    Ok(())
}
