//! The fold of a log: the state at each of its positions, as far as clients see it, and what was carried out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{Digest, Level, ModelUuid, Revision, audit::AuditOutcome};
use periapt_log::{Content, Entry, LogHead, StoredEntry};
use periapt_model::{Changes, Root, changes::RecordBody, entity::Entity};
use periapt_store::{Batch, NewRecord, Record, RecordPosition, codec, key};

use super::world::LOG;

/// The fold of a log.
pub(super) struct Fold {
    pub(super) head: LogHead,
    pub(super) entities: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The state at each position; the first is that of the empty log.
    pub(super) states: Vec<Arc<State>>,
    /// The controllers' own state at each position.
    pub(super) roots: Vec<Root>,
    /// The level at each position.
    pub(super) levels: Vec<Level>,
    /// The positions at which a model of this name was added.
    pub(super) added: BTreeMap<String, Vec<u64>>,
    /// The number of writes of each register that were carried out.
    pub(super) writes: BTreeMap<String, usize>,
}

/// A state, as far as clients of the simulation see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The value of the setting of each model, by the model's name; empty where it is not set.
    pub(super) models: BTreeMap<String, String>,
    names: BTreeMap<ModelUuid, String>,
}

impl State {
    fn put(&mut self, model: &periapt_model::entity::Model) {
        let kept = serde_json::to_value(&model.settings.kept).unwrap();
        let value = kept.get("apt-mirror").and_then(|value| value.as_str()).unwrap_or_default();
        self.models.insert(model.name.to_string(), value.to_owned());
        self.names.insert(model.uuid, model.name.to_string());
    }
}

impl Fold {
    /// Folds a log.
    ///
    /// # Errors
    /// H3: a position has no entry, or one that does not follow the one before it, or is of an earlier term.
    pub(super) fn of(entries: &[StoredEntry]) -> Result<Self, String> {
        let mut fold = Self {
            head: LogHead::empty(LOG),
            entities: BTreeMap::new(),
            states: vec![Arc::default()],
            roots: vec![Root::default()],
            levels: vec![Level::FIRST],
            added: BTreeMap::new(),
            writes: BTreeMap::new(),
        };
        for StoredEntry { position, bytes } in entries {
            let entry = Entry::decode(*position, bytes).map_err(|error| format!("H3: {error}"))?;
            let before = fold.head.term;
            fold.head = fold.head.after(*position, &entry, bytes).map_err(|error| format!("H3: {error}"))?;
            if entry.term < before {
                return Err(format!("H3: term {} after {before} at {position}", entry.term));
            }
            let mut state = fold.states.last().cloned().unwrap_or_default();
            let (entities, records) = match entry.content {
                Content::Batch { entities, records } => (entities, records),
                Content::Term(_) => Default::default(),
            };
            let batch = Batch { entities, ..Batch::default() };
            let changes = codec::writes(&batch).unwrap();
            let root = fold.roots.last().cloned().unwrap_or_default().replay(&changes, *position);
            fold.batch(*position, &mut state, &changes, batch.entities, records);
            fold.states.push(state);
            fold.roots.push(root);
            fold.levels.push(entry.level);
        }
        Ok(fold)
    }

    /// Returns the blobs that are registered at a position.
    pub(super) fn registered(&self, at: Revision) -> BTreeSet<Digest> {
        let Some(root) = self.roots.get(usize::try_from(at.0).unwrap()) else { return BTreeSet::new() };
        let charms = root.charms().map(|charm| charm.digest);
        charms.chain(root.resource_contents().map(|content| content.digest)).collect()
    }

    /// Returns the level at a position.
    pub(super) fn level(&self, at: Revision) -> Level {
        self.levels.get(usize::try_from(at.0).unwrap()).copied().unwrap_or(Level::FIRST)
    }

    fn batch(
        &mut self,
        position: Revision,
        state: &mut Arc<State>,
        changes: &Changes,
        entities: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        records: Vec<NewRecord>,
    ) {
        for value in changes.puts.values() {
            if let Some(Entity::Model(model)) = value {
                Arc::make_mut(state).put(model);
            }
        }
        for (key, value) in entities {
            match value {
                Some(value) => self.entities.insert(key, value),
                None => self.entities.remove(&key),
            };
        }
        for NewRecord { prefix, at, body } in records {
            if prefix == key::AUDIT {
                let record = Record { position: RecordPosition { revision: position, index: 0 }, at, body };
                self.audited(position, state, &record);
            }
        }
    }

    fn audited(&mut self, position: Revision, state: &State, record: &Record) {
        let RecordBody::Audit(entry) = codec::body(record).unwrap() else { return };
        if entry.request.outcome != AuditOutcome::Done {
            return;
        }
        let subject = entry.request.subject.strip_prefix("model ").unwrap_or_default();
        match entry.request.act.as_str() {
            "add-model" => self.added.entry(subject.to_owned()).or_default().push(position.0),
            "set-model-config" => {
                let name = &state.names[&subject.parse().unwrap()];
                *self.writes.entry(name.clone()).or_default() += 1;
            }
            _ => {}
        }
    }
}
