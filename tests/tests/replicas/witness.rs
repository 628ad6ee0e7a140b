//! The log as the witness: it is read while clients are at work, before a controller trims it, and folded. So each request
//! that was acknowledged is in it once, a request that was sent after the answer to another one is behind that, and each
//! answer to a read is the state at a position that the controller may have shown.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use periapt_host_api::{ModelUuid, RequestId, Revision, StoreId, Timestamp};
use periapt_log::{Content, Entry, Log as _, LogError, LogHead, StoredEntry};
use periapt_log_etcd::{EtcdLog, EtcdUrl};
use periapt_model::entity::{AnswerKey, Entity, EntityKey, Model};
use periapt_store::{Batch, Record, RecordPosition, codec, key};

use crate::{
    callers::{Call, REGISTER, SETTING, Told},
    log::options,
    site::UNTIL,
};

/// The bytes of entries that are read at a time.
const READ_BYTES: usize = 4 << 20;
/// The pause between two looks at the end of the log.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The fold of a log.
pub(crate) struct Witness {
    pub(crate) head: LogHead,
    /// All entities at the head, in stored form: their values by their keys.
    pub(crate) entities: BTreeMap<Vec<u8>, Vec<u8>>,
    /// All records of the audit log up to the head, in stored form and in the order of their positions.
    pub(crate) audit: Vec<Record>,
    /// The models by name, each with the position from which on it is there.
    models: BTreeMap<String, (ModelUuid, u64)>,
    /// The values of the register, each with the position from which on it is shown.
    values: Vec<(u64, String)>,
    /// The positions at which each command of a request with an id was carried out.
    requests: BTreeMap<(RequestId, u32), Vec<u64>>,
}

impl Witness {
    fn of(log: StoreId) -> Self {
        Self {
            head: LogHead::empty(log),
            entities: BTreeMap::new(),
            audit: Vec::new(),
            models: BTreeMap::new(),
            // The register is empty before it is written.
            values: vec![(0, String::new())],
            requests: BTreeMap::new(),
        }
    }

