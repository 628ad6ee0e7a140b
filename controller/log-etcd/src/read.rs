//! Reading entries.

use bytes::{Bytes, BytesMut};
use etcd_client::{GetOptions, KeyValue, Txn, TxnOp, TxnOpResponse};
use periapt_host_api::{Digest, Revision};
use periapt_log::{LogError, StoredEntry};

use crate::{
    answers::number,
    failure::Failure,
    shared::Shared,
    value::{PART, Stored, hex},
};

/// The number of entries of a page that is known to fit into one answer, whatever their size.
pub(crate) const SAFE_PAGE: usize = 16;

/// The most entries of a page.
const MAX_PAGE: usize = 256;

/// The bytes that a page should have.
const PAGE_BYTES: usize = 4 << 20;

/// Some entries in order.
pub(crate) struct Page {
    pub(crate) entries: Vec<StoredEntry>,
    /// etcd's revision at which the page was read.
    pub(crate) revision: i64,
    /// The number of entries that the next page should have.
    pub(crate) next: usize,
}

impl Shared {
    /// Reads entries after a position, at most `count`. The read is linearizable.
    pub(crate) async fn page(&self, after: u64, count: usize) -> Result<Page, LogError> {
        let first = after.saturating_add(1);
        let mut count = count.clamp(1, MAX_PAGE);
        let found = loop {
            let range = GetOptions::new()
                .with_range(self.keys.behind_entries())
                .with_limit(i64::try_from(count).unwrap_or(1));
            let found = self
                .call(PAGE_BYTES, |mut member| {
                    let read = Txn::new().and_then([
                        TxnOp::get(self.keys.trimmed(), None),
                        TxnOp::get(self.keys.entry(first), Some(range.clone())),
                    ]);
                    async move { member.kv.txn(read).await }
                })
                .await;
            match found {
                Err(Failure::AnswerTooLarge) if count > SAFE_PAGE => count = SAFE_PAGE,
                Err(failure) => return Err(failure.into()),
                Ok(found) => break found,
            }
        };
        let revision = found.header().map_or(0, etcd_client::ResponseHeader::revision);
        let mut answers = found.op_responses().into_iter();
        let (Some(TxnOpResponse::Get(trimmed)), Some(TxnOpResponse::Get(mut range))) =
            (answers.next(), answers.next())
        else {
            return Err(LogError::Damaged("etcd's answer has another form".into()));
        };
        let trimmed = number("trimmed", trimmed.kvs().first().cloned())?;
        if after < trimmed {
            return Err(LogError::Trimmed(Revision(trimmed)));
        }
        let found = range.take_kvs();
        let bytes: usize = found.iter().map(|found| found.value().len()).sum();
        let next = PAGE_BYTES.checked_div(bytes / found.len().max(1)).unwrap_or(MAX_PAGE);
        let mut entries = Vec::with_capacity(found.len());
        for (position, found) in (first..).zip(found) {
            if self.keys.position(found.key()) != Some(position) {
                return Err(LogError::Damaged(format!("position {position} is missing")));
            }
            entries.push(self.entry(position, found).await?);
        }
        Ok(Page { entries, revision, next: next.clamp(SAFE_PAGE, MAX_PAGE) })
    }

    pub(crate) async fn read(&self, after: u64, max_bytes: usize) -> Result<Vec<StoredEntry>, LogError> {
        let (mut all, mut bytes, mut last, mut count) = (Vec::new(), 0_usize, after, SAFE_PAGE);
        loop {
            let page = match self.page(last, count).await {
                // The entries up to here were there when the call began.
                Err(LogError::Trimmed(_)) if !all.is_empty() => return Ok(all),
                page => page?,
            };
            if page.entries.is_empty() {
                return Ok(all);
            }
            for entry in page.entries {
                bytes = bytes.saturating_add(entry.bytes.len());
                if !all.is_empty() && bytes > max_bytes {
                    return Ok(all);
                }
                last = entry.position.0;
                all.push(entry);
            }
            count = page.next;
        }
    }

    /// Returns the entry of a stored value, with all of its parts.
    pub(crate) async fn entry(&self, position: u64, found: KeyValue) -> Result<StoredEntry, LogError> {
        let (_, value) = found.into_key_value();
        let bytes = match Stored::decode(position, value)? {
            Stored::Inline(bytes) => bytes,
            Stored::Parts { length, digest } => self.parts(position, length, digest).await?,
        };
        Ok(StoredEntry { position: Revision(position), bytes })
    }

    async fn trimmed(&self) -> Result<u64, LogError> {
        let found =
            self.call(0, |mut member| async move { member.kv.get(self.keys.trimmed(), None).await }).await?;
        number("trimmed", found.kvs().first().cloned())
    }

    async fn parts(&self, position: u64, length: usize, digest: [u8; 32]) -> Result<Bytes, LogError> {
        let (mut entry, name) = (BytesMut::with_capacity(length), hex(&digest));
        for number in 0..length.div_ceil(PART) {
            let key = self.keys.part(position, &name, number);
            let found = self
                .call(PART, |mut member| {
                    let key = key.clone();
                    async move { member.kv.get(key, None).await }
                })
                .await?;
            match found.kvs().first() {
                Some(part) => entry.extend_from_slice(part.value()),
                None => {
                    let trimmed = self.trimmed().await?;
                    return Err(if position <= trimmed {
                        LogError::Trimmed(Revision(trimmed))
                    } else {
                        LogError::Damaged(format!("a part of position {position} is missing"))
                    });
                }
            }
        }
        let entry = entry.freeze();
        if *Digest::of(&entry).as_bytes() != digest {
            return Err(LogError::Damaged(format!("the parts of position {position} are others")));
        }
        Ok(entry)
    }
}
