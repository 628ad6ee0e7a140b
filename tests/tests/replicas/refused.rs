//! Faults of a log, of a controller and of its clock, through the binary: each has one error of its own, within seconds
//! and before anything is written. `docs/ha.md` quotes them.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::Installation;
use periapt_transport::Authority;
use serde_json::Value;

use crate::{
    encrypted::{certified, file, identity},
    line::Line,
    log::{append_newer_entry, end_of_log, fill, is_absent, trim_all},
    site::{Site, controller, models, until},
};

/// The longest time to a refusal, on a busy machine.
const SOON: Duration = Duration::from_secs(40);

/// Checks that an error has these parts, in its one line or in the hint below.
fn has(error: &str, parts: &[&str]) -> anyhow::Result<()> {
    for part in parts {
        ensure!(error.contains(part), "{part:?} is not in: {error}");
    }
    Ok(())
}

/// Begins a new set of controllers with each of the two commands that do so. Each is refused with these words, and leaves
/// nothing. The certificates lie in the directory of the host.
fn refused_to_begin(host: &Installation, log: &[&str], parts: &[&str]) -> anyhow::Result<()> {
    let began = Instant::now();
    let bootstrap = ["bootstrap", "begun", "--no-agent", "--member", "one"];
    has(&host.refused([&bootstrap, log].concat())?, parts)?;
    ensure!(!host.path().join("data/controllers/begun").exists(), "bootstrap has written nothing");
    let run = ["controller", "run", "--data", "begun", "--listen", "127.0.0.1:0", "--member", "one"];
    has(&host.refused([&run, log].concat())?, parts)?;
    ensure!(!host.path().join("begun").exists(), "the controller has written nothing");
    ensure!(began.elapsed() < SOON, "two refusals took {:?}", began.elapsed());
    Ok(())
}

#[test]
fn the_document_quotes_each_error() -> anyhow::Result<()> {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ha.md"))?;
    let document: Vec<_> = document.split_whitespace().collect();
    has(
        &document.join(" "),
        &[
            "`etcd cannot be reached: ",
            "; one of its servers at least must answer`",
            "it refuses this controller's certificate",
            "another authority than the one that was given has issued its certificate`",
            "; 3.5 or newer is needed`",
            "`etcd has no leader: most of its members must run and reach each other (",
            "`etcd's database is full (alarm NOSPACE at member ",
            "or raise --quota-backend-bytes, then 'etcdctl alarm disarm'`",
            "`etcd's database is full (alarm NOSPACE): compact and defragment it, then 'etcdctl alarm disarm'; the request had no effect, try again`",
            "`controllers have a log below \"periapt/\" already: take another prefix",
            "`no controllers have a log at ",
            " is not fed from the log ",
            ": use the data directory of this set of controllers, or an empty one`",
            ": use a newer periapt`",
            "`etcd was set back: the log ends at position ",
            "; stop all controllers, and begin a new set with 'bootstrap --restore' and the directory of the one that has applied the most`",
            "`etcd was set back, and written again: at position ",
            " the log has another entry than this controller has applied; stop all controllers, and begin a new set with 'bootstrap --restore' and the directory of the one whose state you keep`",
            " of this log has other keys than this one: remove this one's data directory, and let it join with a token`",
            " s ahead of that of the controllers: set it`",
            " s ahead of that of the controller which leads: set the one of the two that is wrong",
            " s behind the last entry of the log: set the one of the two that is wrong",
            "`no controller leads that has the entries which the log does not have any more`",
            " is running: choose another name`",
            "`this token admits no controller of this name: it is used or too old",
            "`not up to date: it shows nothing until it is`",
            "`this controller has not been up to date with its log for ",
        ],
    )
}

/// Returns the directory of a host's controller `local`.
fn data(host: &Installation) -> PathBuf {
    host.path().join("data/controllers/local/controller")
}

/// Returns the words that run the controller `local` of a host in the foreground, with a log of the caller's choice.
pub(crate) fn run_local(host: &Installation, log: &str) -> anyhow::Result<Vec<String>> {
    let data = data(host);
    let data = data.to_str().context("a path")?;
    let run =
        ["controller", "run", "--data", data, "--listen", "127.0.0.1:0", "--member", "two", "--log", log];
    Ok(run.map(str::to_owned).to_vec())
}

#[test]
fn an_etcd_that_cannot_be_reached_is_named_with_each_server() -> anyhow::Result<()> {
    let parts = [
        "ERROR etcd cannot be reached: 127.0.0.1:1: Connection refused",
        "no-such-host.invalid:2: ",
        "one of its servers at least must answer",
    ];
    let log = ["--log", "etcd://127.0.0.1:1,no-such-host.invalid:2"];
    refused_to_begin(&Installation::empty()?, &log, &parts)
}

