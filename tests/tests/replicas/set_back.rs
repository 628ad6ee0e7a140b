//! An etcd whose data is put back as it was earlier, under controllers that have applied more: each ends with one error, and
//! the directory of one begins a new set.

use std::{fs, process::Command};

use anyhow::ensure;
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::Installation;

use crate::{
    faults::controller_log,
    log::end_of_log,
    site::{Site, models, until},
};

/// The error of a controller that has applied more than the log has, before the position that it has applied.
fn set_back(end: u64) -> String {
    format!("etcd was set back: the log ends at position {end}, and this controller has applied position ")
}

#[test]
fn controllers_of_an_etcd_that_was_set_back_end_with_a_word_and_one_of_them_begins_a_new_set()
-> anyhow::Result<()> {
    let mut site = Site::bootstrapped_in(TestEtcd::start(1), Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let hosts = site.hosts.clone();
    let (first, second) = (site.host(0)?, site.host(1)?);
    first.ok(["add-model", "before"])?;
    until("the second one has it", || Ok(models(second)? == ["before"]))?;

    // A copy of etcd's data is kept, and all goes on.
    for host in &hosts {
        host.ok(["controller", "stop", "local"])?;
    }
    let earlier = end_of_log(&site.etcd)?;
    site.etcd.kill(0);
    let (data, kept) = (site.etcd.data(0), site.etcd.directory().join("kept"));
    let copied = Command::new("cp").arg("-a").arg(&data).arg(&kept).status()?;
    ensure!(copied.success(), "etcd's data is copied");
    site.etcd.start_server(0);
    site.etcd.ready();
    for host in &hosts {
        host.ok(["controller", "start", "local"])?;
    }
    site.host(0)?.ok(["add-model", "after"])?;
    for host in &hosts {
        until("both have it", || Ok(models(host)? == ["after", "before"]))?;
    }

    site.etcd.kill(0);
    fs::remove_dir_all(&data)?;
    fs::rename(&kept, &data)?;
    site.etcd.start_server(0);
    site.etcd.ready();
    let error = set_back(earlier.position.0);
    for host in &hosts {
        until("a controller that runs ends with the error", || Ok(controller_log(host)?.contains(&error)))?;
        // The first attempts may come before its end.
        until("it does not start again", || {
            let started = host.run(["controller", "start", "local"])?;
            Ok(started.code == Some(1)
                && started.stderr.contains(&format!("the controller did not start: {error}"))
                && started.stderr.contains("begin a new set with 'bootstrap --restore'"))
        })?;
    }
    ensure!(end_of_log(&site.etcd)? == earlier, "nothing was written into the log");

    // The way out of the document, with all that was acknowledged.
    let second = site.host(1)?;
    let log = site.etcd.url().to_string().replace("/periapt", "/anew");
    let place = "data/controllers/local/controller";
    second.ok(["bootstrap", "anew", "--no-agent", "--member", "one", "--log", &log, "--restore", place])?;
    second.ok(["switch", "anew:after"])?;
    ensure!(models(second)? == ["after", "before"], "the new set has all");
    second.ok(["add-model", "more"])?;
    Ok(())
}
