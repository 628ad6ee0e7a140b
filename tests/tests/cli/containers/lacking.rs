//! Agents on hosts that lack something for containers: what is missing and what helps is in `status`, and in the error of
//! an agent that requires it.

use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf, process::Command};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, binary, packed_changed, signal, skipped};
use serde_json::{Value, json};

use super::{Scene, make_root, registries::tool};
use crate::workloads::{children, processes, until};

/// A host that a test makes: the options of `unshare`, and the script of a shell that runs its arguments in the end.
#[derive(Clone, Copy)]
struct Host {
    options: &'static [&'static str],
    script: &'static str,
}

/// The options for the root of a user namespace, who may mount. Its one id is that of this process.
const OWN_ROOT: &[&str] = &["--user", "--map-root-user", "--mount"];

/// A host on which nobody may make user namespaces.
const WITHOUT_NAMESPACES: Host =
    Host { options: OWN_ROOT, script: "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"" };

/// A host that shows no cgroups, and a user who is not root and has no range of ids.
const WITHOUT_RIGHTS: Host = Host {
    options: OWN_ROOT,
    script: "mount -t tmpfs none /sys/fs/cgroup && exec unshare --map-user=4242 --map-group=4242 -- \"$@\"",
};

/// A user who is not root and has a range of ids. `UIDMAP` has the programs that give it, and `UNPRIVILEGED` further options
/// of `setpriv`. The user owns the installation's directory, and reaches no path of root's home.
const WITH_RANGE: Host = Host {
    options: &["--mount"],
    script: "set -e
mount -t tmpfs -o mode=755 none /usr/local/bin
cp \"$UIDMAP\"/newuidmap \"$UIDMAP\"/newgidmap /usr/local/bin
chmod 4755 /usr/local/bin/newuidmap /usr/local/bin/newgidmap
touch /usr/local/bin/periapt
mount --bind \"$1\" /usr/local/bin/periapt
shift
mkdir /usr/local/bin/upper /usr/local/bin/work
mount -t overlay -o lowerdir=/etc,upperdir=/usr/local/bin/upper,workdir=/usr/local/bin/work none /etc
echo worker:x:54321:54321::/:/bin/sh >>/etc/passwd
echo worker:200000:65536 >/etc/subuid
echo worker:200000:65536 >/etc/subgid
chown 54321:54321 .
[ ! -e worker.token ] || chown 54321:54321 worker.token
exec setpriv --reuid=54321 --regid=54321 --clear-groups $UNPRIVILEGED /usr/local/bin/periapt \"$@\"",
};

const NO_NAMESPACES: &str = "cannot make a user namespace: No space left on device (os error 28); the sysctl \
                             user.max_user_namespaces must be greater than 0 and, where they exist, \
                             kernel.unprivileged_userns_clone 1 and kernel.apparmor_restrict_unprivileged_userns 0";

const MOUNT_CGROUPS: &str = "mount cgroups with the controllers memory and pids at /sys/fs/cgroup";

const ADD_RANGE: &str = "add a range by usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER, or run the agent \
                         as root";

/// Returns the beginning of a command on a host that a test makes.
fn on_host(periapt: &Installation, host: Host) -> Command {
    let mut command = periapt.program("unshare");
    command.args(host.options).args(["--", "sh", "-c", host.script, "sh"]);
    command
}

/// Starts an agent on such a host, and a unit with a container; none where no such host can be made.
fn started(host: Host, variables: &[(&'static str, &str)]) -> anyhow::Result<Option<Scene>> {
    let scene = with_agent(host, variables)?;
    if let Some(scene) = &scene {
        scene.periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    }
    Ok(scene)
}

/// Starts an agent on such a host, and packs an image; none where no such host can be made.
fn with_agent(host: Host, variables: &[(&'static str, &str)]) -> anyhow::Result<Option<Scene>> {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let periapt = Installation::empty()?.with_environment(variables);
    let root = periapt.path().join("root");
    if !make_root(&root)? {
        return Ok(None);
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:1000:1000::/:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nweb:x:1000:\n")?;
    let tried = on_host(&periapt, host).arg(binary()?).arg("version").output()?;
    if !tried.status.success() {
        skipped(String::from_utf8_lossy(&tried.stderr).trim())?;
        return Ok(None);
    }
    periapt.ok(["image", "pack", "root", "--output", "one.tar"])?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let log = periapt.path().join("agent.log");
    let starter = on_host(&periapt, host);
    let mut agent = periapt.agent_by(starter, "worker", &log, ["--workloads", "namespaces"])?;
    ensure!(agent.first_line()? == "ready worker", "{}", fs::read_to_string(&log)?);
    Ok(Some(Scene { periapt, agent }))
}

/// Returns the error of an agent on such a host that requires whole confinement.
fn refusal(periapt: &Installation, host: Host) -> anyhow::Result<String> {
    let listed = periapt.json(["controllers"])?;
    let url = listed.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
    let mut command = on_host(periapt, host);
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

/// Starts a service of another user than root.
fn start_as_web(scene: &Scene, command: &str) -> anyhow::Result<()> {
    let service = json!({"override": "replace", "command": command, "startup": "enabled", "user": "web"});
    let layer = json!({"services": {"web": service}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
    scene.ask(&format!("web POST /v1/layers {add}"))?;
    scene.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
    Ok(())
}

/// Returns the directory of the storage `scratch/0` on the host.
fn scratch(periapt: &Installation) -> anyhow::Result<PathBuf> {
    let mut models = fs::read_dir(periapt.path().join("worker/storage"))?;
    Ok(models.next().context("no model has storage")??.path().join("scratch-0"))
}

#[test]
fn a_host_without_user_namespaces_says_what_to_set_and_runs_hooks() -> anyhow::Result<()> {
    let Some(Scene { periapt, agent }) = started(WITHOUT_NAMESPACES, &[])? else { return Ok(()) };
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
    let Some(scene) = started(WITHOUT_RIGHTS, &[])? else { return Ok(()) };
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

    start_as_web(&scene, "sleep 60")?;
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

#[test]
fn a_user_with_a_range_of_ids_has_containers_with_users_unless_it_can_get_no_rights() -> anyhow::Result<()> {
    // Only root can be another user and install programs with rights.
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(());
    }
    let Some(programs) = tool("uidmap")? else { return Ok(()) };
    let programs = programs.to_str().context("a path")?;
    let Some(scene) = started(WITH_RANGE, &[("UIDMAP", programs), ("UNPRIVILEGED", "")])? else {
        return Ok(());
    };
    let periapt = &scene.periapt;
    let map = ["exec", "--unit", "probe/0", "--container", "web", "--", "cat", "/proc/self/uid_map"];
    until("the container runs", || Ok(periapt.run(map)?.code == Some(0)))?;
    let ids: Vec<u32> = periapt.ok(map)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    assert_eq!(ids, [0, 54_321, 1, 1, 200_000, 65_536]);
    let status = periapt.json(["status"])?;
    assert!(!of_machine(&status).contains("users"), "{status}");
    // A number of seconds that no other process sleeps.
    let sleeps = format!("sleep {}", u64::from(std::process::id()) + 10_000_000);
    start_as_web(&scene, &sleeps)?;
    until("the service runs as its user", || {
        let of = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        Ok(processes(&[&sleeps])?.iter().any(|pid| of(pid).contains("Uid:\t200999\t200999\t")))
    })?;
    assert!(problems(&periapt.json(["status"])?).is_empty());
    let Scene { agent, .. } = scene;
    assert_eq!(agent.end("TERM")?, Some(0));

    let variables = [("UIDMAP", programs), ("UNPRIVILEGED", "--no-new-privs")];
    let Some(scene) = started(WITH_RANGE, &variables)? else { return Ok(()) };
    let status = scene.periapt.json_until(&["status"], |status| !of_machine(status).is_empty())?;
    let remedy = "users (start the agent without no_new_privs: with systemd, NoNewPrivileges=no)";
    assert!(of_machine(&status).contains(remedy), "{status}");
    scene.periapt.ok_until(&["show-unit", "probe/0"], |shown| shown.contains("state: running"))?;
    Ok(())
}

#[test]
fn an_agent_that_is_not_root_counts_mounts_and_deletes_the_storage_of_services_of_other_users()
-> anyhow::Result<()> {
    // Only root can be another user and install programs with rights.
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(());
    }
    let Some(programs) = tool("uidmap")? else { return Ok(()) };
    let programs = programs.to_str().context("a path")?;
    let Some(scene) = with_agent(WITH_RANGE, &[("UIDMAP", programs), ("UNPRIVILEGED", "")])? else {
        return Ok(());
    };
    let periapt = &scene.periapt;
    let mounts = |text: &str| {
        text.replace(
            "    resource: image\n",
            "    resource: image\n    mounts: [{storage: scratch, location: /data}]\n",
        )
    };
    let charm = packed_changed("probe", "owned", periapt.path(), mounts)?;
    let charm = charm.to_str().context("a path")?;
    periapt.ok(["deploy", charm, "--storage", "scratch=1,1M", "--resource", "image=one.tar"])?;
    periapt.wait_for(["model"])?;
    let first = scene.boot_id("")?;
    periapt.ok(["exec", "--unit", "probe/0", "--container", "web", "--", "chmod", "777", "/data"])?;
    let sleeps = format!("sleep {}", u64::from(std::process::id()) + 20_000_000);
    start_as_web(
        &scene,
        &format!(
            "sh -c 'mkdir -m 700 /data/own; mkdir -m 1777 /data/own/tmp; echo x >/data/own/tmp/x; \
             printf one >/data/own/note; exec {sleeps}'"
        ),
    )?;
    let place = scratch(periapt)?;
    let note = place.join("own/note");
    until("the service has written", || Ok(fs::read(&note).is_ok_and(|note| note == b"one")))?;
    let owner = fs::metadata(place.join("own"))?;
    assert_eq!((owner.uid(), owner.mode() & 0o777), (200_999, 0o700));

    // The agent counts it, also when the service writes more than there may be.
    periapt.json_until(&["usage"], |usage| usage["workloads"]["storage"].as_u64() > Some(0))?;
    assert_eq!(scene.boot_id("")?, first, "the container runs on");
    start_as_web(&scene, &format!("sh -c 'cat /bin/busybox /bin/busybox >/data/own/full; exec {sleeps}'"))?;
    let debug_log = ["debug-log", "--replay", "--no-tail", "--include", "probe/0"];
    periapt.ok_until(&debug_log, |log| {
        log.contains("container web does not run: its storage scratch/0 holds more than its 1 MiB")
    })?;

    // The next runner mounts it, and its hooks read and write it.
    let runners = children(scene.agent.id(), &["agent runner"])?;
    let runner = *runners.first().context("no runner")?;
    signal(runner, "KILL")?;
    until("the runner has ended", || Ok(!children(scene.agent.id(), &["agent runner"])?.contains(&runner)))?;
    assert_eq!(scene.act("read /srv/scratch/own/note", "read /srv/scratch/own/note: ")?, "one");
    periapt.ok(["config", "probe", "script=act: write /srv/scratch/own/full=x"])?;
    periapt.ok(["run", "probe/0", "act"])?;
    scene.boot_id(&first)?;

    periapt.ok(["remove-application", "probe", "--no-prompt", "--destroy-storage"])?;
    until("the storage is deleted", || Ok(!place.exists()))?;
    periapt.json_until(&["status"], |status| status["applications"]["probe"].is_null()).map(drop)
}
