//! A store without durability, for tests and simulation.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, ready},
    stream,
};
use parking_lot::Mutex;
use periapt_host_api::{Revision, StoreId, Timestamp};

use crate::{
    Batch, EntityChunk, Order, Record, RecordPosition, Retention, RetentionPolicy, Store, StoreError,
    StoredEntity, StoredState,
};

/// An in-memory [`Store`].
#[derive(Debug)]
pub struct MemoryStore {
    id: StoreId,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Default)]
struct State {
    revision: Revision,
    note: Option<Vec<u8>>,
    /// Shared with the readers of a state. A write copies it while there are any.
    entities: Arc<BTreeMap<Vec<u8>, Vec<u8>>>,
    staged: BTreeMap<Vec<u8>, Vec<u8>>,
    records: BTreeMap<RecordKey, RecordValue>,
}

/// The sequence, and the position in it.
type RecordKey = (Vec<u8>, RecordPosition);

/// The record's own time, and its content.
type RecordValue = (Timestamp, Vec<u8>);

impl MemoryStore {
    /// Creates an empty store with this identity.
    pub fn new(id: StoreId) -> Self {
        Self { id, state: Mutex::default() }
    }

    /// Returns another store with the present content.
    pub fn copy(&self) -> Self {
        Self { id: self.id, state: Mutex::new(self.with(|state| state.clone())) }
    }

    /// Returns the revision of the present content.
    pub fn revision(&self) -> Revision {
        self.with(|state| state.revision)
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // Each call leaves the state consistent, so a panic in another thread cannot have broken it.
        act(&mut self.state.lock())
    }
}

impl Store for MemoryStore {
    fn id(&self) -> StoreId {
        self.id
    }

    fn load(&self) -> BoxFuture<'_, Result<StoredState, StoreError>> {
        let stored = self.with(|state| {
            let (entities, mut last) = (Arc::clone(&state.entities), None::<Vec<u8>>);
            let chunks = std::iter::from_fn(move || {
                let chunk = chunk_after(&entities, last.as_deref());
                let (key, _) = chunk.entities().last()?;
                last = Some(key.clone());
                Some(Ok(chunk))
            });
            StoredState {
                revision: state.revision,
                note: state.note.clone(),
                chunks: stream::iter(chunks).boxed(),
            }
        });
        ready(Ok(stored)).boxed()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        ready(self.with(|state| {
            if batch.expected != state.revision {
                return Err(StoreError::HeadMoved { expected: batch.expected, have: state.revision });
            }
            let revision = Revision(state.revision.0 + 1);
            state.revision = revision;
            if batch.note.is_some() {
                state.note = batch.note;
            }
            let entities = Arc::make_mut(&mut state.entities);
            for (key, value) in batch.entities {
                match value {
                    Some(value) => entities.insert(key, value),
                    None => entities.remove(&key),
                };
            }
            for (index, record) in (0..).zip(batch.records) {
                let position = RecordPosition { revision, index };
                state.records.insert((record.prefix, position), (record.at, record.body));
            }
            Ok(revision)
        }))
        .boxed()
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.commit(batch)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn unstage(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|state| state.staged.clear());
        ready(Ok(())).boxed()
    }

    fn stage(&self, entities: Vec<StoredEntity>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|state| state.staged.extend(entities));
        ready(Ok(())).boxed()
    }

    fn replace_by_staged(
        &self,
        revision: Revision,
        note: Option<Vec<u8>>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|state| {
            (state.revision, state.note) = (revision, note);
            state.entities = Arc::new(std::mem::take(&mut state.staged));
        });
        ready(Ok(())).boxed()
    }

    fn import(&self, sequence: &[u8], records: Vec<Record>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|state| {
            for Record { position, at, body } in records {
                state.records.insert((sequence.to_vec(), position), (at, body));
            }
        });
        ready(Ok(())).boxed()
    }

    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        let found = self.with(|state| {
            let rows = state.records.iter().filter(|((of, _), _)| of == prefix);
            let record = |((_, position), (at, body)): (&RecordKey, &RecordValue)| Record {
                position: *position,
                at: *at,
                body: body.clone(),
            };
            match order {
                Order::OldestFirst { after } => rows
                    .filter(|((_, position), _)| after.is_none_or(|after| *position > after))
                    .take(limit)
                    .map(record)
                    .collect(),
                Order::NewestFirst { before } => rows
                    .rev()
                    .filter(|((_, position), _)| before.is_none_or(|before| *position < before))
                    .take(limit)
                    .map(record)
                    .collect(),
            }
        });
        ready(Ok(found)).boxed()
    }

    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>> {
        let names = self.with(|state| {
            let mut names: Vec<Vec<u8>> = state.records.keys().map(|(name, _)| name.clone()).collect();
            names.dedup();
            names.into_iter().filter(|name| after.is_none_or(|after| **name > *after)).take(limit).collect()
        });
        ready(Ok(names)).boxed()
    }

    fn prune(&self, prefix: &[u8], mut policy: RetentionPolicy) -> BoxFuture<'_, Result<usize, StoreError>> {
        let pruned = self.with(|state| {
            let mut deleted = Vec::new();
            for ((of, position), (at, body)) in state.records.iter().rev().filter(|((of, _), _)| of == prefix)
            {
                let record = Record { position: *position, at: *at, body: body.clone() };
                if policy(&record) == Retention::Drop {
                    deleted.push((of.clone(), *position));
                }
            }
            for key in &deleted {
                state.records.remove(key);
            }
            deleted.len()
        });
        ready(Ok(pruned)).boxed()
    }

    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>> {
        self.with(|state| state.records.retain(|(of, _), _| !of.starts_with(prefix)));
        ready(Ok(())).boxed()
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        let size = self.with(|state| {
            let entities = state.entities.iter().map(|(key, value)| key.len() + value.len());
            let records = state.records.iter().map(|((name, _), (_, body))| name.len() + body.len());
            entities.chain(records).sum::<usize>()
        });
        ready(Ok(size as u64)).boxed()
    }
}

/// Returns the entities after a key, or the first ones, as many as fit into a chunk.
fn chunk_after(entities: &BTreeMap<Vec<u8>, Vec<u8>>, last: Option<&[u8]>) -> EntityChunk {
    let mut chunk = EntityChunk::default();
    let after = last.map_or(Bound::Unbounded, Bound::Excluded);
    for (key, value) in entities.range::<[u8], _>((after, Bound::Unbounded)) {
        if !chunk.has_room(key, value) {
            break;
        }
        chunk.push(key.clone(), value.clone());
    }
    chunk
}
