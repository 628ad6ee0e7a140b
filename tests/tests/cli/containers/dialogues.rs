//! Dialogues of operators with commands in containers that have namespaces and an image of their own.

use std::fs::File;

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;
use serde_json::json;

use super::Scene;
use crate::workloads::{
    processes,
    sessions::{EXEC, at_terminal, begun, quoted},
    until,
};

#[test]
fn a_shell_in_a_container_with_an_image_has_the_terminal_its_keys_and_an_exit_code() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let periapt = &scene.periapt;
    periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    let binary = periapt_tests::binary()?;
    let binary = quoted(binary.to_str().context("a path")?);
    let script =
        format!("{binary} exec --container web -it probe/0 -- sh -c 'echo ready; exec sh'; echo \"code $?\"");
    let steps = json!([
        ["expect", "ready"],
        ["until", "stty size\n", "33 99"],
        ["size", 20, 50],
        ["until", "stty size\n", "20 50"],
        // It is the image's shell.
        ["send", "cat /etc/marker; echo \"term=$TERM\"\n"],
        ["expect", "oneterm=xterm"],
        // Ctrl-C goes to the command alone.
        ["send", "echo be; echo gun; sleep 3631\n"],
        ["expect", "gun\r\n"],
        ["send", "\u{3}"],
        ["until", "echo alive-$((1+1))\n", "alive-2"],
        ["send", "exit 7\n"],
        ["expect", "code 7"],
    ]);
    at_terminal(periapt, &steps, &script)?;
    until("nothing is left of it", || Ok(processes(&["sleep 3631"])?.is_empty()))?;

    // Without a terminal, input goes in and comes out byte for byte.
    let given = periapt.path().join("given");
    let text = "0123456789abcdef".repeat(1 << 16);
    std::fs::write(&given, &text)?;
    let mut copy = periapt.command(EXEC);
    copy.args(["-i", "--", "sh", "-c", "cat; cat /etc/marker >&2; exit 5"]).stdin(File::open(&given)?);
    let copied = Installation::finished(copy)?;
    assert_eq!((copied.code, &*copied.stderr), (Some(5), "one"));
    ensure!(copied.stdout == text, "{} bytes have come back", copied.stdout.len());

    // A client that dies takes its command with it.
    let runs = || -> anyhow::Result<bool> { Ok(!processes(&["sleep 3633"])?.is_empty()) };
    let mut client = begun(periapt, &["-i", "--", "sh", "-c", "exec sleep $((3600+33))"])?;
    until("the command runs", runs)?;
    client.kill()?;
    client.wait()?;
    until("it has ended with its client", || Ok(!runs()?))
}
