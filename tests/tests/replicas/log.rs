//! The log of controllers in etcd, as tests read it and write into it.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use periapt_host_api::{Digest, LEVEL, Level, Revision, StoreId};
use periapt_log::{Announcement, Content, Entry, EntryId, Log as _, LogError, LogHead};
use periapt_log_etcd::{EtcdLog, EtcdOptions, EtcdUrl, OpenError, testing::TestEtcd};
use uuid::Uuid;

use crate::site::UNTIL;

/// The size in bytes of an entry that fills etcd.
const LARGE: usize = 300_000;

/// The size in bytes of a value that takes room. etcd takes values of a megabyte and a half at most.
const TAKEN: usize = 1 << 20;

/// The longest wait for etcd to take such a value.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// The prefix of a log that fills etcd.
const FILLER: &str = "filler";

/// Does some work with a log, in a runtime of its own.
pub(crate) fn done<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(UNTIL, work).await? })
}

/// Returns the options of a log.
pub(crate) fn options(url: EtcdUrl) -> EtcdOptions {
    EtcdOptions { url, tls: None, fresh_id: StoreId(Uuid::from_u128(7)) }
}

/// Returns the place of a log in servers of etcd, below a prefix.
fn below(etcd: &TestEtcd, prefix: &str) -> EtcdUrl {
    EtcdUrl { prefix: prefix.to_owned(), ..etcd.url() }
}

/// Opens the log that controllers have.
async fn opened(etcd: &TestEtcd) -> anyhow::Result<EtcdLog> {
    Ok(EtcdLog::open_present(&options(etcd.url())).await?)
}

/// Returns true if there is no log below a prefix.
pub(crate) fn is_absent(etcd: &TestEtcd, prefix: &str) -> anyhow::Result<bool> {
    let options = options(below(etcd, prefix));
    done(async {
        match EtcdLog::open_present(&options).await {
            Ok(_) => Ok(false),
            Err(OpenError::Absent(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    })
}

/// Reads the whole log, each entry of which follows the one before, in a term that is never lower. Returns its end.
pub(crate) fn end_of_log(etcd: &TestEtcd) -> anyhow::Result<LogHead> {
    done(async { head_of(&opened(etcd).await?).await })
}

async fn head_of(log: &EtcdLog) -> anyhow::Result<LogHead> {
    let mut head = LogHead::empty(log.id());
    loop {
        let entries = match log.read(head.position, 4 << 20).await {
            // A controller that leads for long enough trims what is on two disks.
            Err(LogError::Trimmed(trimmed)) => {
                head = head_at(log, trimmed).await?;
                continue;
            }
            entries => entries?,
        };
        if entries.is_empty() {
            return Ok(head);
        }
        for stored in entries {
            let entry = Entry::decode(stored.position, &stored.bytes)?;
            head = head.after(stored.position, &entry, &stored.bytes)?;
        }
    }
}

/// Returns the end of the part of a log that was trimmed, as the entry after it names it.
async fn head_at(log: &EtcdLog, trimmed: Revision) -> anyhow::Result<LogHead> {
    let next =
        log.read(trimmed, 1).await?.into_iter().next().context("an entry after those that were trimmed")?;
    let Entry { term, at, level, previous: digest, .. } = Entry::decode(next.position, &next.bytes)?;
    Ok(LogHead { log: log.id(), position: trimmed, term, at, level, digest })
}

/// Leads a log that no controller leads any more, and appends an entry of a level that no program knows yet.
pub(crate) fn append_newer_entry(etcd: &TestEtcd) -> anyhow::Result<()> {
    let newer = Announcement { member: "newer".to_owned(), level: Level(LEVEL.0 + 1), ..nowhere() };
    append_term_of(etcd, newer)
}

/// Leads a log that no controller leads any more as one with other keys, and appends the entry that begins its term.
pub(crate) fn append_foreign_term(etcd: &TestEtcd) -> anyhow::Result<()> {
    let keys = Some(Digest::of(b"foreign"));
    append_term_of(etcd, Announcement { member: "foreign".to_owned(), keys, level: LEVEL, ..nowhere() })
}

/// Returns the announcement of a controller that nobody reaches.
fn nowhere() -> Announcement {
    Announcement { url: "https://127.0.0.1:1".to_owned(), ..Announcement::default() }
}

/// Leads a log that no controller leads any more, and appends the entry that begins the term.
fn append_term_of(etcd: &TestEtcd, announcement: Announcement) -> anyhow::Result<()> {
    done(async {
        let log = opened(etcd).await?;
        let level = announcement.level;
        let leadership = log.acquire(announcement.clone()).await?;
        let (head, term) = (head_of(&log).await?, leadership.term());
        let (id, content) = (EntryId(Uuid::from_u128(8)), Content::Term(announcement));
        let entry = Entry { id, term, at: head.at, level, previous: head.digest, content };
        Ok(log.append(term, Revision(head.position.0 + 1), entry.encode()?).await?)
    })
}

/// Trims all entries that the log has, in the name of the controller that leads.
pub(crate) fn trim_all(etcd: &TestEtcd) -> anyhow::Result<()> {
    done(async {
        let log = opened(etcd).await?;
        let leader = log.leaders().next().await.context("the leaders of the log")??;
        let term = leader.context("a controller that leads")?.term;
        Ok(log.trim(term, log.end().await?).await?)
    })
}

/// Fills etcd up to its quota, with the entries of another log.
pub(crate) fn fill(etcd: &TestEtcd) -> anyhow::Result<()> {
    done(async {
        let log = EtcdLog::open(&options(below(etcd, FILLER))).await?;
        let filler = Announcement { member: FILLER.to_owned(), ..Announcement::default() };
        let leadership = log.acquire(filler).await?;
        let mut position = Revision(1);
        loop {
            match log.append(leadership.term(), position, vec![7_u8; LARGE].into()).await {
                Ok(()) => position.0 += 1,
                Err(error) if error.is_temporary() => {}
                Err(error) => {
                    ensure!(error.to_string().contains("NOSPACE"), "{error}");
                    return Ok(());
                }
            }
        }
    })
}

/// Makes room in an etcd that [`fill`] has filled, as an operator does. The alarm stays.
pub(crate) fn make_room(etcd: &TestEtcd) -> anyhow::Result<()> {
    done(etcd.make_room(FILLER))
}

/// Puts a large value through a server of etcd, if it answers soon.
pub(crate) fn take_room(etcd: &TestEtcd, through: usize) -> anyhow::Result<()> {
    done(async {
        // The server that leads may be the one which ends, and the others do not answer then.
        let _ = tokio::time::timeout(TAKEN_WITHIN, etcd.take_room(through, TAKEN)).await;
        Ok(())
    })
}

/// Raises the alarm of each server of etcd that it has no room.
pub(crate) fn raise_alarms(etcd: &TestEtcd) -> anyhow::Result<()> {
    done(etcd.raise_alarms())
}

/// Disarms all alarms of etcd, as an operator does.
pub(crate) fn disarm_alarms(etcd: &TestEtcd) -> anyhow::Result<()> {
    done(etcd.disarm_alarms())
}
