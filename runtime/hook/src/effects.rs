//! Deferred effects: what the charm asked for so far. The charm reads them back at once; a commit's bounds hold.

use std::collections::BTreeMap;

use periapt_host_api::{
    EventId, LeaderTerm, RelationId, StorageName,
    commit::{BagChanges, HookEffects},
    name::MAX_NAME_LENGTH,
    pending::{Condition, EventChanges, PendingEvent},
    ports::PortTable,
    relation::Settings,
    secret::SecretChanges,
};

use crate::{CallError, HookLimits};

/// A set of settings that a hook may write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    UnitBag(RelationId),
    ApplicationBag(RelationId),
    LeaderSettings,
}

impl Target {
    /// Returns true for bags. Leader settings count with their application ([`HookLimits::of_hook`]).
    fn stands_in_a_bag(self) -> bool {
        matches!(self, Self::UnitBag(_) | Self::ApplicationBag(_))
    }
}

/// Bytes of a bag's encoding beside its entries: its relation's number and the names of its parts.
const BAG_BYTES: usize = 64;

/// The most bytes of a storage request in a commit: its name, a number, and the words around them.
const STORAGE_BYTES: usize = MAX_NAME_LENGTH + 32;

/// Bytes of an event's number and times in a commit, with the words around them.
const EVENT_BYTES: usize = 200;

/// The most bytes of a number in a list.
const EVENT_ID_BYTES: usize = 21;

/// The most bytes of a condition beside its key: names of a relation and of the bag's owner, and a digest.
const CONDITION_BYTES: usize = MAX_NAME_LENGTH + 160;

/// Deferred effects, with their size in a commit.
#[derive(Debug)]
pub(crate) struct Effects {
    bags: BTreeMap<RelationId, BagChanges>,
    leader_settings: Settings,
    state: BTreeMap<String, Option<String>>,
    base_ports: PortTable,
    ports: PortTable,
    add_storage: BTreeMap<StorageName, u32>,
    events: EventChanges,
    /// The count of event numbers that this hook has taken.
    event_numbers: u64,
    leader_term: Option<LeaderTerm>,
    /// The bytes and keys of all effects so far.
    taken: Size,
}

/// The size of an effect in a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    bytes: usize,
    keys: usize,
}

impl Effects {
    pub(crate) fn new(base_ports: PortTable) -> Self {
        Self {
            bags: BTreeMap::new(),
            leader_settings: Settings::new(),
            state: BTreeMap::new(),
            ports: base_ports.clone(),
            base_ports,
            add_storage: BTreeMap::new(),
            events: EventChanges::default(),
            event_numbers: 0,
            leader_term: None,
            taken: Size::default(),
        }
    }

    /// Returns this hook's writes to a target. An empty value deletes its key.
    pub(crate) fn written(&self, target: Target) -> Option<&Settings> {
        match target {
            Target::UnitBag(relation) => self.bags.get(&relation).map(|changes| &changes.unit),
            Target::ApplicationBag(relation) => self.bags.get(&relation).map(|changes| &changes.application),
            Target::LeaderSettings => Some(&self.leader_settings),
        }
    }

    /// Returns settings as the writer sees them: those before the hook, with its writes, without its deletions.
    pub(crate) fn merged(&self, base: Option<&Settings>, target: Target) -> Settings {
        let mut settings = base.cloned().unwrap_or_default();
        for (key, value) in self.written(target).into_iter().flatten() {
            match value.is_empty() {
                true => settings.remove(key),
                false => settings.insert(key.clone(), value.clone()),
            };
        }
        settings
    }

    /// Returns one value as the writer sees it.
    pub(crate) fn merged_value(&self, base: Option<&Settings>, target: Target, key: &str) -> Option<String> {
        let written = self.written(target).and_then(|written| written.get(key));
        let value = written.or_else(|| base.and_then(|base| base.get(key)));
        value.filter(|value| !value.is_empty()).cloned()
    }

