//! Containers of units: images, from an operator to a workload.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{
    Installation, POLL_INTERVAL, RunningProcess, busybox_root, packed_changed, signal, skipped,
};
use serde_json::{Value, json};

use crate::workloads::{children, processes, until};

mod calls;
mod dialogues;
mod forwarding;
mod hostile;
mod lacking;
mod layers;
mod limits;
mod registries;
mod rights;
mod shared;
mod unusable;

/// The exit code of `tools/debian-image` where packages cannot be had.
const NO_PACKAGES: i32 = 3;

/// The programs of busybox that hostile images have.
const APPLETS: [&str; 6] = ["cat", "httpd", "mkdir", "sh", "sleep", "test"];

/// Makes the root of an image in a directory; false where there is no busybox.
pub(crate) fn make_root(root: &Path) -> anyhow::Result<bool> {
    match busybox_root(root)? {
        Ok(()) => Ok(true),
        Err(reason) => skipped(&reason).map(|()| false),
    }
}

/// Returns an image of packages of Debian, whose programs look names up as most do; none where they cannot be had.
pub(crate) fn debian_image(name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/debian-image");
    let mut command = Command::new(tool);
    command.arg(name).args(packages).env("PERIAPT_BINARY", periapt_tests::binary()?);
    let made = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    if made.status.code() == Some(NO_PACKAGES) {
        skipped(said.trim())?;
        return Ok(None);
    }
    ensure!(made.status.success(), "{said}");
    Ok(Some(String::from_utf8(made.stdout)?.trim().into()))
}

/// An installation with one agent that runs workloads in containers, and images for them.
struct Scene {
    periapt: Installation,
    agent: RunningProcess,
}

impl Scene {
    /// Returns none where no containers can be made.
    fn new() -> anyhow::Result<Option<Self>> {
        Self::with_drivers("namespaces")
    }

    /// Does so with an agent that has these drivers of workloads.
    fn with_drivers(drivers: &str) -> anyhow::Result<Option<Self>> {
        let periapt = Installation::empty()?;
        let root = periapt.path().join("root");
        if !make_root(&root)? {
            return Ok(None);
        }
        for marker in ["one", "two"] {
            fs::write(root.join("etc/marker"), marker)?;
            periapt.ok(["image", "pack", "root", "--output", &format!("{marker}.tar"), "--env", "A=1"])?;
        }
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let log = periapt.path().join("agent.log");
        let mut agent = periapt.agent_logged("worker", &log, ["--workloads", drivers])?;
        assert_eq!(agent.first_line()?, "ready worker", "{}", fs::read_to_string(&log)?);
        let scene = Self { periapt, agent };
        if let Some(reason) = scene.log()?.lines().find(|line| line.contains("this host makes no containers"))
        {
            skipped(reason)?;
            return Ok(None);
        }
        Ok(Some(scene))
    }

    fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.periapt.path().join("agent.log"))?)
    }

    /// Lets an action of the charm ask a workload, and returns what the charm logs of the answer.
    fn ask(&self, request: &str) -> anyhow::Result<String> {
        self.act(&format!("ask {request}"), " ask ")
    }

    /// Lets an action of the charm do something, and returns what the charm logs of it.
    fn act(&self, deed: &str, logged: &str) -> anyhow::Result<String> {
        self.periapt.ok(["config", "probe", &format!("script=act: {deed}")])?;
        self.periapt.ok(["run", "probe/0", "act"])?;
        let log = self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        let line = log.lines().rev().find_map(|line| Some(line.split_once(logged)?.1.to_owned()));
        line.with_context(|| format!("nothing of {deed} in {log}"))
    }

    fn ask_until(&self, request: &str, holds: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        for _ in 0..120 {
            let answer = self.ask(request)?;
            if holds(&answer) {
                return Ok(answer);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        anyhow::bail!("{request} still gets {}\n{}", self.ask(request)?, self.log()?)
    }

    /// Returns the id of the container's start, once it is not `before`.
    fn boot_id(&self, before: &str) -> anyhow::Result<String> {
        let is_new =
            |answer: &str| answer.contains("boot-id") && (before.is_empty() || !answer.contains(before));
        let answer = self.ask_until("web GET /v1/system-info", is_new)?;
        let (_, body) = answer.split_once(": 200 ").with_context(|| answer.clone())?;
        let body: Value = serde_json::from_str(body)?;
        Ok(body.pointer("/result/boot-id").and_then(Value::as_str).context("no boot id")?.to_owned())
    }

    /// Returns the first words of the server's command line, which no other test's has.
    fn server(&self) -> String {
        let name = self.periapt.path().file_name().unwrap_or_default();
        format!("httpd -f -r {}", name.to_string_lossy())
    }

    /// Adds a layer with a web server, and waits for what it says of the place where it runs.
    fn serve(&self) -> anyhow::Result<String> {
        let script = format!(
            "cat /etc/marker >/srv/page; test -e {} && echo host >>/srv/page; echo $A >>/srv/page; \
             test -d /data && cat /etc/marker >>/data/note; exec {} -p 127.0.0.1:8080 -h /srv",
            self.periapt.path().display(),
            self.server()
        );
        let command = format!("sh -c '{script}'");
        let service = json!({"override": "replace", "command": command, "startup": "enabled", "backoff-delay": "100ms"});
        let layer = json!({"services": {"web": service}}).to_string();
        let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
        let answer = self.ask(&format!("web POST /v1/layers {add}"))?;
        assert!(answer.contains(": 200 "), "{answer}");
        let answer = self.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
        assert!(answer.contains(": 202 "), "{answer}");
        self.ask_until("8080 GET /page", |answer| answer.contains(": 200 "))
    }

    fn pods(&self) -> anyhow::Result<Vec<u32>> {
        children(self.agent.id(), &["agent pod --keeper"])
    }

    /// Returns the layers that the agent keeps.
    fn layers(&self) -> anyhow::Result<usize> {
        let kept = fs::read_dir(self.periapt.path().join("worker/images/layers"))?.flatten();
        Ok(kept.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count())
    }
}

#[test]
fn a_workload_runs_in_its_container_on_the_attached_image_and_leaves_nothing() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let mounts = |text: &str| {
        text.replace(
            "    resource: image\n",
            "    resource: image\n    mounts: [{storage: scratch, location: /data}]\n",
        )
    };
    let charm = packed_changed("probe", "mounted", scene.periapt.path(), mounts)?;
    let charm = charm.to_str().context("a path")?;
    scene.periapt.ok(["deploy", charm, "--storage", "scratch=1,10M"])?;
    scene.periapt.wait_for(["model"])?;

    // Without an image nothing runs, and both the operator and the charm are told what is missing.
    let answer = scene.ask("web GET /v1/system-info")?;
    assert!(answer.contains("no image is attached"), "{answer}");
    let debug_log = ["debug-log", "--replay", "--no-tail", "--include", "probe/0"];
    scene.periapt.ok_until(&debug_log, |log| {
        log.contains(
            "container web does not run: no image is attached: `periapt attach-resource probe image=",
        )
    })?;
    assert!(scene.pods()?.is_empty());

    scene.periapt.ok(["attach-resource", "probe", "image=./one.tar"])?;
    let first = scene.boot_id("")?;
    let page = scene.serve()?;
    assert!(page.contains("200 one\n1") || page.contains("200 one1"), "its own root and environment: {page}");
    assert!(!page.contains("host"), "it sees the host's files: {page}");
    assert_eq!(scene.act("read /srv/scratch/note", "read /srv/scratch/note: ")?, "one");
    let pods = scene.pods()?;
    assert_eq!(pods.len(), 1, "one unit with one container");
    let servers = processes(&[&scene.server()])?;
    assert_eq!(servers.len(), 1);

    // The guard dies, and all of the container with it. Another one begins.
    signal(pods[0], "KILL")?;
    let gone =
        |pids: &[u32]| pids.iter().all(|pid| !fs::exists(format!("/proc/{pid}/exe")).unwrap_or_default());
    until("the server has ended with its pod", || Ok(gone(&servers)))?;
    let second = scene.boot_id(&first)?;
    scene.serve()?;

    // Another image: the container starts again with it, and the layers of the first one go.
    scene.periapt.ok(["attach-resource", "probe", "image=./two.tar"])?;
    scene.boot_id(&second)?;
    let page = scene.serve()?;
    assert!(page.contains("200 two"), "{page}");
    assert_eq!(scene.act("read /srv/scratch/note", "read /srv/scratch/note: ")?, "oneonetwo");
    until("one layer is left", || Ok(scene.layers()? == 1))?;

    let pods = scene.pods()?;
    scene.periapt.ok(["remove-application", "probe", "--no-prompt", "--destroy-storage"])?;
    until("the pod has ended with its unit", || Ok(scene.pods()?.is_empty() && gone(&pods)))?;
    assert!(processes(&[&scene.server()])?.is_empty());
    until("no layer is left", || Ok(scene.layers()? == 0))?;
    let mounted = fs::read_to_string(format!("/proc/{}/mountinfo", scene.agent.id()))?;
    assert!(!mounted.contains(&scene.periapt.path().display().to_string()), "{mounted}");
    Ok(())
}

