//! Transactions without a log, to compare one with.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};

use super::TestEtcd;

impl TestEtcd {
    /// Puts values under new keys, one after the other, for this time. Returns how many in a second.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn puts_a_second(
        &self,
        mut values: impl Iterator<Item = Vec<u8>>,
        lasting: Duration,
    ) -> anyhow::Result<f64> {
        let url = self.url();
        let endpoint = url.endpoints.first().context("an endpoint")?;
        let mut client = Client::connect([endpoint], None).await?;
        let (began, mut done) = (Instant::now(), 0_u32);
        while began.elapsed() < lasting
            && let Some(value) = values.next()
        {
            let key = format!("bare/{done:020}");
            let put = Txn::new()
                .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
                .and_then([TxnOp::put(key, value, None)]);
            client.txn(put).await?;
            done += 1;
        }
        Ok(f64::from(done) / began.elapsed().as_secs_f64())
    }

    /// Returns the size of the largest server's database, in bytes.
    ///
    /// # Errors
    /// A server does not answer.
    pub async fn database_bytes(&self) -> anyhow::Result<i64> {
        let mut largest = 0;
        for endpoint in &self.url().endpoints {
            let mut client = Client::connect([endpoint], None).await?;
            largest = largest.max(client.status().await?.db_size());
        }
        Ok(largest)
    }
}
