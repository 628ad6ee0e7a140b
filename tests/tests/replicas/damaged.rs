//! A follower that needs the state of the controller that leads, and is sent a damaged one: it says so, serves nothing, and
//! takes the next whole one.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::Installation;

use crate::{
    log::trim_all,
    peer::{Damage, PeerLine},
    site::{Site, models, until},
};

/// The words before each reason.
const REFUSED: &str = "no snapshot was taken: ";

/// The longest wait for an answer of a controller that may serve nothing.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Returns true if a host's own controller shows its models.
fn shows_models(host: &Installation) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(host.socket("local"))?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        write!(stream, "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut begin = [0; 12];
        stream.read_exact(&mut begin)?;
        Ok::<_, std::io::Error>(begin)
    };
    ask().is_ok_and(|begin| begin == *b"HTTP/1.1 200")
}

/// Waits until a controller has refused some more snapshots, and has said this of one of them.
fn refuses(told: &Path, word: &str) -> anyhow::Result<()> {
    let refused = |text: &str| text.matches(REFUSED).count();
    let before = fs::read_to_string(told)?;
    let expected = format!("{REFUSED}{word}");
    until(&format!("it says {expected:?}"), || {
        let text = fs::read_to_string(told)?;
        let since = text.get(before.len()..).context("the log grows")?;
        // The first one may have been sent before.
        Ok(refused(since) > 1 && since.contains(&expected))
    })
}

#[test]
fn a_follower_refuses_damaged_snapshots_serves_nothing_and_takes_the_next_whole_one() -> anyhow::Result<()> {
    let (etcd, line) = (TestEtcd::start(3), PeerLine::new()?);
    etcd.ready();
    let (first, log) = (Installation::empty()?, etcd.url().to_string());
    let begin = ["bootstrap", "local", "--no-agent", "--member", "one", "--log", &log].map(str::to_owned);
    first.ok(begin.into_iter().chain(line.words()))?;
    line.serve(&first, "three")?;
    let mut site = Site { etcd, hosts: vec![first.into()], agents: Vec::new() };
    site.join_on(Installation::empty()?, "two")?;
    site.join_on(Installation::empty()?, "three")?;
    let (first, second, third) = (site.host(0)?, site.host(1)?, site.host(2)?);
    first.ok(["add-model", "a"])?;
    until("all have it", || Ok(models(second)? == ["a"] && models(third)? == ["a"]))?;

    third.ok(["controller", "stop", "local"])?;
    first.ok(["add-model", "b"])?;
    until("the second one has it", || Ok(models(second)? == ["a", "b"]))?;
    trim_all(&site.etcd)?;
    ensure!(site.leader(1)? == Some(0), "another controller leads, whose snapshots do not pass the line");
    line.damage(Damage::Flip);
    let data = third.path().join("data/controllers/local/controller");
    let data = data.to_str().context("a path")?;
    let run =
        ["controller", "run", "--data", data, "--listen", "127.0.0.1:0", "--member", "three", "--log", &log];
    let told = third.path().join("told.log");
    let mut running = third.logged(third.command(run), &told)?;

    for (damage, word) in [
        (Damage::Flip, "the snapshot cannot be read: "),
        (Damage::LeaveOut, "the snapshot is not whole"),
        (Damage::Tear, ""),
    ] {
        line.damage(damage);
        refuses(&told, word)?;
        ensure!(!shows_models(third), "{damage:?}: it shows what it has, which is old");
    }
    first.json_until(&["controllers"], |listed| {
        let machines = listed.pointer("/controllers/local/controller-machines");
        machines == Some(&serde_json::json!({"active": 2, "total": 3}))
    })?;

    line.damage(Damage::None);
    let ready = running.first_line()?;
    ensure!(ready.starts_with("ready https://"), "it takes the state, and serves: {ready}");
    until("it has all", || Ok(models(third)? == ["a", "b"]))?;
    first.ok(["add-model", "c"])?;
    until("it follows", || Ok(models(third)? == ["a", "b", "c"]))?;
    first.json_until(&["controllers"], |listed| {
        let machines = listed.pointer("/controllers/local/controller-machines");
        machines == Some(&serde_json::json!({"active": 3, "total": 3}))
    })?;
    ensure!(running.end("TERM")? == Some(0), "it ends");
    Ok(())
}