#[test]
fn a_container_that_does_not_start_is_replaced_by_the_one_before_and_storage_stays() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let periapt = &scene.periapt;
    let mounted =
        |text: &str| text.replace("  web:\n", "  web:\n    mounts: [{storage: scratch, location: /data}]\n");
    let edition = |name: &str| {
        packed_changed("probe", name, periapt.path(), |text| format!("# {name}\n{}", mounted(text)))
    };
    let (first, next) = (edition("first")?, edition("next")?);
    let (first, next) = (first.to_str().context("a path")?, next.to_str().context("a path")?);
    periapt.ok(["deploy", first, "--storage", "scratch=1,10M", "--resource", "image=./one.tar"])?;
    let boot = scene.boot_id("")?;
    scene.serve()?;

    // No container has a root like this one.
    fs::create_dir_all(periapt.path().join("bad"))?;
    fs::write(periapt.path().join("bad/dev"), "no directory")?;
    periapt.ok(["image", "pack", "bad", "--output", "bad.tar"])?;
    periapt.ok(["refresh", "probe", "--path", next, "--resource", "image=./bad.tar"])?;
    periapt.ok_until(&["status"], |status| {
        status.contains("container web does not run: ") && status.contains("the image's /dev is no directory")
    })?;
    let runs_image = |revision: u64| {
        let runs = |shown: &Value| {
            let container = shown.pointer("/probe~10/containers/web");
            container.is_some_and(|container| container["image"]["revision"] == revision)
        };
        periapt.json_until(&["show-unit", "probe/0"], runs).map(drop)
    };
    runs_image(2)?;

    periapt.ok(["refresh", "probe", "--revision", "0", "--resource", "image=1"])?;
    scene.boot_id(&boot)?;
    let page = scene.serve()?;
    assert!(page.contains("200 one"), "{page}");
    assert_eq!(scene.act("read /srv/scratch/note", "read /srv/scratch/note: ")?, "oneone");
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"]["probe"]["charm"], "local:probe-0");
    // An earlier image is a revision of its own.
    runs_image(3)?;
    Ok(())
}

#[test]
fn a_workload_that_writes_past_its_storage_is_ended_until_there_is_room() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let mounts = |text: &str| {
        text.replace(
            "    resource: image\n",
            "    resource: image\n    mounts: [{storage: scratch, location: /data}]\n",
        )
    };
    let charm = packed_changed("probe", "bounded", scene.periapt.path(), mounts)?;
    let charm = charm.to_str().context("a path")?;
    scene.periapt.ok(["deploy", charm, "--storage", "scratch=1,1M", "--resource", "image=one.tar"])?;
    scene.periapt.wait_for(["model"])?;
    let first = scene.boot_id("")?;
    scene.serve()?;
    let servers = processes(&[&scene.server()])?;
    let fill = "sh -c 'cat /bin/busybox /bin/busybox >/data/full'";
    let service =
        json!({"override": "replace", "command": fill, "startup": "enabled", "on-success": "ignore"});
    let layer = json!({"services": {"fill": service}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "fill", "format": "yaml", "layer": layer});
    scene.ask(&format!("web POST /v1/layers {add}"))?;
    scene.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
    let debug_log = ["debug-log", "--replay", "--no-tail", "--include", "probe/0"];
    scene.periapt.ok_until(&debug_log, |log| {
        log.contains("container web does not run: its storage scratch/0 holds more than its 1 MiB")
    })?;
    let gone = |pid: &u32| !fs::exists(format!("/proc/{pid}/exe")).unwrap_or_default();
    until("its processes have ended", || Ok(servers.iter().all(gone)))?;
    // A hook makes room, and the container begins anew.
    scene.periapt.ok(["config", "probe", "script=act: write /srv/scratch/full=x"])?;
    scene.periapt.ok(["run", "probe/0", "act"])?;
    scene.boot_id(&first)?;
    scene.serve()?;
    Ok(())
}

