//! Three controllers of one log: commands through any of them, the death of the one that leads, its return, and rounds of
//! faults under load.

mod bounded;
mod callers;
mod contested;
mod damaged;
mod dialogue;
mod disks;
mod documented;
mod encrypted;
mod faults;
mod full;
mod hooks;
mod lengths;
mod line;
mod log;
mod migrating;
mod mixed;
mod objects;
mod peer;
mod refused;
mod remembered;
mod removal;
mod restoring;
mod rolling;
mod rounds;
mod services;
mod set_back;
mod shop;
mod site;
mod stale;
mod stores;
mod story;
mod undone;
mod upgrading;
mod uploads;
mod witness;

use anyhow::ensure;
use rustix::process::Signal;

use self::site::{Site, archives, blobs, end, models, until};

#[test]
fn three_controllers_serve_one_state_and_go_on_when_the_leading_one_is_killed() -> anyhow::Result<()> {
    let site = Site::of_three(&["--agent-name", "first"])?;
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        site.host(number)?.ok(["add-model", name])?;
        ensure!(models(site.host(number)?)?.contains(&name.to_owned()), "{name} is seen by its sender");
    }
    for host in &site.hosts {
        until("the same models everywhere", || Ok(models(host)? == ["a", "b", "c"]))?;
    }
    until("all members are known", || Ok(site.leader(2)? == Some(0)))?;

    // The charm arrives at a follower, and comes to all; the agent's own controller is the one that is killed.
    let second = site.host(1)?;
    second.ok(["switch", "a"])?;
    second.deploy("mysql", [])?;
    second.wait_for(["model"])?;
    for host in &site.hosts {
        until("each has the charm's archive", || Ok(archives(host)? == 1))?;
    }

    end(site.host(0)?, Signal::KILL)?;
    until("another controller leads", || Ok(matches!(site.leader(1)?, Some(1 | 2))))?;
    site.host(1)?.ok(["add-model", "d"])?;
    site.host(2)?.ok(["add-model", "e"])?;
    second.ok(["add-unit", "-m", "a", "mysql"])?;
    second.wait_for(["unit", "-m", "a", "mysql/1"])?;

    // It comes back without its blobs, and fetches them.
    std::fs::remove_dir_all(blobs(site.host(0)?))?;
    site.host(0)?.ok(["controller", "start", "local"])?;
    until("it has fetched the charm's archive", || Ok(archives(site.host(0)?)? == 1))?;
    until("it has come back", || Ok(models(site.host(0)?)? == ["a", "b", "c", "d", "e"]))?;
    site.host(0)?.ok(["add-model", "f"])?;
    until("it follows", || Ok(matches!(site.leader(0)?, Some(1 | 2))))?;
    drop(site.etcd);
    Ok(())
}
