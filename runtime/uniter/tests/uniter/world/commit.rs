//! The unit's commits and early effects.

use periapt_host_api::{commit::EarlyEffect, status::Life};
use periapt_uniter::{Progress, Skipped};

use super::{World, text};

impl World {
    /// Commits a step of the unit's record. Fails on a step that the controller would accept although a correct unit
    /// never makes it.
    pub(super) fn apply(&mut self, progress: Progress) {
        assert_eq!(progress.record.seq, self.record().seq + 1, "a commit is one step");
        let transitions = progress.transitions;
        for id in &transitions.enter_scope {
            let relation = &self.view.relations[id];
            assert_eq!(relation.life, Life::Alive, "R-9");
            assert!(!relation.members.contains_key(&self.unit), "entered twice");
        }
        for id in &transitions.leave_scope {
            // A relation that was removed by force during the hook has no scope any more.
            let relation = self.view.relations.get(id).filter(|relation| relation.life != Life::Dead);
            let left = relation.is_none_or(|relation| relation.members.contains_key(&self.unit));
            assert!(left, "left without having been in");
        }
        assert!(!transitions.clear_resolved || self.me().resolved.is_some(), "nothing to clear");
        if let Some(skipped) = progress.skipped {
            let event = skipped.event().clone();
            self.trace.push(format!("{} skipped", text(&event)));
            if matches!(skipped, Skipped::Moot(_)) && event.relation().is_some() {
                self.passed_over.push(self.committed.len());
            }
            self.committed.push(event);
        }
        self.note(&progress.early);
        let unit = self.unit.to_string();
        self.change(|lab| {
            let mut unit = lab.manual_unit(&unit)?;
            let early = unit.items(progress.early)?;
            unit.commit(|commit| {
                commit.record = progress.record;
                commit.transitions = transitions;
                commit.early = early;
            })
            .map(|_| ())
        });
    }

    /// Sends early effects.
    pub(super) fn tell(&mut self, effects: impl IntoIterator<Item = EarlyEffect>) {
        let effects: Vec<_> = effects.into_iter().collect();
        if effects.is_empty() {
            return;
        }
        self.note(&effects);
        let unit = self.unit.to_string();
        self.change(|lab| lab.manual_unit(&unit)?.say(effects).map(|_| ()));
    }

    fn note(&mut self, effects: &[EarlyEffect]) {
        for effect in effects {
            match effect {
                EarlyEffect::UnitStatus { status, message } => {
                    self.statuses.push(format!("{status} {message}").trim_end().to_owned());
                }
                EarlyEffect::AgentStatus { status, message, .. } => {
                    self.statuses.push(format!("agent {status} {message}").trim_end().to_owned());
                }
                EarlyEffect::Log { .. } => {}
                other => panic!("the uniter has no reason to send {other:?}"),
            }
        }
    }
}