#[test]
fn an_etcd_that_refuses_the_certificate_or_has_one_of_another_authority_is_told() -> anyhow::Result<()> {
    let (host, authority, other) = (Installation::empty()?, Authority::generate()?, Authority::generate()?);
    let etcd = certified(&host, &authority, 1)?;
    identity(&host, &authority, "own")?;
    identity(&host, &other, "stranger")?;
    file(&host, "other-ca.pem", other.certificate())?;
    let url = etcd.url().to_string();
    let log = |ca: &'static str, name: &str| {
        let certificate = (format!("{name}.pem"), format!("{name}-key.pem"));
        let words =
            ["--log", &url, "--log-ca", ca, "--log-cert", &certificate.0, "--log-key", &certificate.1];
        words.map(str::to_owned)
    };
    let refused = |ca, name, part| {
        let words = log(ca, name);
        let parts = ["ERROR no TLS connection with etcd: 127.0.0.1:", part, "--log-ca names the certificate"];
        refused_to_begin(&host, &words.each_ref().map(String::as_str), &parts)
    };
    until("etcd answers", || {
        let words = log("ca.pem", "stranger");
        let begin = ["bootstrap", "begun", "--no-agent"].map(str::to_owned);
        Ok(!host.run(begin.iter().chain(&words))?.stderr.contains("cannot be reached"))
    })?;
    refused("ca.pem", "stranger", "it refuses this controller's certificate")?;
    refused("other-ca.pem", "own", "another authority than the one that was given has issued its certificate")
}

#[test]
fn a_controller_that_joins_and_does_not_reach_etcd_leaves_nothing() -> anyhow::Result<()> {
    let etcd = TestEtcd::start(1);
    etcd.ready();
    let url = etcd.url();
    let line = Line::to(url.endpoints.first().context("an endpoint")?, |_| {})?;
    let (first, second) = (Installation::empty()?, Installation::empty()?);
    first.ok(["bootstrap", "local", "--no-agent", "--member", "one", "--log", &line.url()])?;
    let site = Site { etcd, hosts: vec![first.into()], agents: Vec::new() };
    let join = site.admit(&second, "two")?;
    // The first one keeps its connection.
    line.turn_away();
    let error = second.refused(&join)?;
    has(&error, &["ERROR the controller did not start: etcd cannot be reached: 127.0.0.1:"])?;
    ensure!(!second.path().join("data/controllers/local").exists(), "nothing is left");
    line.let_through();
    second.ok(site.admit(&second, "two")?)?;
    second.ok(["add-model", "a"])?;
    until("the first one has it", || Ok(models(site.host(0)?)? == ["a"]))
}

/// Turns the version that a server of etcd tells into one of 3.4.
fn tell_older_version(bytes: &mut [u8]) {
    // The second field of the answer: its number and kind, its length, and the text.
    for at in 0..bytes.len() {
        if let Some([0x12, 5..=12, b'3', b'.', minor @ b'5'..=b'9', b'.']) = bytes.get_mut(at..at + 6) {
            *minor = b'4';
        }
    }
}

#[test]
fn an_etcd_that_is_too_old_is_told_with_its_version() -> anyhow::Result<()> {
    let etcd = TestEtcd::start(1);
    etcd.ready();
    let url = etcd.url();
    let line = Line::to(url.endpoints.first().context("an endpoint")?, tell_older_version)?;
    let log = line.url();
    let parts = ["ERROR etcd at 127.0.0.1:", " has version 3.4.", "; 3.5 or newer is needed"];
    refused_to_begin(&Installation::empty()?, &["--log", &log], &parts)?;
    ensure!(is_absent(&etcd, "periapt")?, "no log was made");
    Ok(())
}

#[test]
fn an_etcd_without_a_majority_is_told() -> anyhow::Result<()> {
    let mut etcd = TestEtcd::start(3);
    etcd.ready();
    etcd.kill(1);
    etcd.kill(2);
    let log = etcd.url().to_string();
    let parts = ["ERROR etcd has no leader: most of its members must run and reach each other ("];
    refused_to_begin(&Installation::empty()?, &["--log", &log], &parts)?;
    etcd.start_server(1);
    etcd.start_server(2);
    etcd.ready();
    ensure!(is_absent(&etcd, "periapt")?, "no log was made");
    Ok(())
}

