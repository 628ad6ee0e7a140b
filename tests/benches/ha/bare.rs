//! The entries that the controllers wrote, for a bare loop of etcd.

use periapt_host_api::Revision;
use periapt_log::{Content, Entry, Log as _, LogError};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::site::Site;

/// Entries of the log.
pub(crate) struct Entries {
    /// The size of each in its stored form, which is compressed.
    pub(crate) sizes: Vec<usize>,
    /// The bytes of all keys, values and records in them, as a store takes them.
    pub(crate) content: usize,
}

impl Entries {
    /// Reads the entries after a position, up to another one, as far as they were not trimmed.
    pub(crate) async fn of(site: &Site, after: Revision, through: Revision) -> anyhow::Result<Self> {
        let log = site.log().await?;
        let entries = match log.read(after, usize::MAX).await {
            Err(LogError::Trimmed(first)) => log.read(first, usize::MAX).await?,
            entries => entries?,
        };
        let mut read = Self { sizes: Vec::new(), content: 0 };
        for entry in entries.iter().take_while(|entry| entry.position <= through) {
            read.sizes.push(entry.bytes.len());
            read.content += bytes(&Entry::decode(entry.position, &entry.bytes)?.content);
        }
        Ok(read)
    }

    /// Returns the bytes of all entries in their stored form.
    pub(crate) fn stored(&self) -> usize {
        self.sizes.iter().sum()
    }
}

/// Returns the bytes of all keys, values and records of an entry.
fn bytes(content: &Content) -> usize {
    match content {
        Content::Term(_) => 0,
        Content::Batch { entities, records } => {
            let entities = entities.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
            let records = records.iter().map(|record| record.prefix.len() + record.body.len());
            entities.chain(records).sum()
        }
    }
}

/// Returns values of these sizes, again and again, which cannot be compressed, as those of a stored entry.
pub(crate) fn noise(sizes: &[usize]) -> impl Iterator<Item = Vec<u8>> {
    let random = SystemRandom::new();
    sizes.iter().cycle().map_while(move |size| {
        let mut bytes = vec![0; *size];
        random.fill(&mut bytes).ok().map(|()| bytes)
    })
}
