//! Limits of containers, from the operator to the kernel, and what they use.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{Scene, until};

/// Returns the cgroup of a pod that has a file; none on a host that keeps no such bound.
fn cgroup(pod: u32, file: &str) -> Option<PathBuf> {
    let name = format!("periapt-container-{pod}");
    let mut left = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Hierarchies are linked under the names of their controllers, too.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name() == name.as_str() && entry.path().join(file).exists() {
                return Some(entry.path().join(file));
            }
            left.push(entry.path());
        }
    }
    None
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[test]
fn limits_of_a_container_change_while_it_runs_and_its_use_is_shown() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let periapt = &scene.periapt;
    periapt.deploy("probe", ["--resource", "image=one.tar", "--constraints", "mem=256M cpu-power=50"])?;
    assert_eq!(periapt.ok(["config", "probe", "workload-memory-limit"])?, "256M\n");
    assert_eq!(periapt.ok(["constraints", "probe"])?, "mem=256M cpu-power=50\n");
    let first = scene.boot_id("")?;
    scene.serve()?;
    let pod = *scene.pods()?.first().context("one container")?;
    let memory = ["memory.max", "memory.limit_in_bytes"].iter().find_map(|file| cgroup(pod, file));
    if let Some(memory) = &memory {
        assert_eq!(number(memory), Some(256 << 20));
        periapt.ok(["config", "probe", "workload-memory-limit=512M"])?;
        until("the limit has changed", || Ok(number(memory) == Some(512 << 20)))?;
        periapt.ok(["config", "probe", "workload-memory-limit=128M"])?;
        until("the limit has changed back", || Ok(number(memory) == Some(128 << 20)))?;
        assert_eq!(scene.boot_id("")?, first, "the container runs on");
    }
    // A number of processes needs another start.
    periapt.ok(["config", "probe", "workload-memory-limit=128M", "workload-process-limit=100"])?;
    scene.boot_id(&first)?;
    scene.serve()?;

    let usage = periapt.json_until(&["usage"], |usage| usage["workloads"]["memory"].as_u64() > Some(0))?;
    assert_eq!(usage["workloads"]["memory-limit"], 128 << 20, "{usage}");
    assert_eq!(usage["applications"]["probe"]["workloads"]["probe/0"]["containers"], 1, "{usage}");

    periapt.ok(["model-config", "workload-quota=1"])?;
    let refused = periapt.refused(["add-unit", "probe"])?;
    assert!(
        refused.contains("would have 2 containers and WebAssembly workloads, and may have 1"),
        "{refused}"
    );
    Ok(())
}
