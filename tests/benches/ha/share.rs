//! A share of a processor for one controller, as if its machine had so much.

use anyhow::{Context as _, bail};
use periapt_helper::{CgroupLimits, Cgroups};
use periapt_tests::{Installation, parts};
use rustix::process::Pid;

/// The share, in thousandths of a processor. Followers, servers of etcd and clients find more than they need beside it, so that
/// it alone bounds the commits.
pub(crate) const SHARE: u32 = 350;

/// Cgroups with that share. The processes in them must have ended when it is dropped.
pub(crate) struct Share(Cgroups);

impl Share {
    /// Makes the cgroups. It is an error if this host does not keep the share.
    pub(crate) fn create() -> anyhow::Result<Self> {
        // Nothing but the processor is bounded.
        let limits = CgroupLimits { memory: 1 << 40, processes: 1 << 20, cpu: Some(SHARE) };
        let (cgroups, missing) = Cgroups::create(&limits);
        if let Some(missing) = missing.first() {
            bail!("{}: {}; {}", missing.bound, missing.reason, missing.remedy);
        }
        Ok(Self(cgroups))
    }

    /// Gives the share to the controller of a host.
    pub(crate) fn give(&self, host: &Installation) -> anyhow::Result<()> {
        for (process, _) in parts(host)? {
            let process = Pid::from_raw(process.try_into()?).context("a process")?;
            self.0.add(process)?;
        }
        Ok(())
    }
}
