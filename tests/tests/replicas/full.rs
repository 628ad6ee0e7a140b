//! An etcd that has reached its quota, under three controllers: what they say, and how an operator lets them go on.

use anyhow::ensure;
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::Installation;

use crate::{
    faults::controller_log,
    log::{disarm_alarms, end_of_log, fill, make_room},
    site::{HOSTS, Site, models, until},
};

/// The quota of each server, in bytes: the log of this test has a small part of it.
const QUOTA: &str = "--quota-backend-bytes=16777216";

/// Adds models through a host until a controller refuses one because etcd is full. Returns the name of that one.
fn refused(host: &Installation, member: &str) -> anyhow::Result<String> {
    let (mut tried, mut name) = (0, String::new());
    until("a command is refused with the reason", || {
        tried += 1;
        name = format!("refused-{member}-{tried}");
        let done = host.run(["add-model", &name, "--no-switch"])?;
        ensure!(done.code != Some(0), "a command was carried out in an etcd that is full: {done:?}");
        // It may have waited for a controller that led no more.
        Ok(["alarm NOSPACE", "'etcdctl alarm disarm'", "the request had no effect"]
            .iter()
            .all(|part| done.stderr.contains(part)))
    })?;
    Ok(name)
}

#[test]
fn an_etcd_that_has_reached_its_quota_stops_all_commands_until_an_operator_has_made_room()
-> anyhow::Result<()> {
    let etcd = TestEtcd::start_with(3, &[QUOTA]);
    let mut site = Site::bootstrapped_in(etcd, Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    site.join_on(Installation::empty()?, "three")?;
    site.host(0)?.ok(["add-model", "before"])?;
    for host in &site.hosts {
        until("the same model everywhere", || Ok(models(host)? == ["before"]))?;
    }

    let end = end_of_log(&site.etcd)?;

    fill(&site.etcd)?;
    let mut never = Vec::new();
    for (host, member) in site.hosts.iter().zip(HOSTS) {
        never.push(refused(host, member)?);
        until("a controller shows its models", || Ok(host.run(["models"])?.stdout.contains("before")))?;
    }
    let logs = site.hosts.iter().map(|host| controller_log(host)).collect::<anyhow::Result<String>>()?;
    ensure!(logs.contains("alarm NOSPACE"), "no log tells the reason: {logs}");

    make_room(&site.etcd)?;
    // The alarm stays until it is disarmed.
    never.push(refused(site.host(0)?, "with-room")?);
    disarm_alarms(&site.etcd)?;
    let mut shown = vec!["before".to_owned()];
    for (host, member) in site.hosts.iter().zip(HOSTS) {
        let mut tried = 0;
        until("commands are carried out", || {
            tried += 1;
            let name = format!("after-{member}-{tried}");
            let is_done = host.run(["add-model", &name, "--no-switch"])?.code == Some(0);
            if is_done {
                shown.push(name);
            }
            Ok(is_done)
        })?;
    }
    for host in &site.hosts {
        until("all controllers show what was acknowledged, and nothing that was refused", || {
            let models = models(host)?;
            ensure!(never.iter().all(|name| !models.contains(name)), "refused, and there: {models:?}");
            Ok(shown.iter().all(|name| models.contains(name)))
        })?;
    }
    ensure!(end_of_log(&site.etcd)?.position > end.position, "the log goes on");
    Ok(())
}
