//! The room in etcd: load that takes it, the alarm for the lack of it, and how an operator makes some.

use anyhow::Context as _;
use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client, CompactionOptions, DeleteOptions};

use super::TestEtcd;

/// The key of values that take room. No log has it.
const KEY: &str = "room/taken";

impl TestEtcd {
    /// Puts a value of so many bytes through a server. It takes room in the database of each server, until etcd is compacted.
    ///
    /// # Errors
    /// The server does not answer, or has no room.
    pub async fn take_room(&self, through: usize, bytes: usize) -> anyhow::Result<()> {
        let url = self.url();
        let endpoint = url.endpoints.get(through).context("an endpoint")?;
        Client::connect([endpoint], None).await?.put(KEY, vec![7_u8; bytes], None).await?;
        Ok(())
    }

    /// Raises the alarm NOSPACE of each server, as etcd does when a server has reached its quota.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn raise_alarms(&self) -> anyhow::Result<()> {
        for endpoint in &self.url().endpoints {
            let mut client = Client::connect([endpoint], None).await?;
            let member = client.status().await?.header().context("a header")?.member_id();
            let mut of_member = AlarmOptions::new();
            of_member.with_member(member);
            client.alarm(AlarmAction::Activate, AlarmType::Nospace, Some(of_member)).await?;
        }
        Ok(())
    }

    /// Disarms all alarms, as `etcdctl alarm disarm` does.
    ///
    /// # Errors
    /// No server answers.
    pub async fn disarm_alarms(&self) -> anyhow::Result<()> {
        let mut client = Client::connect(self.url().endpoints, None).await?;
        let raised = client.alarm(AlarmAction::Get, AlarmType::None, None).await?;
        for alarm in raised.alarms() {
            let mut of_member = AlarmOptions::new();
            of_member.with_member(alarm.member_id());
            client.alarm(AlarmAction::Deactivate, alarm.alarm(), Some(of_member)).await?;
        }
        Ok(())
    }

    /// Deletes the keys below a prefix, compacts etcd, and defragments one server after the other, as an operator does whose
    /// etcd is full of what another program has written.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn make_room(&self, prefix: &str) -> anyhow::Result<()> {
        let url = self.url();
        let mut client = Client::connect(&url.endpoints, None).await?;
        let below = DeleteOptions::new().with_prefix();
        let deleted = client.delete(format!("{prefix}/"), Some(below)).await?;
        let revision = deleted.header().context("a header")?.revision();
        client.compact(revision, Some(CompactionOptions::new().with_physical())).await?;
        for endpoint in &url.endpoints {
            Client::connect([endpoint], None).await?.defragment().await?;
        }
        Ok(())
    }
}
