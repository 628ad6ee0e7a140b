//! Uploads of charms without the command line: for any content, the answer is short and has a code, and the
//! controller continues unchanged.

use std::{
    fs,
    io::{Cursor, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_archive::{COMPONENT, adapt};
use periapt_host_api::Digest;
use periapt_tests::{Installation, edition, module, packed};
use proptest::{prelude::*, test_runner::TestRunner};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    changes::{Change, changed, changes},
    components::component,
    scene::quiet,
};

const METADATA: &str = "name: c\nsummary: s\ndescription: d\nprovides: {web: http}\n\
                        config: {options: {title: {type: string, default: hello, description: d}}}\n";

/// The longest answer that a client reads, in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// The longest time for an answer, on a slow machine.
const WITHIN: Duration = Duration::from_secs(120);

/// A controller with its socket.
struct UploadTarget {
    periapt: Installation,
    socket: PathBuf,
    process: u32,
}

impl UploadTarget {
    fn open() -> anyhow::Result<Self> {
        let periapt = quiet()?;
        let listing = periapt.json(["controllers"])?;
        let name = listing["controllers"].as_object().and_then(|all| all.keys().next());
        let name = name.context("a controller")?;
        let (socket, process) = (periapt.socket(name), periapt.controller_process(name)?);
        Ok(Self { periapt, socket, process })
    }

    /// Returns the status and body of the answer to a request.
    fn ask(&self, line: &str, content: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(WITHIN))?;
        let length = content.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        // The controller may answer before it has read everything.
        let _ = stream.write_all(content);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("the end of a head")?;
        let head = std::str::from_utf8(&answer[..end])?;
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        Ok((status, answer[end + 4..].to_vec()))
    }

    /// Uploads content; returns true if the controller accepts it. Fails on an answer that is not allowed.
    fn upload(&self, content: &[u8]) -> anyhow::Result<bool> {
        let digest = Digest::of(content);
        let (status, body) = self.ask(&format!("PUT /v1/charms/{digest}"), content)?;
        ensure!(body.len() < LONGEST_ANSWER, "an answer of {} bytes", body.len());
        if status == 200 {
            return Ok(true);
        }
        let problem: serde_json::Value = serde_json::from_slice(&body)?;
        ensure!(status == 400 || status == 409, "status {status}: {problem}");
        let said = problem.to_string();
        ensure!(problem["code"].is_string(), "no code: {said}");
        for sign_of_defect in ["defect of the reader", "panicked", "checking the charm failed"] {
            ensure!(!said.contains(sign_of_defect), "{said}");
        }
        Ok(false)
    }

    /// Checks that the same process still answers.
    fn is_alive(&self) -> anyhow::Result<()> {
        let (status, _) = self.ask("GET /v1/controller", b"")?;
        ensure!(status == 200, "status {status}");
        fs::metadata(format!("/proc/{}", self.process)).context("the controller's process")?;
        Ok(())
    }

    /// Returns a value of the controller's memory from `/proc`, in MiB.
    fn memory(&self, line: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process))?;
        let found = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
        let kib: u64 = found.context("a line")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kib >> 10)
    }
}

fn zip_of(files: &[(&str, &[u8])]) -> anyhow::Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        zip.start_file(*path, SimpleFileOptions::default())?;
        zip.write_all(content)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// The content of an upload.
#[derive(Debug, Clone)]
enum Sent {
    /// Arbitrary bytes.
    Noise(Vec<u8>),
    /// A valid archive with changes.
    Archive(Vec<Change>),
    /// An archive of a valid component and valid metadata with changes.
    Parts { component: Vec<Change>, metadata: Vec<Change> },
    /// An archive with a random component.
    Component(String),
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..256).prop_map(Sent::Noise),
        2 => changes().prop_map(Sent::Archive),
        3 => (changes(), prop_oneof![2 => Just(Vec::new()), 1 => changes()])
            .prop_map(|(component, metadata)| Sent::Parts { component, metadata }),
        1 => changes().prop_map(|metadata| Sent::Parts { component: Vec::new(), metadata }),
        3 => component().prop_map(Sent::Component),
    ]
}

