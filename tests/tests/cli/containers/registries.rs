//! Images of registries that refuse them, as an operator names them: Docker's own registry (`tools/docker-registry`), with
//! a user, on this machine's loopback.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_tests::{Installation, RunningProcess, free_port, skipped};

use crate::workloads::until;

const USER: &str = "jane";
const PASSWORD: &str = "secret";

/// The password as htpasswd keeps it, by bcrypt.
const HASH: &str = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// The exit code of a tool where its program cannot be had.
const NONE: i32 = 3;

/// Returns what a tool of this repository prints: the path of a program; none where it cannot be had.
pub(super) fn tool(name: &str) -> anyhow::Result<Option<PathBuf>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools").join(name);
    let found = Command::new(path).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&found.stderr).trim().to_owned();
    if found.status.code() == Some(NONE) {
        skipped(&said)?;
        return Ok(None);
    }
    ensure!(found.status.success(), "{said}");
    Ok(Some(String::from_utf8(found.stdout)?.trim().into()))
}

/// A registry that knows one user and has the image `web:1`.
struct Registry {
    host: String,
    data: PathBuf,
    _process: RunningProcess,
}

impl Registry {
    /// Returns none where there is no such program.
    fn start(periapt: &Installation) -> anyhow::Result<Option<Self>> {
        let (Some(program), Some(tools)) = (tool("docker-registry")?, tool("image-tools")?) else {
            return Ok(None);
        };
        let at = |name: &str| periapt.path().join(name);
        let host = format!("127.0.0.1:{}", free_port()?);
        fs::write(at("users"), format!("{USER}:{HASH}\n"))?;
        let configuration = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{host}\"}}\n\
             auth: {{htpasswd: {{realm: tests, path: {}}}}}\n",
            at("blobs").display(),
            at("users").display()
        );
        fs::write(at("registry.yaml"), configuration)?;
        let mut command = periapt.program(program);
        command.arg("serve").arg(at("registry.yaml")).env("OTEL_TRACES_EXPORTER", "none");
        let process = periapt.logged(command, &at("registry.log"))?;
        until("the registry listens", || Ok(TcpStream::connect(&host).is_ok()))?;

        fs::create_dir_all(at("root/bin"))?;
        fs::write(at("root/bin/web"), "program")?;
        periapt.ok(["image", "pack", "root", "--output", "web.tar"])?;
        fs::create_dir(at("layout"))?;
        let unpacked = periapt.program("tar").args(["-xf", "web.tar", "-C", "layout"]).status()?;
        ensure!(unpacked.success());
        let copied = periapt
            .program(tools.join("skopeo"))
            .args(["--insecure-policy", "copy", "--quiet", "--dest-tls-verify=false"])
            .args([
                &format!("--dest-creds={USER}:{PASSWORD}"),
                "oci:layout",
                &format!("docker://{host}/web:1"),
            ])
            .output()?;
        ensure!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        let data = at("blobs/docker/registry/v2/blobs/sha256");
        Ok(Some(Self { host, data, _process: process }))
    }

    /// Returns the file and the digest of the image's layer: the one blob that is no JSON.
    fn layer(&self) -> anyhow::Result<(PathBuf, String)> {
        for part in fs::read_dir(&self.data)? {
            for blob in fs::read_dir(part?.path())? {
                let blob = blob?;
                let content = blob.path().join("data");
                if fs::read(&content)?.first() != Some(&b'{') {
                    return Ok((content, blob.file_name().to_string_lossy().into_owned()));
                }
            }
        }
        anyhow::bail!("the registry has no layer")
    }
}

/// Returns the error of `deploy` with an image from a place.
fn refusal(periapt: &Installation, place: &str) -> anyhow::Result<String> {
    periapt.refused(["deploy", "probe.charm", "--resource", &format!("image={place}")])
}