    /// Reads a log until it is over, and then to its end.
    pub(crate) fn follow(url: EtcdUrl, is_over: &AtomicBool) -> anyhow::Result<Self> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
            let log = EtcdLog::open_present(&options(url)).await?;
            let (mut this, mut answered) = (Self::of(log.id()), Instant::now());
            loop {
                // What was appended before is read now.
                let is_last = is_over.load(Ordering::SeqCst);
                match log.read(this.head.position, READ_BYTES).await {
                    Ok(entries) if entries.is_empty() && is_last => return Ok(this),
                    Ok(entries) => {
                        answered = Instant::now();
                        if entries.is_empty() {
                            tokio::time::sleep(LOOK_EVERY).await;
                        }
                        entries.into_iter().try_for_each(|entry| this.fold(entry))?;
                    }
                    Err(error @ LogError::Unavailable(_)) => {
                        ensure!(answered.elapsed() < 2 * UNTIL, "{error}");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                    Err(error) => return Err(error).context("the log is read before it is trimmed"),
                }
            }
        })
    }

    /// Reads the log on to a position, which is not before the head.
    pub(crate) async fn read_to(&mut self, log: &EtcdLog, position: Revision) -> anyhow::Result<()> {
        ensure!(self.head.position <= position, "the log was read to {}", self.head.position);
        let began = Instant::now();
        while self.head.position < position {
            let entries = match log.read(self.head.position, READ_BYTES).await {
                Err(error) if error.is_temporary() && began.elapsed() < UNTIL => {
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
                entries => entries.context("the log is read before it is trimmed")?,
            };
            ensure!(!entries.is_empty(), "the log ends at {}, before {position}", self.head.position);
            let mut wanted = entries.into_iter().take_while(|entry| entry.position <= position);
            wanted.try_for_each(|entry| self.fold(entry))?;
        }
        Ok(())
    }

    /// Folds an entry, which follows the one before, in a term that is never lower.
    fn fold(&mut self, StoredEntry { position, bytes }: StoredEntry) -> anyhow::Result<()> {
        let entry = Entry::decode(position, &bytes)?;
        self.head = self.head.after(position, &entry, &bytes)?;
        let Content::Batch { entities, records } = entry.content else { return Ok(()) };
        let batch = Batch { entities, ..Batch::default() };
        for (key, entity) in codec::writes(&batch)?.puts {
            match (key, entity) {
                (EntityKey::Answer(AnswerKey { request, index, .. }), Some(_)) => {
                    self.requests.entry((request, index)).or_default().push(position.0);
                }
                (_, Some(Entity::Model(model))) => self.put(position.0, &model)?,
                _ => {}
            }
        }
        for (key, value) in batch.entities {
            match value {
                Some(value) => self.entities.insert(key, value),
                None => self.entities.remove(&key),
            };
        }
        for (index, record) in (0..).zip(records) {
            if record.prefix == key::AUDIT {
                // Stores keep microseconds.
                let at = Timestamp::from_microsecond(record.at.as_microsecond())?;
                let position = RecordPosition { revision: position, index };
                self.audit.push(Record { position, at, body: record.body });
            }
        }
        Ok(())
    }

    fn put(&mut self, position: u64, model: &Model) -> anyhow::Result<()> {
        let name = model.name.to_string();
        if name == REGISTER {
            let kept = serde_json::to_value(&model.settings.kept)?;
            let value = kept.get(SETTING).and_then(|value| value.as_str()).unwrap_or_default();
            if self.values.last().is_none_or(|(_, before)| before != value) {
                self.values.push((position, value.to_owned()));
            }
        }
        match self.models.get(&name) {
            Some((uuid, _)) if *uuid == model.uuid => {}
            Some((uuid, at)) => bail!("{name} was added as {uuid} at {at}, and again at {position}"),
            None => {
                self.models.insert(name, (model.uuid, position));
            }
        }
        Ok(())
    }

    /// Returns the names of all models at the end.
    pub(crate) fn models(&self) -> impl Iterator<Item = &String> {
        self.models.keys()
    }

    /// Checks what callers were told. Returns the numbers of acknowledged writes and of answered reads.
    pub(crate) fn check(&self, calls: &[Call]) -> anyhow::Result<(usize, usize)> {
        if let Some((id, positions)) = self.requests.iter().find(|(_, positions)| positions.len() != 1) {
            bail!("request {id:?} was carried out at {positions:?}");
        }
        self.check_order(calls)?;
        let (mut writes, mut reads) = (0, 0);
        for call in calls {
            let Call { floor, reached, told, .. } = call;
            match told {
                Told::Written(id) => {
                    let at =
                        self.at(*id).with_context(|| format!("acknowledged, and not in the log: {id}"))?;
                    ensure!(at <= *reached, "answered at {reached}, and carried out at {at}: {call:?}");
                    writes += 1;
                }
                Told::NotWritten(id) => {
                    ensure!(self.at(*id).is_none(), "said to have had no effect, and in the log: {id}");
                }
                Told::Doubtful(_) => {}
                Told::Value(value) => {
                    let is_shown = self.shown(value).any(|(from, to)| from <= *reached && *floor <= to);
                    ensure!(is_shown, "the register has this value at no such position: {call:?}");
                    reads += 1;
                }
                Told::Found(name) => {
                    let is_there = self.models.get(name).is_some_and(|(_, at)| at <= reached);
                    ensure!(is_there, "there is no such model at these positions: {call:?}");
                    reads += 1;
                }
                Told::Missing(name) => {
                    let is_missing = self.models.get(name).is_none_or(|(_, at)| at > floor);
                    ensure!(is_missing, "there is such a model at these positions: {call:?}");
                    reads += 1;
                }
            }
        }
        Ok((writes, reads))
    }

    /// Checks that a write which was acknowledged before another one was sent stands before it in the log.
    fn check_order(&self, calls: &[Call]) -> anyhow::Result<()> {
        let written = calls.iter().filter_map(|call| match call.told {
            Told::Written(id) => Some((call, self.at(id)?)),
            _ => None,
        });
        let mut by_answer: Vec<_> = written.collect();
        let mut by_call = by_answer.clone();
        by_answer.sort_by_key(|(call, _)| call.returned);
        by_call.sort_by_key(|(call, _)| call.called);
        let (mut answered, mut highest) = (by_answer.into_iter().peekable(), 0_u64);
        for (call, position) in by_call {
            while let Some((_, earlier)) = answered.next_if(|(earlier, _)| earlier.returned < call.called) {
                highest = highest.max(earlier);
            }
            ensure!(position > highest, "sent after {highest} was answered, and at {position}: {call:?}");
        }
        Ok(())
    }

    /// Returns the position at which the only command of a request was carried out.
    fn at(&self, id: RequestId) -> Option<u64> {
        self.requests.get(&(id, 0)).and_then(|positions| positions.first()).copied()
    }

    /// Returns the first and the last position of each time for which the register had a value.
    fn shown<'a>(&'a self, value: &'a str) -> impl Iterator<Item = (u64, u64)> + 'a {
        let ends = self.values.iter().skip(1).map(|(from, _)| from.saturating_sub(1)).chain([u64::MAX]);
        let times = self.values.iter().zip(ends);
        times.filter(move |((_, shown), _)| shown == value).map(|((from, _), to)| (*from, to))
    }
}

