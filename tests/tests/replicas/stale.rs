//! Controllers that etcd does not answer.

use anyhow::ensure;
use periapt_tests::Installation;

use crate::site::{Site, controller, models, until};

/// Returns true if a host's controller says that it is not up to date with its log.
pub(crate) fn is_stale(host: &Installation) -> anyhow::Result<bool> {
    Ok(controller(host)?.pointer("/details/stale").is_some_and(|stale| stale == true))
}

#[test]
fn without_a_majority_of_etcd_nothing_old_is_shown_and_all_goes_on_with_it() -> anyhow::Result<()> {
    let mut site = Site::of_three(&[])?;
    site.host(0)?.ok(["add-model", "a"])?;
    for host in &site.hosts {
        until("the same model everywhere", || Ok(models(host)? == ["a"]))?;
    }
    // One of the two is cut off without a word, the other one is gone.
    site.etcd.pause(1);
    site.etcd.kill(2);
    for host in &site.hosts {
        until("no controller is up to date", || is_stale(host))?;
        let listed = host.ok(["controllers", "--format", "json"])?;
        ensure!(listed.contains("\"status\":\"stale\""), "{listed}");
    }
    site.etcd.resume(1);
    site.etcd.start_server(2);
    for host in &site.hosts {
        until("all are up to date", || Ok(!is_stale(host)? && models(host)? == ["a"]))?;
    }
    site.host(2)?.ok(["add-model", "b"])?;
    ensure!(models(site.host(2)?)? == ["a", "b"], "all goes on");
    Ok(())
}
