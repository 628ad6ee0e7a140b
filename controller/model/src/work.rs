//! The controller's own work, in bounded steps: placing units, finishing work that was too much for one commit,
//! forced removals, expired leases, destroyed models.

pub(crate) mod entity;
pub(crate) mod run;
pub(crate) mod schedule;
use std::collections::BTreeMap;

use jiff::SignedDuration;
use periapt_host_api::{
    AgentName, ModelUuid, Timestamp,
    timing::{AGENT_GRACE_MS, FAILOVER_AFTER},
};

use crate::{
    action, answer,
    input::WorkerCommand,
    leadership,
    machine::{
        self,
        failover::{self, Destinations, Turn},
    },
    model,
    root::{ModelState, Root},
    secret,
};

use schedule::WorkSchedule;

/// The most commands of one call. The caller asks again after these.
const MAX_COMMANDS: usize = 64;

/// The most commands of one model in a call, so that a busy model leaves room for the others.
const MAX_OF_MODEL: usize = 8;

/// Returns the commands that the controller's workers should submit now, each with an effect, and the time to ask
/// again (and to update status) if nothing changes before. Cheap if nothing is due: models without work are skipped.
pub fn due_work(
    root: &Root,
    now: Timestamp,
    lease_now_ms: u64,
    schedule: &WorkSchedule,
) -> (Vec<WorkerCommand>, Option<Timestamp>) {
    let of_model = BTreeMap::new();
    let mut due = DueWork { now, lease_now_ms, schedule, of_model, commands: Vec::new(), wake: None };
    due.add_leases(root);
    due.add_presence(root);
    due.add_sessions(root);
    due.add_answers(root);
    due.add_models(root);
    (due.commands, due.wake)
}

struct DueWork<'a> {
    now: Timestamp,
    lease_now_ms: u64,
    schedule: &'a WorkSchedule,
    of_model: BTreeMap<ModelUuid, usize>,
    commands: Vec<WorkerCommand>,
    wake: Option<Timestamp>,
}