    /// Writes to a target, which held `base` before the hook, all or nothing.
    pub(crate) fn write(
        &mut self,
        target: Target,
        base: Option<&Settings>,
        changes: Settings,
        limits: &HookLimits,
    ) -> Result<(), CallError> {
        for (key, value) in &changes {
            check_entry(key, value, limits)?;
        }
        self.check_whole(target, base, &changes, limits)?;
        let before = self.written(target);
        let kept = target.stands_in_a_bag().then_some(base).flatten();
        let mut after = self.taken;
        if !changes.is_empty() && before.is_none_or(Settings::is_empty) {
            after.keys += 1;
            // The first write counts the whole bag, because a commit writes it as a whole.
            let present = kept.into_iter().flatten().map(|(key, value)| entry_bytes(key, value));
            after.bytes += BAG_BYTES + present.sum::<usize>();
        }
        for (key, value) in &changes {
            after.bytes += entry_bytes(key, value);
            let written = before.and_then(|before| before.get(key));
            if let Some(replaced) = written.or_else(|| kept.and_then(|kept| kept.get(key))) {
                after.bytes -= entry_bytes(key, replaced);
            }
        }
        self.take(after, limits)?;
        match target {
            Target::UnitBag(relation) => self.bags.entry(relation).or_default().unit.extend(changes),
            Target::ApplicationBag(relation) => {
                self.bags.entry(relation).or_default().application.extend(changes);
            }
            Target::LeaderSettings => self.leader_settings.extend(changes),
        }
        Ok(())
    }

    /// Returns this hook's writes to the unit's state. None under a key: the hook deleted it.
    pub(crate) fn state(&self) -> &BTreeMap<String, Option<String>> {
        &self.state
    }

    /// Writes to the unit's state, all or nothing. Each key is an entry of the store.
    pub(crate) fn write_state(
        &mut self,
        changes: BTreeMap<String, Option<String>>,
        limits: &HookLimits,
    ) -> Result<(), CallError> {
        let bytes = |key: &str, value: &Option<String>| entry_bytes(key, value.as_deref().unwrap_or("null"));
        let mut after = self.taken;
        for (key, value) in &changes {
            after.bytes += bytes(key, value);
            match self.state.get(key) {
                Some(replaced) => after.bytes -= bytes(key, replaced),
                None => after.keys += 1,
            }
        }
        self.take(after, limits)?;
        self.state.extend(changes);
        Ok(())
    }

    /// Refuses a write that would make a bag, or the leader settings, too large for the controller.
    fn check_whole(
        &self,
        target: Target,
        base: Option<&Settings>,
        changes: &Settings,
        limits: &HookLimits,
    ) -> Result<(), CallError> {
        let written = self.written(target);
        // Each key counts once, with its newest value. A deleted key counts for nothing.
        let older =
            base.into_iter().flatten().filter(|(key, _)| written.is_none_or(|map| !map.contains_key(*key)));
        let kept = older.chain(written.into_iter().flatten()).filter(|(key, _)| !changes.contains_key(*key));
        let present = kept.chain(changes).filter(|(_, value)| !value.is_empty());
        let bytes: usize = present.map(|(key, value)| key.len() + value.len()).sum();
        if bytes > limits.bag_bytes {
            return Err(CallError::LimitExceeded(format!(
                "the settings would take {bytes} bytes; at most {} are allowed",
                limits.bag_bytes
            )));
        }
        Ok(())
    }

    /// Returns the unit's ports with this hook's requests.
    pub(crate) fn ports(&self) -> &PortTable {
        &self.ports
    }

    /// Returns the unit's ports before this hook.
    pub(crate) fn base_ports(&self) -> &PortTable {
        &self.base_ports
    }

    /// Replaces the unit's ports. `bytes` is the most that the change adds to a commit. A later request that cancels
    /// this one does not give it back, which bounds a guest that opens and closes without end.
    pub(crate) fn set_ports(
        &mut self,
        ports: PortTable,
        bytes: usize,
        limits: &HookLimits,
    ) -> Result<(), CallError> {
        let mut after = self.taken;
        after.bytes += bytes;
        if self.ports == self.base_ports {
            after.keys += 1;
        }
        if ports == self.base_ports {
            after.keys = after.keys.saturating_sub(1);
        }
        self.take(after, limits)?;
        self.ports = ports;
        Ok(())
    }

