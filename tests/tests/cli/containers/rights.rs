//! The rights of a pod's process, which reads what its container and its callers send.

use std::fs;

use anyhow::{Context as _, bail, ensure};

use super::{Scene, children};

/// No capability.
const NONE: &str = "0000000000000000";

/// CHOWN, DAC_OVERRIDE, FOWNER and FSETID, over what the container's namespaces own alone.
const OF_POD: &str = "000000000000001b";

/// The lines of a thread's status that tell its rights, in all threads of a pod.
const RIGHTS: [(&str, &str); 7] = [
    ("CapInh", NONE),
    ("CapPrm", OF_POD),
    ("CapEff", OF_POD),
    ("CapBnd", OF_POD),
    ("CapAmb", NONE),
    ("NoNewPrivs", "1"),
    ("Seccomp", "2"),
];

/// The fewest threads of a pod: the first one, and two that serve.
const FEWEST_THREADS: usize = 3;

/// Fails if a thread of a pod's process has other rights.
fn ensure_confined(pod: u32) -> anyhow::Result<()> {
    let mut threads = 0;
    for thread in fs::read_dir(format!("/proc/{pod}/task"))? {
        // A thread that has ended meanwhile has no status.
        let Ok(status) = fs::read_to_string(thread?.path().join("status")) else { continue };
        for (name, expected) in RIGHTS {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            ensure!(line.with_context(|| format!("no {name}"))?.trim() == expected, "{name}: {status}");
        }
        threads += 1;
    }
    ensure!(threads >= FEWEST_THREADS, "{threads} threads alone");
    Ok(())
}

#[test]
fn all_threads_of_a_pod_have_given_up_their_rights_before_and_after_they_serve() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    scene.periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    let [guard] = scene.pods()?[..] else { bail!("not one container") };
    let [pod] = children(guard, &["agent pod-inside"])?[..] else { bail!("not one pod") };
    ensure_confined(pod)?;
    // A layer, a service and its log, a stream to a port.
    scene.serve()?;
    ensure_confined(pod)
}