#[test]
fn an_etcd_that_is_full_is_told_with_the_way_out() -> anyhow::Result<()> {
    let etcd = TestEtcd::start_with(1, &["--quota-backend-bytes=8388608"]);
    etcd.ready();
    fill(&etcd)?;
    let log = etcd.url().to_string();
    let parts = [
        "ERROR etcd's database is full (alarm NOSPACE at member ",
        "): compact and defragment it, or raise --quota-backend-bytes, then 'etcdctl alarm disarm'",
    ];
    refused_to_begin(&Installation::empty()?, &["--log", &log], &parts)
}

#[test]
fn a_log_of_other_controllers_or_of_a_newer_level_is_told_and_stays_as_it_is() -> anyhow::Result<()> {
    let site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    let (first, log) = (site.host(0)?, site.etcd.url().to_string());
    first.ok(["add-model", "a"])?;
    // Another set, below another prefix.
    let (other, other_log) = (Installation::empty()?, log.replace("/periapt", "/other"));
    other.ok(["bootstrap", "local", "--no-agent", "--member", "two", "--log", &other_log])?;
    for host in [first, &other] {
        host.ok(["controller", "stop", "local"])?;
    }
    let end = end_of_log(&site.etcd)?;

    let taken = [
        "ERROR controllers have a log below \"periapt/\" already: take another prefix",
        "hint: a further controller of that set begins with `periapt controller join`",
    ];
    refused_to_begin(&Installation::empty()?, &["--log", &log], &taken)?;
    // A store of the other set, and then the log in a place that has none.
    let error = other.refused(run_local(&other, &log)?)?;
    has(
        &error,
        &["ERROR the store ", " is not fed from the log ", &format!(" at {log}: use the data directory")],
    )?;
    let nowhere = log.replace("/periapt", "/nowhere");
    let error = other.refused(run_local(&other, &nowhere)?)?;
    has(
        &error,
        &[&format!("ERROR no controllers have a log at {nowhere}"), "hint: --log must name the log"],
    )?;
    ensure!(is_absent(&site.etcd, "nowhere")?, "no log was made");
    ensure!(end_of_log(&site.etcd)? == end, "the log stays as it is");
    other.ok(["controller", "start", "local"])?;

    append_newer_entry(&site.etcd)?;
    let error = first.refused(["controller", "start", "local"])?;
    let position = end.position.0 + 1;
    let newer = format!("the log has level {} at position {position}", periapt_host_api::LEVEL.0 + 1);
    has(&error, &["ERROR the controller did not start: ", &newer, ": use a newer periapt"])
}

#[test]
fn a_controller_with_other_keys_or_under_a_name_that_is_taken_is_told() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let (first, second) = (site.host(0)?, site.host(1)?);
    // A name is admitted once: while its controller runs, no further one takes it.
    until("the second one is known", || Ok(first.run(["controller-token", "two"])?.code == Some(1)))?;
    let error = first.refused(["controller-token", "two"])?;
    has(&error, &["ERROR controller \"two\" is running: choose another name"])?;
    let third = Installation::empty()?;
    let join = site.admit(&third, "three")?;
    let error =
        third.refused(join.iter().map(|word| if word == "three" { "four" } else { word.as_str() }))?;
    has(&error, &["ERROR this token admits no controller of this name: it is used or too old"])?;
    ensure!(!third.path().join("data/controllers/local").exists(), "nothing is left");

    second.ok(["controller", "stop", "local"])?;
    let other = Authority::generate()?;
    let secret = vec![("secret-key", vec![7_u8; 32])];
    let authority = vec![("ca.pem", other.certificate().into()), ("ca-key.pem", other.key_pem().into())];
    for files in [secret, authority] {
        let mut before = Vec::new();
        for (name, content) in files {
            let path = data(second).join(name);
            before.push((path.clone(), fs::read(&path)?));
            fs::write(path, content)?;
        }
        let error = second.refused(["controller", "start", "local"])?;
        has(
            &error,
            &[
                "ERROR the controller did not start: controller \"one\" of this log has other keys than this one",
                "remove this one's data directory, and let it join with a token",
            ],
        )?;
        for (path, content) in before {
            fs::write(path, content)?;
        }
    }
    second.ok(["controller", "start", "local"])?;
    second.ok(["add-model", "a"])?;
    until("the first one has it", || Ok(models(first)? == ["a"]))
}

