//! Reads of records: log lines and the journal.

mod journal;

use std::sync::Arc;

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    logs::{LogLine, LogQuery},
};
use periapt_model::{RecordBody, RecordKind};
use periapt_store::{Order, Record, RecordPosition, Store, StoreError, codec, key};

pub(crate) use journal::{JournalReader, newest};

/// The number of records in one read.
const PAGE: usize = 512;
/// The most lines of `tail`, which are collected in memory.
const MAX_TAIL: usize = 10_000;
/// The number of lines without `tail` and `replay`.
const DEFAULT_TAIL: usize = 10;
/// The most records that `tail` reads back to find matching lines.
const MAX_LOOKED_AT: usize = 200_000;

/// A filter of log lines by a query.
#[derive(Debug, Clone)]
pub(crate) struct LogFilter(LogQuery);

impl LogFilter {
    pub(crate) fn new(query: LogQuery) -> Self {
        Self(query)
    }

    fn lines(&self, records: &[Record]) -> Vec<LogLine> {
        records.iter().filter_map(log_line).filter(|line| self.0.admits(line)).collect()
    }

    /// Returns the number of present lines to send, or none for all.
    fn tail(&self) -> Option<usize> {
        match (self.0.tail, self.0.replay) {
            (Some(tail), _) => Some(usize::try_from(tail).unwrap_or(MAX_TAIL).min(MAX_TAIL)),
            (None, true) => None,
            (None, false) => Some(DEFAULT_TAIL),
        }
    }
}

fn log_line(record: &Record) -> Option<LogLine> {
    match codec::body(record) {
        Ok(RecordBody::Log(line)) => Some(line),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "a log line cannot be read");
            None
        }
    }
}

/// A reader of one model's log, page by page.
pub(crate) struct LogReader {
    prefix: Vec<u8>,
    filter: LogFilter,
    after: Option<RecordPosition>,
    started: bool,
}

impl LogReader {
    pub(crate) fn new(model: &ModelUuid, filter: LogFilter) -> Self {
        let prefix = key::record_prefix(model, RecordKind::Log, "");
        Self { prefix, filter, after: None, started: false }
    }

    /// Returns the next matching lines, the oldest first, or none when all present lines are read.
    pub(crate) async fn page(&mut self, store: Arc<dyn Store>) -> Result<Option<Vec<LogLine>>, StoreError> {
        if !self.started {
            self.started = true;
            if let Some(tail) = self.filter.tail() {
                return self.newest(&*store, tail).await.map(Some);
            }
        }
        let order = Order::OldestFirst { after: self.after };
        let records = store.records(&self.prefix, order, PAGE).await?;
        let Some(last) = records.last() else { return Ok(None) };
        self.after = Some(last.position);
        Ok(Some(self.filter.lines(&records)))
    }

    /// Returns the newest matching lines. The next page continues after the newest line of all.
    async fn newest(&mut self, store: &dyn Store, tail: usize) -> Result<Vec<LogLine>, StoreError> {
        let (mut lines, mut before, mut looked_at) = (Vec::new(), None, 0);
        while looked_at == 0 || (lines.len() < tail && looked_at < MAX_LOOKED_AT) {
            let records = store.records(&self.prefix, Order::NewestFirst { before }, PAGE).await?;
            self.after = self.after.or(records.first().map(|record| record.position));
            before = records.last().map(|record| record.position);
            looked_at += records.len();
            lines.extend(self.filter.lines(&records));
            if records.len() < PAGE {
                break;
            }
        }
        lines.truncate(tail);
        lines.reverse();
        Ok(lines)
    }
}

/// Returns the refusal for records that cannot be read.
pub(crate) fn unreadable(error: &StoreError) -> Refusal {
    Refusal::new(ErrorCode::StorageUnavailable, error.to_string())
}