#[test]
fn a_registry_that_gives_no_image_is_one_error_that_says_what_to_do() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let Some(registry) = Registry::start(&periapt)? else { return Ok(()) };
    let host = &registry.host;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    periapt_tests::packed("probe", periapt.path())?;
    let details = |file: &str, text: &str| fs::write(periapt.path().join(file), text);
    let named = |name: &str, password: &str| {
        format!("registrypath: http://{host}/{name}\nusername: {USER}\npassword: {password}\n")
    };
    let absent = format!("sha256:{}", "0".repeat(64));
    details("right.yaml", &named("web:1", PASSWORD))?;
    details("wrong.yaml", &named("web:1", "not-the-password"))?;
    details("no-tag.yaml", &named("web:2", PASSWORD))?;
    details("no-repository.yaml", &named("other:1", PASSWORD))?;
    details("no-digest.yaml", &named(&format!("web@{absent}"), PASSWORD))?;
    details("no-user.yaml", &format!("registrypath: http://{host}/web:1\npassword: {PASSWORD}\n"))?;
    details(
        "unknown.yaml",
        &format!("registrypath: http://{host}/web:1\npassword: {PASSWORD}\nuser: jane\n"),
    )?;
    // Other tests listen at other addresses.
    let free = format!("127.0.0.23:{}", free_port()?);
    let form = "hint: it has registrypath, and if the registry asks for them, username and password";
    for (place, expected) in [
        (
            format!("http://{host}/web:1"),
            format!(
                "registry {host} asks for credentials for web, and none are given; or there is no such repository\n\
                 hint: give them as to Juju: in place of the image, name a file FILE.yaml with registrypath, username and \
                 password"
            ),
        ),
        (
            "wrong.yaml".to_owned(),
            format!(
                "registry {host} refuses the credentials of {USER} for web\n\
                 hint: the password is wrong, or the user may not pull this image"
            ),
        ),
        ("no-tag.yaml".to_owned(), format!("web of registry {host} has no 2")),
        ("no-repository.yaml".to_owned(), format!("other of registry {host} has no 1")),
        ("no-digest.yaml".to_owned(), format!("web of registry {host} has no {absent}")),
        ("no-user.yaml".to_owned(), format!("no-user.yaml: it has a password, and no username\n{form}")),
        (
            "unknown.yaml".to_owned(),
            format!(
                "unknown.yaml: line 3 column 1: unknown field `user`, expected one of registrypath, username, password\n\
                 {form}"
            ),
        ),
        (
            format!("http://{free}/web:1"),
            format!("registry {free} cannot be reached: Connection refused (os error 111)"),
        ),
        (
            format!("{free}/web:1"),
            format!(
                "registry {free} cannot be reached: Connection refused (os error 111)\n\
                 hint: write http:// before the name if the registry on this machine has no TLS"
            ),
        ),
    ] {
        let error = refusal(&periapt, &place)?;
        ensure!(error == format!("ERROR resource \"image\": {expected}\n"), "{place}: {error}");
        ensure!(!error.contains(PASSWORD), "{place}: {error}");
    }
    // Without TLS, unless it is said.
    let error = refusal(&periapt, &format!("{host}/web:1"))?;
    let begin =
        format!("ERROR resource \"image\": registry {host} cannot be reached: it does not speak TLS 1.3 (");
    ensure!(error.starts_with(&begin) && error.contains("\nhint: write http:// before the name"), "{error}");

    // What the registry has lost, or changed.
    let (layer, digest) = registry.layer()?;
    let content = fs::read(&layer)?;
    let short = digest.get(..12).context("a digest")?;
    let mut other = content.clone();
    *other.last_mut().context("a byte")? ^= 0xff;
    fs::write(&layer, &other)?;
    let expected = format!(
        "ERROR resource \"image\": registry {host} sends a layer (sha256:{short}) that does not match its digest: its bytes \
         have the digest sha256:{}\n",
        Digest::of(&other)
    );
    assert_eq!(refusal(&periapt, "right.yaml")?, expected);
    fs::remove_file(&layer)?;
    let expected = format!("ERROR resource \"image\": web of registry {host} has no layer sha256:{digest}\n");
    assert_eq!(refusal(&periapt, "right.yaml")?, expected);
    let status = periapt.json(["status"])?;
    ensure!(status["applications"].as_object().is_none_or(serde_json::Map::is_empty), "{status}");

    fs::write(&layer, &content)?;
    periapt.ok(["deploy", "probe.charm", "--resource", "image=right.yaml"])?;
    let error = periapt.refused(["attach-resource", "probe", "image=wrong.yaml"])?;
    ensure!(
        error.starts_with(&format!("ERROR resource \"image\": registry {host} refuses the credentials")),
        "{error}"
    );
    let shown = periapt.json(["resources", "probe"])?.to_string();
    ensure!(shown.contains(&format!("{host}/web:1@sha256:")) && !shown.contains(PASSWORD), "{shown}");
    Ok(())
}
