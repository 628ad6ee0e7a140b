//! The calls of ops' client of Pebble, made by a charm in its sandbox, to a workload in a container.

use std::{fs, path::Path};

use super::Scene;
use crate::workloads::calls;

#[test]
fn each_call_of_ops_reaches_a_container_from_within_the_sandbox() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let periapt = &scene.periapt;
    let root = periapt.path().join("root");
    let users = "root:x:0:0:root:/root:/bin/sh\nworker:x:1234:2345::/srv:/bin/sh\n";
    fs::write(root.join("etc/passwd"), users)?;
    // Commands run in the home of their user.
    fs::create_dir(root.join("root"))?;
    fs::write(root.join("etc/group"), "root:x:0:\nworker:x:2345:\n")?;
    periapt.ok(["image", "pack", "root", "--output", "users.tar"])?;
    periapt.deploy("python-pebble", ["--resource", "image=users.tar"])?;
    let directory = Path::new("/srv/probes");
    calls::run_probes(periapt, directory)?;
    calls::run_probes_of_users(periapt, directory)
}