#[test]
fn a_controller_whose_clock_is_far_off_neither_joins_nor_starts() -> anyhow::Result<()> {
    // More than the certificates of the two hosts allow for.
    const FAR: i64 = 7_200;
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    let second = Installation::empty()?.with_own_clock()?;
    let join = site.admit(&second, "two")?;
    second.set_clock(FAR)?;
    let error = second.refused(&join)?;
    has(&error, &["ERROR the clock of this machine is ", " s ahead of that of the controllers: set it"])?;
    ensure!(!second.path().join("data/controllers/local").exists(), "nothing is left");
    // The token was not used up.
    second.set_clock(0)?;
    second.ok(&join)?;
    second.ok(["add-model", "a"])?;

    second.ok(["controller", "stop", "local"])?;
    for (ahead, part) in [
        (FAR, " s ahead of that of the controller which leads: set the one of the two that is wrong"),
        (-FAR, " s behind the last entry of the log: set the one of the two that is wrong"),
    ] {
        second.set_clock(ahead)?;
        let error = second.refused(["controller", "start", "local"])?;
        has(&error, &["ERROR the controller did not start: this machine's clock is ", part])?;
    }
    second.set_clock(0)?;
    second.ok(["controller", "start", "local"])?;
    site.hosts.push(second.into());
    until("it follows", || Ok(models(site.host(1)?)? == ["a"]))
}

#[test]
fn a_controller_that_needs_a_state_which_none_has_says_so_and_waits_for_it() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let (first, second) = (site.host(0)?, site.host(1)?);
    first.ok(["add-model", "a"])?;
    until("the second one has it", || Ok(models(second)? == ["a"]))?;
    second.ok(["controller", "stop", "local"])?;
    first.ok(["add-model", "b"])?;
    trim_all(&site.etcd)?;
    first.ok(["controller", "stop", "local"])?;

    let told = second.path().join("told.log");
    let run = second.command(run_local(second, &site.etcd.url().to_string())?);
    let mut running = second.logged(run, &told)?;
    until("it says what it lacks", || {
        let missing = "no controller leads that has the entries which the log does not have any more";
        Ok(fs::read_to_string(&told)?.contains(missing))
    })?;
    first.ok(["controller", "start", "local"])?;
    let ready = running.first_line()?;
    ensure!(ready.starts_with("ready https://"), "it takes the state, and serves: {ready}");
    until("it has all", || Ok(models(second)? == ["a", "b"]))?;
    ensure!(running.end("TERM")? == Some(0), "it ends");
    Ok(())
}

/// Returns the answer of a host's own controller to a request, as it stands on the wire.
pub(crate) fn asked(host: &Installation, path: &str) -> anyhow::Result<String> {
    let mut stream = UnixStream::connect(host.socket("local"))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_follower_that_does_not_keep_up_says_so_and_serves_nothing_stale() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let (first, second) = (site.host(0)?, site.host(1)?);
    first.ok(["add-model", "a"])?;
    until("the second one has it", || Ok(models(second)? == ["a"]))?;
    second.ok(["controller", "stop", "local"])?;
    let url = site.etcd.url();
    let line = Line::to(url.endpoints.first().context("an endpoint")?, |_| {})?;
    let mut running = second.spawn(run_local(second, &line.url())?)?;
    let ready = running.first_line()?;
    ensure!(ready.starts_with("ready https://"), "{ready}");
    ensure!(asked(second, "/v1/models")?.starts_with("HTTP/1.1 200 "), "it serves what it has");

    // Nothing of the log reaches it any more. It reaches the controller that leads.
    line.hold();
    first.ok(["add-model", "b"])?;
    let of_second = |status: &Value| status.pointer("/controller/members/two").cloned().unwrap_or_default();
    let status = first.json_until(&["status", "-m", "a"], |status| {
        of_second(status).get("stale").is_some_and(|stale| stale == true)
    })?;
    ensure!(of_second(&status).get("behind").and_then(Value::as_u64) > Some(0), "{status}");
    let drawn = first.ok(["status", "-m", "a"])?;
    let row = drawn.lines().find(|line| line.starts_with("two ")).context("a row of the second one")?;
    ensure!(row.ends_with("not up to date: it shows nothing until it is"), "{drawn}");
    let listed = first.json(["controllers"])?;
    let machines = listed.pointer("/controllers/local/controller-machines");
    ensure!(machines == Some(&serde_json::json!({"active": 1, "total": 2})), "{listed}");
    let refused = asked(second, "/v1/models")?;
    ensure!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    has(&refused, &["this controller has not been up to date with its log for "])?;

    line.release();
    until("it is up to date again", || Ok(asked(second, "/v1/models")?.contains("\"b\"")))?;
    first.json_until(&["controllers"], |listed| {
        let machines = listed.pointer("/controllers/local/controller-machines");
        machines == Some(&serde_json::json!({"active": 2, "total": 2}))
    })?;
    let shown = controller(first)?;
    ensure!(shown.pointer("/details/controller-machines/two/stale").is_none(), "{shown}");
    ensure!(running.end("TERM")? == Some(0), "it ends");
    Ok(())
}
