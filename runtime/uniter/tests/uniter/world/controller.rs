//! The part of the controller that applies what the unit commits.

use periapt_host_api::{
    Revision,
    commit::EarlyEffect,
    status::{Life, StatusInfo},
    view::Membership,
};
use periapt_uniter::{Progress, Skipped};

use super::{World, text};

impl World {
    pub(super) fn apply(&mut self, progress: Progress) {
        let before = self.record().clone();
        assert_eq!(progress.record.seq, before.seq + 1, "a commit is one step");
        if let Some(skipped) = progress.skipped {
            let event = skipped.event().clone();
            self.trace.push(format!("{} skipped", text(&event)));
            if matches!(skipped, Skipped::Moot(_)) && event.relation().is_some() {
                self.passed_over.push(self.committed.len());
            }
            self.committed.push(event);
        }
        self.me().record = progress.record;
        self.tell(progress.early);
        let unit = self.unit.clone();
        for id in progress.transitions.enter_scope {
            let relation = self.relation(id.0);
            assert_eq!(relation.life, Life::Alive, "R-9");
            assert!(relation.members.insert(unit.clone(), Membership::Joined).is_none(), "entered twice");
        }
        for id in progress.transitions.leave_scope {
            // One that was removed by force while the hook ran is left already.
            let relation = self.view.relations.get_mut(&id).filter(|relation| relation.life != Life::Dead);
            if let Some(relation) = relation {
                assert!(relation.members.remove(&unit).is_some(), "left without having been in");
            }
        }
        if let Some(told) = progress.transitions.told_event
            && let Some(pending) = self.view.events.get_mut(&unit)
        {
            pending.events.remove(&told);
        }
        if progress.transitions.clear_resolved {
            assert!(self.me().resolved.take().is_some(), "nothing to clear");
        }
        if progress.transitions.terminate {
            assert!(self.me().subordinates.is_empty(), "Q05");
            self.view.units.remove(&unit);
        }
        self.forget_dead_relations();
        self.view.revision = Revision(self.view.revision.0 + 1);
    }

    pub(super) fn tell(&mut self, effects: impl IntoIterator<Item = EarlyEffect>) {
        for effect in effects {
            match effect {
                EarlyEffect::UnitStatus { status, message } => {
                    self.statuses.push(format!("{status} {message}").trim_end().to_owned());
                    self.me().workload_status = StatusInfo::new(status, message, self.now);
                }
                EarlyEffect::AgentStatus { status, message, data } => {
                    self.statuses.push(format!("agent {status} {message}").trim_end().to_owned());
                    let since = self.now;
                    self.me().agent_status = StatusInfo { status, message, data, since };
                }
                EarlyEffect::Log { .. } => {}
                other => panic!("the uniter has no reason to send {other:?}"),
            }
        }
    }
}