    /// Requests more storage. Requests for one storage add up.
    pub(crate) fn add_storage(
        &mut self,
        requests: &[(StorageName, u32)],
        limits: &HookLimits,
    ) -> Result<(), CallError> {
        let mut asked = self.add_storage.clone();
        for (name, count) in requests {
            let known = asked.entry(name.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        let mut after = self.taken;
        // Storage names are the charm's own, and each counts once.
        after.bytes += (asked.len() - self.add_storage.len()) * STORAGE_BYTES;
        self.take(after, limits)?;
        self.add_storage = asked;
        Ok(())
    }

    /// Returns the events that this hook requested and cancelled so far.
    pub(crate) fn events(&self) -> &EventChanges {
        &self.events
    }

    /// Requests an event. All events of a unit are one entity. A cancelled one does not give its bytes back, which
    /// bounds a guest that requests and cancels without end.
    pub(crate) fn emit(
        &mut self,
        first: u64,
        event: PendingEvent,
        limits: &HookLimits,
    ) -> Result<EventId, CallError> {
        self.take_event(event_bytes(&event), limits)?;
        let id = EventId(first.saturating_add(self.event_numbers));
        self.event_numbers += 1;
        self.events.emit.insert(id, event);
        Ok(id)
    }

    /// Cancels an event.
    pub(crate) fn cancel_event(&mut self, id: EventId, limits: &HookLimits) -> Result<(), CallError> {
        if self.events.emit.remove(&id).is_some() {
            return Ok(());
        }
        self.take_event(EVENT_ID_BYTES, limits)?;
        self.events.cancel.push(id);
        Ok(())
    }

    fn take_event(&mut self, bytes: usize, limits: &HookLimits) -> Result<(), CallError> {
        let first = self.event_numbers == 0 && self.events.cancel.is_empty();
        self.charge(bytes, usize::from(first), limits)
    }

    /// Notes the leadership that a leader-only effect rests on.
    pub(crate) fn rest_on(&mut self, term: LeaderTerm) {
        self.leader_term = Some(term);
    }

    fn take(&mut self, after: Size, limits: &HookLimits) -> Result<(), CallError> {
        if after.bytes > limits.effect_bytes {
            return Err(CallError::LimitExceeded(format!(
                "the hook's changes would take {} bytes; at most {} fit into one commit",
                after.bytes, limits.effect_bytes
            )));
        }
        if after.keys > limits.effect_keys {
            return Err(CallError::LimitExceeded(format!(
                "the hook would change {} bags, lists and keys of state; at most {} fit into one commit",
                after.keys, limits.effect_keys
            )));
        }
        self.taken = after;
        Ok(())
    }

    /// Charges an effect whose content is kept elsewhere. The charge is not given back, which bounds a guest that makes
    /// and removes without end.
    pub(crate) fn charge(&mut self, bytes: usize, keys: usize, limits: &HookLimits) -> Result<(), CallError> {
        let after = Size {
            bytes: self.taken.bytes.saturating_add(bytes),
            keys: self.taken.keys.saturating_add(keys),
        };
        self.take(after, limits)
    }

    pub(crate) fn finish(mut self, secrets: SecretChanges) -> (HookEffects, Option<LeaderTerm>) {
        self.bags.retain(|_, changes| *changes != BagChanges::default());
        let ports = self.ports.changes_from(&self.base_ports);
        let Self { bags, state, leader_settings, add_storage, events, leader_term, .. } = self;
        let effects = HookEffects { bags, ports, state, leader_settings, secrets, add_storage, events };
        (effects, leader_term)
    }
}

fn check_entry(key: &str, value: &str, limits: &HookLimits) -> Result<(), CallError> {
    if key.is_empty() {
        return Err(CallError::invalid("a key must not be empty"));
    }
    if key.len() > limits.key_bytes {
        return Err(CallError::LimitExceeded(format!(
            "a key is {} bytes long; at most {} are allowed",
            key.len(),
            limits.key_bytes
        )));
    }
    if value.len() > limits.value_bytes {
        return Err(CallError::LimitExceeded(format!(
            "the value of key {key:?} is {} bytes long; at most {} are allowed",
            value.len(),
            limits.value_bytes
        )));
    }
    Ok(())
}

/// Returns the most bytes of an event in a commit: its texts, its times, and the words around each condition.
fn event_bytes(event: &PendingEvent) -> usize {
    let condition = |condition: &Condition| match condition {
        Condition::Config { option, .. } => CONDITION_BYTES + json_text_bytes(option),
        Condition::Relation { key, .. } => CONDITION_BYTES + json_text_bytes(key),
        Condition::Leader { .. } => CONDITION_BYTES,
    };
    let conditions: usize = event.conditions.iter().map(condition).sum();
    EVENT_BYTES + json_text_bytes(&event.name) + json_text_bytes(&event.data) + conditions
}

/// Returns the bytes of `"key":"value",` as JSON.
fn entry_bytes(key: &str, value: &str) -> usize {
    json_text_bytes(key) + json_text_bytes(value) + 2
}

fn json_text_bytes(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum::<usize>() + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_covers_the_encoding_and_is_given_back_on_overwriting() {
        let limits = HookLimits::default();
        let mut effects = Effects::new(PortTable::default());
        let target = Target::UnitBag(RelationId(7));
        let values = ["x", "", "quote \" back \\ line\n bell \u{7} é", &"y".repeat(1_000)];
        for value in values {
            effects.write(target, None, Settings::from([("k\t".into(), value.into())]), &limits).unwrap();
        }
        let changes = Settings::from([("a".into(), "b".into())]);
        effects.write(Target::LeaderSettings, None, changes, &limits).unwrap();
        for value in [Some("z".repeat(1_000)), Some(String::new()), None] {
            effects.write_state([("key".into(), value)].into(), &limits).unwrap();
        }
        assert_eq!(effects.taken.keys, 3);
        let taken = effects.taken.bytes;
        let (effects, _) = effects.finish(SecretChanges::default());
        let encoded = serde_json::to_vec(&effects).unwrap().len();
        assert!(encoded <= taken + BAG_BYTES && taken < 1_300, "{encoded} {taken}");
    }

    #[test]
    fn what_stands_in_a_bag_is_written_with_it() {
        let base = Settings::from([("a".into(), "x".repeat(100)), ("b".into(), "y".repeat(50))]);
        let mut effects = Effects::new(PortTable::default());
        let target = Target::UnitBag(RelationId(7));
        let mut write = |key: &str, value: &str| {
            let changes = Settings::from([(key.into(), value.into())]);
            effects.write(target, Some(&base), changes, &HookLimits::default()).unwrap();
            effects.taken.bytes - BAG_BYTES
        };
        let whole = entry_bytes("a", &base["a"]) + entry_bytes("b", &base["b"]);
        assert_eq!(write("c", "1"), whole + entry_bytes("c", "1"));
        assert_eq!(
            write("a", "1"),
            entry_bytes("b", &base["b"]) + entry_bytes("c", "1") + entry_bytes("a", "1")
        );
        assert_eq!(write("a", &base["a"]), whole + entry_bytes("c", "1"));
    }

    #[test]
    fn a_write_that_does_not_fit_leaves_nothing() {
        let limits = HookLimits { effect_bytes: 200, ..HookLimits::default() };
        let mut effects = Effects::new(PortTable::default());
        let target = Target::UnitBag(RelationId(0));
        let changes = Settings::from([("a".into(), "1".into()), ("b".into(), "x".repeat(200))]);
        let error = effects.write(target, None, changes, &limits).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("at most 200 fit"), "{error}");
        assert!(effects.finish(SecretChanges::default()).0.is_empty());
    }

    #[test]
    fn a_bag_is_measured_as_it_would_be_with_what_is_overwritten_and_deleted_left_out() {
        let limits = HookLimits { bag_bytes: 10, ..HookLimits::default() };
        let base = Settings::from([("a".into(), "1234".into()), ("b".into(), "12".into())]);
        let mut effects = Effects::new(PortTable::default());
        let mut write = |key: &str, value: &str| {
            let changes = Settings::from([(key.into(), value.into())]);
            effects.write(Target::UnitBag(RelationId(0)), Some(&base), changes, &limits).is_ok()
        };
        assert!(write("c", "1"), "5 and 3 and 2 are 10");
        assert!(!write("c", "12"));
        assert!(!write("d", "1"));
        assert!(write("a", ""), "5 are given back");
        assert!(write("c", "123456"), "and taken");
        assert!(!write("a", "1"));
        assert!(write("b", ""));
        assert!(write("a", "12"));
    }
}
