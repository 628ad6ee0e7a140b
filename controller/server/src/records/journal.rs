//! Pages of the journal. The bytes of one page are bounded, however large the records are and however many units the
//! model has.

use std::{fmt, str::FromStr};

use periapt_host_api::{
    ModelUuid, Refusal, Revision, UnitName,
    api::{Journal, JournalEntry, JournalQuery},
    journal::{HookOutcome, JournalRecord},
};
use periapt_model::{ModelState, RecordBody, RecordKind};
use periapt_store::{Order, Record, RecordPosition, Store, codec, key};

use super::unreadable;

/// The most hooks of one unit, besides older failed ones; and of each unit in a query for all units.
const MAX_HOOKS: usize = 50;
const MAX_HOOKS_OF_EACH: usize = 10;
/// A page ends when so many bytes of records are read...
const PAGE_BYTES: usize = 1 << 20;
/// ... or after so many reads of the store.
const PAGE_READS: usize = 256;
/// The number of records in one read. A page may exceed its bound by so many records.
const AT_A_TIME: usize = 4;

/// The end of a page: a unit, with the hooks of it that are already given.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    unit: UnitName,
    given: Option<(RecordPosition, usize)>,
}

/// The hooks that are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalSelection {
    /// All of them.
    All,
    /// Only those that failed: they are older than the newest few.
    Failed,
}

/// A reader of one page.
pub(crate) struct JournalReader<'a> {
    store: &'a dyn Store,
    model: ModelUuid,
    query: &'a JournalQuery,
    page: Journal,
    bytes: usize,
    reads: usize,
}

impl<'a> JournalReader<'a> {
    pub(crate) fn new(store: &'a dyn Store, model: ModelUuid, query: &'a JournalQuery) -> Self {
        Self { store, model, query, page: Journal::default(), bytes: 0, reads: 0 }
    }

    /// Returns the page of the query.
    ///
    /// # Errors
    /// The continuation is invalid, or the store cannot be read.
    pub(crate) async fn page(mut self, state: &ModelState) -> Result<Journal, Refusal> {
        let from: Option<Cursor> = match &self.query.after {
            Some(text) => Some(text.parse().map_err(|()| unknown(text))?),
            None => None,
        };
        let (units, most) = match &self.query.unit {
            // A removed unit may still have a journal.
            Some(unit) => (vec![unit.clone()], MAX_HOOKS),
            None => (state.units().map(|unit| unit.name.clone()).collect(), MAX_HOOKS_OF_EACH),
        };
        let begins = from.is_none();
        let first = from.as_ref().map(|from| &from.unit);
        for unit in units.iter().filter(|unit| first.is_none_or(|first| *unit >= first)) {
            let given = from.as_ref().filter(|from| from.unit == *unit).and_then(|from| from.given);
            if let Some(end) = self.unit(unit, given, most).await? {
                self.page.next = Some(end.to_string());
                break;
            }
        }
        match &self.query.unit {
            Some(unit) if begins && self.bytes == 0 && state.unit(unit).is_none() => {
                Err(Refusal::not_found(format!("unit {unit} not found")).about(format!("unit {unit}")))
            }
            _ => Ok(self.page),
        }
    }

    /// Adds a unit's hooks, the newest first. Returns the end of the page if it is full.
    async fn unit(
        &mut self,
        unit: &UnitName,
        given: Option<(RecordPosition, usize)>,
        most: usize,
    ) -> Result<Option<Cursor>, Refusal> {
        let prefix = key::record_prefix(&self.model, RecordKind::Journal, &unit.to_string());
        let (mut before, mut count) = given.map_or((None, 0), |(position, count)| (Some(position), count));
        // A query for one unit also gives all older failed hooks.
        let failed_too = self.query.unit.is_some();
        while count < most || failed_too {
            if self.bytes >= PAGE_BYTES || self.reads >= PAGE_READS {
                let given = before.map(|position| (position, count));
                return Ok(Some(Cursor { unit: unit.clone(), given }));
            }
            let wanted = if count < most { AT_A_TIME.min(most - count) } else { AT_A_TIME };
            let records = self.store.records(&prefix, Order::NewestFirst { before }, wanted).await;
            let records = records.map_err(|error| unreadable(&error))?;
            self.reads += 1;
            for record in &records {
                self.bytes += record.body.len();
                self.add(
                    unit,
                    record,
                    if count < most { JournalSelection::All } else { JournalSelection::Failed },
                );
                (before, count) = (Some(record.position), count + 1);
            }
            if records.len() < wanted {
                break;
            }
        }
        Ok(None)
    }

