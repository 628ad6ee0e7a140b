//! Agents on hosts that lack something for containers: what is missing and what helps is in `status`, and in the error of
//! an agent that requires it.

use std::{fs, process::Command};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, binary, skipped};
use serde_json::{Value, json};

use super::{Scene, make_root};
use crate::workloads::until;

/// The options of `unshare` for the root of a user namespace, who may mount. Its one id is that of this process.
const ROOT: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// A host on which nobody may make user namespaces.
const WITHOUT_NAMESPACES: &str = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";

/// A host that shows no cgroups, and a user who is not root and has no range of ids.
const WITHOUT_RIGHTS: &str =
    "mount -t tmpfs none /sys/fs/cgroup && exec unshare --map-user=4242 --map-group=4242 -- \"$@\"";

const NO_NAMESPACES: &str = "cannot make a user namespace: No space left on device (os error 28); the sysctl \
                             user.max_user_namespaces must be greater than 0 and, where they exist, \
                             kernel.unprivileged_userns_clone 1 and kernel.apparmor_restrict_unprivileged_userns 0";

const MOUNT_CGROUPS: &str = "mount cgroups with the controllers memory and pids at /sys/fs/cgroup";

const ADD_RANGE: &str = "add a range by usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER, or run the agent \
                         as root";

/// Returns the beginning of a command on a host that a shell's script makes.
fn on_host(periapt: &Installation, script: &str) -> Command {
    let mut command = periapt.program("unshare");
    command.args(ROOT).args(["--", "sh", "-c", script, "sh"]);
    command
}

/// Starts an agent on such a host, and a unit with a container; none where no such host can be made.
fn started(script: &str) -> anyhow::Result<Option<Scene>> {
    let periapt = Installation::empty()?;
    let root = periapt.path().join("root");
    if !make_root(&root)? {
        return Ok(None);
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:1000:1000::/:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nweb:x:1000:\n")?;
    let tried = on_host(&periapt, script).arg("true").output()?;
    if !tried.status.success() {
        skipped(String::from_utf8_lossy(&tried.stderr).trim())?;
        return Ok(None);
    }
    periapt.ok(["image", "pack", "root", "--output", "one.tar"])?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let log = periapt.path().join("agent.log");
    let starter = on_host(&periapt, script);
    let mut agent = periapt.agent_by(starter, "worker", &log, ["--workloads", "namespaces"])?;
    ensure!(agent.first_line()? == "ready worker", "{}", fs::read_to_string(&log)?);
    periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    Ok(Some(Scene { periapt, agent }))
}

/// Returns the error of an agent on such a host that requires whole confinement.
fn refusal(periapt: &Installation, script: &str) -> anyhow::Result<String> {
    let listed = periapt.json(["controllers"])?;
    let url = listed.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
    let mut command = on_host(periapt, script);
    command.arg(binary()?).args([
        "agent",
        "run",
        "--controller",
        url,
        "--name",
        "strict",
        "--data",
        "strict",
    ]);
    command.args(["--workloads", "namespaces", "--require-confinement"]);
    let told = Installation::finished(command)?.one_error()?;
    let error = told.lines().find(|line| line.starts_with("ERROR "));
    Ok(error.with_context(|| told.clone())?.to_owned())
}

/// Returns the message of the agent's machine.
fn of_machine(status: &Value) -> &str {
    status.pointer("/machines/0/juju-status/message").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the problems of the unit's workloads.
fn problems(status: &Value) -> Vec<&str> {
    let listed = status.pointer("/applications/probe/units/probe~10/workload-problems");
    listed.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn a_host_without_user_namespaces_says_what_to_set_and_runs_hooks() -> anyhow::Result<()> {
    let Some(Scene { periapt, agent }) = started(WITHOUT_NAMESPACES)? else { return Ok(()) };
    let status = periapt.json_until(&["status"], |status| !problems(status).is_empty())?;
    assert_eq!(problems(&status), [format!("container web does not run: {NO_NAMESPACES}")]);
    assert_eq!(of_machine(&status), format!("no container runs on this host: {NO_NAMESPACES}"));
    periapt.ok_until(&["hooks", "probe/0"], |hooks| hooks.contains("start"))?;
    assert_eq!(agent.end("TERM")?, Some(0));

    let error = refusal(&periapt, WITHOUT_NAMESPACES)?;
    assert_eq!(error, format!("ERROR this host cannot run workloads in containers: {NO_NAMESPACES}"));
    Ok(())
}

#[test]
fn a_user_without_rights_has_containers_and_is_told_what_they_lack() -> anyhow::Result<()> {
    let Some(scene) = started(WITHOUT_RIGHTS)? else { return Ok(()) };
    let periapt = &scene.periapt;
    let id = ["exec", "--unit", "probe/0", "--container", "web", "--", "id", "-u"];
    until("the container runs", || Ok(periapt.run(id)?.code == Some(0)))?;
    assert_eq!(periapt.ok(id)?, "0\n");
    let status = periapt.json_until(&["status"], |status| !of_machine(status).is_empty())?;
    // Further parts are missing on hosts with an old kernel.
    let lacks = format!("limit of memory, limit of processes ({MOUNT_CGROUPS}); users ({ADD_RANGE})");
    let told = of_machine(&status);
    assert!(told.starts_with(&format!("containers run without {lacks}")), "{told}");
    assert!(problems(&status).is_empty(), "{status}");

    // A service of another user.
    let service = json!({"override": "replace", "command": "sleep 60", "startup": "enabled", "user": "web"});
    let layer = json!({"services": {"web": service}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
    scene.ask(&format!("web POST /v1/layers {add}"))?;
    scene.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
    let status = periapt.json_until(&["status"], |status| !problems(status).is_empty())?;
    let expected = "service web of container web does not start: the container has root alone and no user \"web\": this \
                    host gives it no range of users";
    assert_eq!(problems(&status), [expected]);

    let error = refusal(periapt, WITHOUT_RIGHTS)?;
    let begin = "ERROR this host cannot run workloads in containers: this host cannot confine a container: limit of memory: ";
    assert!(error.starts_with(begin), "{error}");
    assert!(error.contains(&format!("; {MOUNT_CGROUPS}; limit of processes: ")), "{error}");
    let users = "users: the container has root alone, who is this user: /etc/subuid and /etc/subgid give this user no range";
    assert!(error.contains(&format!("; {MOUNT_CGROUPS}; {users}; {ADD_RANGE}")), "{error}");
    Ok(())
}