#[test]
fn a_request_that_is_there_twice_or_not_and_a_read_of_no_state_and_a_wrong_order_are_found() {
    let id = |number: u8| RequestId::from_random_bytes([number; 16]);
    let witness = || {
        let mut witness = Witness::of(StoreId(uuid::Uuid::nil()));
        witness.requests = [((id(1), 0), vec![3]), ((id(2), 0), vec![5])].into();
        witness.values.extend([(3, "a".to_owned()), (5, "b".to_owned())]);
        witness.models.insert("m".to_owned(), (ModelUuid(uuid::Uuid::nil()), 4));
        witness
    };
    let call = |moments: (usize, usize), positions: (u64, u64), told| Call {
        called: moments.0,
        returned: moments.1,
        floor: positions.0,
        reached: positions.1,
        told,
    };
    let told = |calls: &[Call]| witness().check(calls).map_err(|error| error.to_string());
    let read = |floor, reached, told| witness().check(&[call((0, 1), (floor, reached), told)]);

    let first = call((0, 1), (0, 3), Told::Written(id(1)));
    let second = call((2, 3), (0, 6), Told::Written(id(2)));
    assert_eq!(told(&[first.clone(), second.clone()]), Ok((2, 0)));
    let later = Call { called: 4, returned: 5, ..first.clone() };
    assert!(told(&[later, second.clone()]).is_err(), "the second one was answered before the first was sent");
    let beside = Call { called: 2, returned: 5, ..first.clone() };
    assert_eq!(told(&[beside, second.clone()]), Ok((2, 0)), "they were under way at one time");
    assert!(told(&[Call { reached: 2, ..first }]).is_err(), "it was answered before it was there");
    assert!(told(&[Call { told: Told::Written(id(3)), ..second.clone() }]).is_err(), "it is not there");
    assert!(told(&[Call { told: Told::NotWritten(id(2)), ..second.clone() }]).is_err(), "it is there");
    let mut twice = witness();
    twice.requests.insert((id(3), 0), vec![6, 7]);
    assert!(twice.check(&[]).is_err(), "it is there twice");

    let value = |value: &str| Told::Value(value.to_owned());
    for (floor, reached, told) in
        [(0, 2, value("")), (0, 3, value("a")), (4, 9, value("a")), (5, 5, value("b"))]
    {
        assert!(read(floor, reached, told.clone()).is_ok(), "{told:?} from {floor} to {reached}");
    }
    for (floor, reached, told) in
        [(3, 9, value("")), (0, 2, value("a")), (5, 9, value("a")), (0, 4, value("b")), (0, 9, value("c"))]
    {
        assert!(read(floor, reached, told.clone()).is_err(), "{told:?} from {floor} to {reached}");
    }
    let (found, missing) = (Told::Found("m".to_owned()), Told::Missing("m".to_owned()));
    assert!(read(0, 4, found.clone()).is_ok() && read(0, 3, found).is_err());
    assert!(read(3, 9, missing.clone()).is_ok() && read(4, 9, missing).is_err());
}