#[test]
fn the_container_of_an_agent_that_is_killed_goes_on_under_the_next_one_and_ends_with_it() -> anyhow::Result<()>
{
    let Some(scene) = Scene::new()? else { return Ok(()) };
    scene.periapt.deploy("probe", ["--resource", "image=one.tar"])?;
    let first = scene.boot_id("")?;
    scene.serve()?;
    scene.periapt.ok_until(&["hooks", "probe/0"], |hooks| hooks.contains("web-pebble-ready"))?;
    let mut begun = scene.pods()?;
    let servers = processes(&[&scene.server()])?;
    begun.extend(&servers);
    signal(scene.agent.id(), "KILL")?;
    let runs = |pid: &u32| fs::exists(format!("/proc/{pid}/exe")).unwrap_or_default();
    let log = scene.periapt.path().join("agent.log");
    let mut agent = scene.periapt.agent_logged("worker", &log, ["--workloads", "namespaces"])?;
    assert_eq!(agent.first_line()?, "ready worker");
    let scene = Scene { agent, ..scene };
    assert_eq!((scene.boot_id("")?, processes(&[&scene.server()])?), (first, servers), "the same container");
    assert!(begun.iter().all(runs));
    let Scene { agent, .. } = scene;
    assert_eq!(agent.end("TERM")?, Some(0));
    until("all processes have ended", || Ok(!begun.iter().any(runs)))
}

/// Makes the archive of an image whose bytes are changed by `change`.
fn changed(image: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> anyhow::Result<()> {
    let mut bytes = fs::read(image)?;
    change(&mut bytes);
    Ok(fs::write(image.with_file_name(name), bytes)?)
}

#[test]
fn images_that_cannot_be_used_are_one_error_each_and_nothing_is_deployed() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let at = |name: &str| periapt.path().join(name);
    fs::create_dir_all(at("root/bin"))?;
    fs::write(at("root/bin/web"), "program".repeat(1_000))?;
    periapt.ok(["image", "pack", "root", "--output", "good.tar"])?;
    periapt.ok(["image", "pack", "root", "--output", "foreign.tar", "--architecture", "riscv64"])?;
    // The last blob is the layer; 1,024 bytes of zeros end the archive.
    changed(&at("good.tar"), "damaged.tar", |bytes| {
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or_default();
        bytes[end.saturating_sub(12)] ^= 0xff;
    })?;
    changed(&at("good.tar"), "cut.tar", |bytes| bytes.truncate(bytes.len() / 2))?;
    fs::write(at("text.tar"), "no image")?;
    for layout in ["layout", "no-configuration"] {
        fs::create_dir(at(layout))?;
        let unpacked =
            Command::new("tar").arg("-xf").arg(at("good.tar")).arg("-C").arg(at(layout)).status()?;
        ensure!(unpacked.success());
    }
    for blob in fs::read_dir(at("no-configuration/blobs/sha256"))? {
        let blob = blob?.path();
        if fs::read_to_string(&blob).is_ok_and(|text| text.contains("rootfs")) {
            fs::remove_file(blob)?;
        }
    }
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    let own = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let foreign = format!("the image is for linux/riscv64, and linux/{own} is wanted");
    let refusals = [
        ("foreign.tar", foreign.as_str()),
        ("damaged.tar", "layer 1"),
        ("cut.tar", "cut.tar: "),
        ("text.tar", "this is no image"),
        ("no-configuration", "configuration"),
        ("absent.tar", "absent.tar"),
    ];
    for (image, expected) in refusals {
        let error = periapt.refused(["deploy", "probe.charm", "--resource", &format!("image={image}")])?;
        ensure!(error.contains(expected) && error.contains("resource \"image\""), "{image}: {error}");
    }
    let status = periapt.json(["status"])?;
    ensure!(status["applications"].as_object().is_none_or(serde_json::Map::is_empty), "{status}");

    // A layout is made into an archive; the same image again is no new revision.
    periapt.ok(["deploy", "probe.charm", "--resource", "image=layout"])?;
    for (image, expected) in refusals {
        let error = periapt.refused(["attach-resource", "probe", &format!("image={image}")])?;
        ensure!(error.contains(expected), "{image}: {error}");
    }
    let again = periapt.run(["attach-resource", "probe", "image=layout"])?;
    ensure!(again.stderr.contains("has this content already"), "{again:?}");
    let shown = periapt.json(["resources", "probe"])?;
    let image = shown["resources"].as_array().into_iter().flatten().find(|shown| shown["name"] == "image");
    let image = image.context("no image")?;
    assert_eq!((&image["revision"], &image["type"]), (&json!("1"), &json!("oci-image")));
    assert_eq!(image["image"]["platform"], json!(format!("linux/{own}")));
    let of_file: Value =
        serde_json::from_str(&periapt.ok(["image", "show", "good.tar", "--format", "json"])?)?;
    assert_eq!(image["image"]["digest"], of_file["digest"]);
    Ok(())
}

