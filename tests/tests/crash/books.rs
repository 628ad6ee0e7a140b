//! The journal, read as it grows, and what the units have written down themselves.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use periapt_host_api::{
    UnitName,
    api::{UnitDetails, UnitRelation},
    event::Event,
    journal::{HookOutcome, JournalRecord},
};

use crate::{
    observed::Observed,
    steps::{FAILURE, LASTING},
};

/// As many of a unit's hooks as the controller keeps and shows.
const SHOWN: usize = 50;
/// As many entries as a ledger keeps.
const LEDGER: usize = 200;
/// With this hook a unit begins to count.
const OPENS: &str = "tally-relation-created";
/// This hook is counted, and not entered.
const NOTICES: &str = "peer-relation-changed";

/// All hooks of all units, by the commit that they are part of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    pub(crate) journals: BTreeMap<UnitName, BTreeMap<u64, JournalRecord>>,
}

impl Books {
    /// Takes over what the journal shows now of a unit. What it has shown once must stay. Answers how many are new.
    pub(crate) fn enter(&mut self, unit: &UnitName, shown: Vec<JournalRecord>) -> anyhow::Result<u64> {
        let known = self.journals.entry(unit.clone()).or_default();
        // Failed hooks stay longer, and stand before the newest.
        let newest = shown.len().saturating_sub(SHOWN);
        let Some(first) = shown.get(newest).map(|record| record.seq) else {
            ensure!(known.is_empty(), "the journal of {unit} is gone");
            return Ok(0);
        };
        let last = known.last_key_value().map(|(seq, _)| *seq);
        let joins = shown.len() < SHOWN || last.is_some_and(|last| first <= last);
        ensure!(joins, "{unit} has run more than {SHOWN} hooks between two looks: from {last:?} to {first}");
        let shown_again = shown.iter().skip(newest).filter(|record| known.contains_key(&record.seq)).count();
        let kept = known.range(first..).count();
        ensure!(shown_again == kept, "of {kept} hooks of {unit} from {first} on, {shown_again} are left");
        let mut new = 0;
        for record in shown {
            let (seq, last) = (record.seq, known.last_key_value().map(|(seq, _)| *seq));
            match known.get(&seq) {
                Some(before) => {
                    ensure!(*before == record, "{unit} has two hooks {seq}: {before:?}, {record:?}")
                }
                None => {
                    ensure!(last < Some(seq), "hook {seq} of {unit} comes after {last:?}: {record:?}");
                    known.insert(seq, record);
                    new += 1;
                }
            }
        }
        Ok(new)
    }

    /// Of a model at rest.
    pub(crate) fn audit(&self, observed: &Observed) -> anyhow::Result<()> {
        for (unit, journal) in &self.journals {
            for record in journal.values() {
                // One hook fails, when it is asked to. What dies in the sandbox's process three times is taken for guilty.
                if let HookOutcome::Failed { message } = &record.outcome {
                    let asked = record.event == Event::ConfigChanged && message.contains(FAILURE);
                    ensure!(asked || message.contains("the sandbox crashed"), "{unit}: {record:?}");
                }
            }
        }
        let counting =
            |unit: &&UnitDetails| LASTING.iter().any(|(name, _)| unit.application.as_str() == *name);
        for unit in observed.units.values().filter(counting) {
            self.audit_unit(unit).with_context(|| format!("the books of {}", unit.name))?;
        }
        Ok(())
    }

    fn audit_unit(&self, unit: &UnitDetails) -> anyhow::Result<()> {
        let journal = self.journals.get(&unit.name).context("nobody has seen its journal")?;
        let last = journal.last_key_value().map(|(seq, _)| *seq);
        ensure!(last < Some(unit.record.seq), "{last:?} was run from commit {}", unit.record.seq);
        let committed = journal
            .values()
            .filter(|record| matches!(record.outcome, HookOutcome::Handled | HookOutcome::Unhandled));
        let hooks: Vec<_> =
            committed.map(|record| record.event.hook_name()).skip_while(|hook| hook != OPENS).collect();
        let bag = |endpoint: &str, key: &str| {
            let relation = unit.relations.iter().find(|relation| relation.endpoint.as_str() == endpoint);
            let value = |relation: &UnitRelation| relation.local_unit.data.get(key).cloned();
            relation.and_then(value).with_context(|| format!("no {key} in {endpoint}"))
        };
        let counted: usize = bag("tally", "hooks")?.parse()?;
        ensure!(counted == hooks.len(), "{counted} were counted, and {} committed: {hooks:?}", hooks.len());

        let numbered = hooks.iter().enumerate().map(|(index, hook)| (index + 1, hook.as_str()));
        let expected: Vec<_> = numbered.filter(|(_, hook)| *hook != NOTICES).collect();
        let ledger = bag("peer", "ledger")?;
        let entered: Vec<_> = ledger
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(number, hook)| Ok((number.parse()?, hook)))
            .collect::<anyhow::Result<_>>()?;
        let newest = &expected[expected.len().saturating_sub(LEDGER)..];
        ensure!(entered == newest, "entered: {entered:?}, and committed: {newest:?}");
        Ok(())
    }
}
