//! The entries that the controllers wrote, for a bare loop of etcd.

use periapt_host_api::{Revision, StoreId};
use periapt_log::Log as _;
use periapt_log_etcd::{EtcdLog, EtcdOptions};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::site::Site;

/// Returns the sizes of the entries after a position, in their stored form.
pub(crate) async fn sizes(site: &Site, after: Revision, through: Revision) -> anyhow::Result<Vec<usize>> {
    let options = EtcdOptions { url: site.etcd()?.url(), tls: None, fresh_id: StoreId(uuid::Uuid::nil()) };
    let log = EtcdLog::open(&options).await?;
    let entries = log.read(after, usize::MAX).await?;
    let of_measurement = entries.iter().filter(|entry| entry.position <= through);
    Ok(of_measurement.map(|entry| entry.bytes.len()).collect())
}

/// Returns values of these sizes, again and again, which cannot be compressed, as those of a stored entry.
pub(crate) fn noise(sizes: &[usize]) -> impl Iterator<Item = Vec<u8>> {
    let random = SystemRandom::new();
    sizes.iter().cycle().map_while(move |size| {
        let mut bytes = vec![0; *size];
        random.fill(&mut bytes).ok().map(|()| bytes)
    })
}