/// Answers as a registry with one image `web:1`, from the directory of its layout, until the test's process ends.
/// Returns the address.
fn registry(layout: PathBuf) -> anyhow::Result<String> {
    use std::io::{BufRead as _, BufReader, Write as _};

    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json"))?)?;
    let digest =
        index.pointer("/manifests/0/digest").and_then(Value::as_str).context("no manifest")?.to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || -> anyhow::Result<()> {
        for stream in listener.incoming() {
            let mut stream = stream?;
            let mut lines = BufReader::new(stream.try_clone()?).lines();
            let request = lines.next().context("no request")??;
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let path = request.split(' ').nth(1).unwrap_or_default();
            let wanted = path.replace("/manifests/1", &format!("/manifests/{digest}"));
            let blob = wanted.rsplit_once("sha256:").map(|(_, hex)| layout.join("blobs/sha256").join(hex));
            let content = blob.and_then(|blob| fs::read(blob).ok());
            let kind = match wanted.contains("/manifests/") {
                true => "application/vnd.oci.image.manifest.v1+json",
                false => "application/octet-stream",
            };
            let (status, body) = match (path, content) {
                ("/v2/", _) => ("200 OK", Vec::new()),
                (_, Some(content)) => ("200 OK", content),
                _ => ("404 Not Found", br#"{"errors": [{"code": "MANIFEST_UNKNOWN"}]}"#.to_vec()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            // A client that has heard enough closes its side.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
        Ok(())
    });
    Ok(address)
}

#[test]
fn an_image_of_a_registry_is_pulled_by_the_client_and_pinned() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let at = |name: &str| periapt.path().join(name);
    fs::create_dir_all(at("root/bin"))?;
    fs::write(at("root/bin/web"), "program")?;
    periapt.ok(["image", "pack", "root", "--output", "web.tar"])?;
    fs::create_dir(at("layout"))?;
    ensure!(
        Command::new("tar").arg("-xf").arg(at("web.tar")).arg("-C").arg(at("layout")).status()?.success()
    );
    let address = registry(at("layout"))?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    for (reference, expected) in [
        (format!("http://{address}/web:2"), "has no 2"),
        ("127.0.0.1:1/web:1".to_owned(), "registry 127.0.0.1:1 cannot be reached"),
        ("http://192.0.2.1/web:1".to_owned(), "loopback"),
    ] {
        let error =
            periapt.refused(["deploy", "probe.charm", "--resource", &format!("image={reference}")])?;
        ensure!(error.contains(expected), "{reference}: {error}");
    }
    periapt.ok(["deploy", "probe.charm", "--resource", &format!("image=http://{address}/web:1")])?;
    let shown = periapt.json(["resources", "probe"])?;
    let image = shown["resources"].as_array().into_iter().flatten().find(|shown| shown["name"] == "image");
    let image = &image.context("no image")?["image"];
    let digest = image["digest"].as_str().context("no digest")?;
    assert_eq!(image["reference"], json!(format!("{address}/web:1@{digest}")), "{shown}");
    // The registry may go: the controller has the image.
    fs::write(
        at("details.yaml"),
        format!("registrypath: http://{address}/web:1\nusername: jane\npassword: x\n"),
    )?;
    let again = periapt.run(["attach-resource", "probe", "image=details.yaml"])?;
    ensure!(again.stderr.contains("has this content already"), "{again:?}");
    Ok(())
}
