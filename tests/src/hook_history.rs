//! The journal, collected as it grows, and the records that units of the charm `probe` keep of their own hooks.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use periapt_host_api::{
    UnitName,
    api::{UnitDetails, UnitRelation},
    journal::{HookOutcome, JournalRecord},
};

/// The number of a unit's hooks that the controller keeps and shows.
const SHOWN: usize = 50;
/// The number of entries that a ledger keeps.
const LEDGER: usize = 200;
/// The hook with which a unit starts to count.
const OPENS: &str = "tally-relation-created";
/// A hook that is counted but not entered in the ledger.
const NOTICES: &str = "peer-relation-changed";

/// All hooks of all units, by the `seq` of their commits.
#[derive(Debug, Clone, Default)]
pub struct HookHistory {
    /// The hooks of each unit.
    pub journals: BTreeMap<UnitName, BTreeMap<u64, JournalRecord>>,
}

impl HookHistory {
    /// Adds the hooks that the journal shows of a unit, and returns the number of new ones. Hooks that were shown
    /// once must stay.
    ///
    /// # Errors
    /// A hook is missing, or differs from what was shown before; or the unit has run more hooks since the last look than
    /// the journal shows.
    pub fn enter(&mut self, unit: &UnitName, shown: Vec<JournalRecord>) -> anyhow::Result<u64> {
        let known = self.journals.entry(unit.clone()).or_default();
        // The journal keeps failed hooks longer, before the newest ones.
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

    /// Checks that the unit's count of its hooks and its ledger are those of its journal.
    ///
    /// # Errors
    /// A hook was counted or entered that the journal does not show as committed, or the other way round.
    pub fn audit(&self, unit: &UnitDetails) -> anyhow::Result<()> {
        self.compare(unit).with_context(|| format!("the history of {}", unit.name))
    }

    fn compare(&self, unit: &UnitDetails) -> anyhow::Result<()> {
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
        let newest = expected.get(expected.len().saturating_sub(LEDGER)..).unwrap_or_default();
        ensure!(entered == newest, "entered: {entered:?}, and committed: {newest:?}");
        Ok(())
    }
}