impl DueWork<'_> {
    fn add(&mut self, model: &ModelUuid, command: WorkerCommand) {
        if self.is_full() || self.has_its_share(model) {
            return;
        }
        if let Some(left) = self.schedule.held_for(&command, self.lease_now_ms) {
            self.wake_in(left);
            return;
        }
        *self.of_model.entry(*model).or_default() += 1;
        self.commands.push(command);
    }

    /// Adds a command about no model.
    fn add_of_controller(&mut self, command: WorkerCommand) {
        match self.schedule.held_for(&command, self.lease_now_ms) {
            Some(left) => self.wake_in(left),
            None => self.commands.push(command),
        }
    }

    fn is_full(&self) -> bool {
        self.commands.len() >= MAX_COMMANDS
    }

    fn has_its_share(&self, model: &ModelUuid) -> bool {
        self.of_model.get(model).is_some_and(|count| *count >= MAX_OF_MODEL)
    }

    /// Converts a duration of the monotonic clock to a time of the wall clock.
    fn wake_in(&mut self, left_ms: u64) {
        let left = SignedDuration::from_millis(i64::try_from(left_ms).unwrap_or(i64::MAX));
        self.wake_at(self.now.checked_add(left).unwrap_or(Timestamp::MAX));
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |other| other.min(at)));
    }

    fn add_leases(&mut self, root: &Root) {
        for (expires, model, application) in root.lapses() {
            if *expires > self.lease_now_ms {
                self.wake_in(expires - self.lease_now_ms);
                break;
            }
            let has_candidate = root.model(model).filter(|state| !state.is_frozen()).is_some_and(|state| {
                leadership::expire::another_unit_could_lead(root, state, application, self.lease_now_ms)
            });
            if has_candidate {
                self.add(model, WorkerCommand::ExpireLease(*model, application.clone()));
            }
        }
    }

    /// Sets the wake-up time to when an agent starts to count as gone: status changes then, without a commit. Adds the
    /// moves of units whose agent is gone for longer.
    fn add_presence(&mut self, root: &Root) {
        let destinations = Destinations::new(root, self.lease_now_ms);
        for agent in root.agents() {
            let Some(gone_for) = failover::gone_for(root, &agent.name, self.lease_now_ms) else { continue };
            if gone_for < AGENT_GRACE_MS {
                self.wake_in(AGENT_GRACE_MS - gone_for);
            }
            self.add_moves(root, &agent.name, gone_for, &destinations);
        }
    }

    /// Adds the moves of units whose agent has been gone for so many milliseconds. It looks at models of this agent
    /// alone.
    fn add_moves(&mut self, root: &Root, agent: &AgentName, gone_for: u64, destinations: &Destinations<'_>) {
        let shortest = u64::try_from(FAILOVER_AFTER.as_millis()).unwrap_or(u64::MAX);
        if gone_for < shortest {
            self.wake_in(shortest - gone_for);
            return;
        }
        if destinations.is_empty() {
            return;
        }
        for (model, state) in
            root.models_at(agent).filter(|(_, state)| !state.is_remains() && !state.is_frozen())
        {
            match failover::turn(state, gone_for) {
                _ if self.is_full() => return,
                Turn::Now if destinations.can_take(state, agent) => {
                    self.add(model, WorkerCommand::MoveMachines(*model, agent.clone()));
                }
                Turn::In(left) => self.wake_in(left),
                Turn::Now | Turn::Never => {}
            }
        }
    }

    /// Adds the deletion of sessions that have ended by time.
    fn add_sessions(&mut self, root: &Root) {
        match root.session_ends().next() {
            Some((end, _)) if *end > self.now => self.wake_at(*end),
            Some(_) => self.add_of_controller(WorkerCommand::ForgetSessions),
            None => {}
        }
    }

    /// Adds the end of answers that were kept long enough.
    fn add_answers(&mut self, root: &Root) {
        match answer::due::forget_at(root) {
            Some(at) if at > self.now => self.wake_at(at),
            Some(_) => self.add_of_controller(WorkerCommand::ForgetAnswers),
            None => {}
        }
    }

    /// Adds the commands of all busy models, beginning after the model that was served last, so that each has its
    /// turn.
    fn add_models(&mut self, root: &Root) {
        for (uuid, state) in root.busy_models_after(self.schedule.last()) {
            if self.is_full() {
                break;
            }
            self.add_model(root, uuid, state);
        }
    }

    fn add_model(&mut self, root: &Root, uuid: &ModelUuid, state: &ModelState) {
        if state.is_frozen() {
            match state.migration_due() {
                Some(at) if at > self.now => self.wake_at(at),
                Some(_) => self.add(uuid, WorkerCommand::EndMigration(*uuid)),
                None => {}
            }
            return;
        }
        // Other models have changes that this model has yet to copy.
        if root.behind(*uuid).next().is_some() {
            self.add(uuid, WorkerCommand::CopyFromOthers(*uuid));
        }
        if machine::assign::has_news(root, state, self.lease_now_ms) {
            self.add(uuid, WorkerCommand::AssignUnits(*uuid));
        }
        match action::due::prune_at(state) {
            Some(at) if at > self.now => self.wake_at(at),
            Some(_) => self.add(uuid, WorkerCommand::PruneTasks(*uuid)),
            None => {}
        }
        match secret::due::next_due(state) {
            Some(at) if at > self.now => self.wake_at(at),
            Some(_) => self.add(uuid, WorkerCommand::MarkSecretsDue(*uuid)),
            None => {}
        }
        // Items are sorted by due time, so the loop reads no more of them than it takes.
        for item in state.work_by_due() {
            match item.due {
                Some(at) if at > self.now => {
                    self.wake_at(at);
                    break;
                }
                _ if self.is_full() || self.has_its_share(uuid) => break,
                _ => self.add(uuid, WorkerCommand::RunWork(*uuid, item.id)),
            }
        }
        if model::cleanup::has_step(state) {
            self.add(uuid, WorkerCommand::CleanUpModel(*uuid));
        }
    }
}