    /// Adds a hook, if it is one of those to give.
    fn add(&mut self, unit: &UnitName, record: &Record, selection: JournalSelection) {
        let Some(hook) = hook(unit, record) else { return };
        if selection == JournalSelection::Failed && !matches!(hook.outcome, HookOutcome::Failed { .. }) {
            return;
        }
        if self.query.seq.is_some_and(|seq| seq != hook.seq) {
            return;
        }
        let hook = if self.query.calls { hook } else { hook.without_calls() };
        let hook = if self.query.secrets { hook } else { hook.without_secrets() };
        let revision = record.position.revision;
        self.page.entries.push(JournalEntry::new(unit.clone(), revision, hook));
    }
}

/// Returns the newest hooks of a unit, the oldest first, without calls and secrets.
pub(crate) async fn newest(
    store: &dyn Store,
    model: &ModelUuid,
    unit: &UnitName,
    most: usize,
) -> Result<Vec<JournalRecord>, Refusal> {
    let prefix = key::record_prefix(model, RecordKind::Journal, &unit.to_string());
    let (mut hooks, mut before) = (Vec::new(), None);
    while hooks.len() < most {
        let wanted = AT_A_TIME.min(most - hooks.len());
        let records = store.records(&prefix, Order::NewestFirst { before }, wanted).await;
        let records = records.map_err(|error| unreadable(&error))?;
        before = records.last().map(|record| record.position);
        hooks.extend(records.iter().filter_map(|record| hook(unit, record)));
        if records.len() < wanted {
            break;
        }
    }
    hooks.reverse();
    Ok(hooks.into_iter().map(|hook| hook.without_calls().without_secrets()).collect())
}

fn hook(unit: &UnitName, record: &Record) -> Option<JournalRecord> {
    match codec::body(record) {
        Ok(RecordBody::Journal(hook)) => Some(*hook),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, %unit, "a journal record cannot be read");
            None
        }
    }
}

fn unknown(text: &str) -> Refusal {
    Refusal::bad_request(format!("query after={text}: no page ended there"))
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.unit)?;
        match self.given {
            Some((at, count)) => write!(f, "@{}.{}.{count}", at.revision.0, at.index),
            None => Ok(()),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (unit, given) = text.split_once('@').map_or((text, None), |(unit, given)| (unit, Some(given)));
        let unit = unit.parse().map_err(|_| ())?;
        let given = given.map(|given| {
            let mut numbers = given.split('.');
            let mut number = || numbers.next()?.parse::<u64>().ok();
            let (revision, index, count) = (Revision(number()?), number()?, number()?);
            let position = RecordPosition { revision, index: u32::try_from(index).ok()? };
            numbers.next().is_none().then_some((position, usize::try_from(count).ok()?))
        });
        match given {
            Some(None) => Err(()),
            given => Ok(Self { unit, given: given.flatten() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_is_read_back_and_nothing_else_is_one() {
        let position = RecordPosition { revision: Revision(7), index: 2 };
        for given in [None, Some((position, 3))] {
            let cursor = Cursor { unit: "my-sql/0".parse().unwrap(), given };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for text in
            ["", "mysql", "mysql/0@", "mysql/0@1.2", "mysql/0@1.2.3.4", "mysql/0@1.99999999999.1", "@1.2.3"]
        {
            assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
        }
    }
}