#[test]
fn whatever_is_uploaded_is_taken_or_refused_with_a_code_and_harms_nobody() -> anyhow::Result<()> {
    let target = UploadTarget::open()?;
    let archive = fs::read(packed("mysql", target.periapt.path())?)?;
    let guest = adapt(&fs::read(module("mysql")?)?)?;
    ensure!(target.upload(&archive)?, "the archive was right");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let checked = TestRunner::new(config).run(&sent(), |sent| {
        let content = match &sent {
            Sent::Noise(bytes) => Ok(bytes.clone()),
            Sent::Archive(changes) => Ok(changed(&archive, changes)),
            Sent::Parts { component, metadata } => zip_of(&[
                ("charmcraft.yaml", &changed(METADATA.as_bytes(), metadata)),
                (COMPONENT, &changed(&guest, component)),
            ]),
            Sent::Component(text) => {
                let Ok(component) = wat::parse_str(text) else {
                    return Err(TestCaseError::reject("no text"));
                };
                zip_of(&[("charmcraft.yaml", METADATA.as_bytes()), (COMPONENT, &component)])
            }
        };
        let sent = content.and_then(|content| target.upload(&content));
        sent.map(drop).map_err(|error| TestCaseError::fail(format!("{error:#}")))
    });
    checked.map_err(|error| anyhow::anyhow!("{error}"))?;
    target.is_alive()
}

#[test]
fn a_component_that_no_wit_describes_is_told_by_pack_deploy_and_try_hook() -> anyhow::Result<()> {
    let target = UploadTarget::open()?;
    let periapt = &target.periapt;
    fs::create_dir(periapt.path().join("charm"))?;
    fs::write(periapt.path().join("charm/charmcraft.yaml"), METADATA)?;
    for text in [
        r#"(component (import "a:b/c" (func)))"#,
        r#"(component (import "a:b/c@1.0.0" (func)))"#,
        r#"(component (import "unlocked-dep=<a:b>" (func)))"#,
        r#"(component (import "f" (func $f)) (export "a:b/c" (func $f)))"#,
    ] {
        let component = wat::parse_str(text)?;
        fs::write(periapt.path().join("charm/charm.wasm"), &component)?;
        let archive = zip_of(&[("charmcraft.yaml", METADATA.as_bytes()), (COMPONENT, &component)])?;
        fs::write(periapt.path().join("c.charm"), &archive)?;
        for words in [
            &["pack", "./charm"][..],
            &["deploy", "./charm"],
            &["deploy", "./c.charm"],
            &["try-hook", "./c.charm"],
        ] {
            let error = periapt.refused(words)?;
            assert!(error.contains("imports that cannot be linked"), "{words:?} of {text}: {error}");
            assert!(!error.contains("panicked") && !error.contains("defect"), "{words:?} of {text}: {error}");
        }
        ensure!(!target.upload(&archive)?, "{text}");
    }
    target.is_alive()
}

/// Returns a zip of files of zeros.
fn zeros(files: usize, size: usize) -> anyhow::Result<Vec<u8>> {
    let (mut zip, zeros) = (ZipWriter::new(Cursor::new(Vec::new())), vec![0; size]);
    for number in 0..files {
        zip.start_file(format!("templates/{number}"), SimpleFileOptions::default())?;
        zip.write_all(&zeros)?;
    }
    Ok(zip.finish()?.into_inner())
}

#[test]
fn hostile_uploads_leave_the_controller_as_small_as_it_was() -> anyhow::Result<()> {
    let target = UploadTarget::open()?;
    let mysql = fs::read(packed("mysql", target.periapt.path())?)?;
    ensure!(target.upload(&mysql)?, "the archive was right");
    let before = target.memory("VmRSS")?;
    let bomb = zeros(9_000, 55 << 10)?;
    ensure!(bomb.len() < 2 << 20, "{} bytes", bomb.len());
    let mut noise = vec![0; 24 << 20];
    let mut seed = 1_u64;
    for byte in &mut noise {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (seed >> 56) as u8;
    }
    for number in 0..4 {
        target.upload(&edition(&bomb, number))?;
        // Noise takes as much memory as an archive.
        noise[0] = number;
        ensure!(!target.upload(&noise)?, "noise was taken");
    }
    let (peak, after) = (target.memory("VmHWM")?, target.memory("VmRSS")?);
    println!("resident: {before} MiB before, {peak} MiB at most, {after} MiB after");
    ensure!(peak < before + 100, "{before} MiB became {peak} MiB");
    ensure!(after < before + 50, "{before} MiB stayed {after} MiB");
    let began = Instant::now();
    // Helpers end with their work; the last one may still be ending.
    while !children(target.process)?.is_empty() {
        ensure!(began.elapsed() < WITHIN, "helpers are left: {:?}", children(target.process)?);
        std::thread::yield_now();
    }
    target.is_alive()
}

fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))?.flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    Ok(lists.collect::<String>().split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
