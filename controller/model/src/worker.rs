//! What the controller does by itself, a bounded step at a time: placing units, finishing what was too much for
//! one commit, forced removals, lapsed leases, destroyed models.

use jiff::SignedDuration;
use periapt_host_api::Timestamp;

use crate::{
    input::WorkerCommand,
    root::{GRACE_SECONDS, Root},
};

pub(crate) mod assign;
pub(crate) mod lease;
pub(crate) mod secret;
pub(crate) mod tasks;
pub(crate) mod windup;
pub(crate) mod work;

/// How many steps are named at once: the rest is asked for again after these.
const MAX_COMMANDS: usize = 64;

/// What the controller's workers should submit now, each of which changes something, and when to ask again (and
/// to look at status again) if nothing changes before. Cheap when nothing is due: models without work are not
/// looked at.
pub fn due_work(root: &Root, now: Timestamp, lease_now_ms: u64) -> (Vec<WorkerCommand>, Option<Timestamp>) {
    let mut due = Due { now, commands: Vec::new(), wake: None };
    due.add_leases(root, lease_now_ms);
    due.add_presence(root);
    due.add_models(root);
    (due.commands, due.wake)
}

struct Due {
    now: Timestamp,
    commands: Vec<WorkerCommand>,
    wake: Option<Timestamp>,
}

impl Due {
    fn add(&mut self, command: WorkerCommand) {
        if !self.is_full() {
            self.commands.push(command);
        }
    }

    fn is_full(&self) -> bool {
        self.commands.len() >= MAX_COMMANDS
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |other| other.min(at)));
    }

    fn add_leases(&mut self, root: &Root, lease_now_ms: u64) {
        for (expires, model, application) in root.lapses() {
            if *expires > lease_now_ms {
                // Two clocks: the monotonic one says how long, the other one when that will be.
                let left = i64::try_from(expires - lease_now_ms).unwrap_or(i64::MAX);
                let left = SignedDuration::from_millis(left);
                self.wake_at(self.now.checked_add(left).unwrap_or(Timestamp::MAX));
                break;
            }
            let anybody_else = root
                .model(model)
                .is_some_and(|state| lease::somebody_else_could_lead(root, state, application, self.now));
            if anybody_else {
                self.add(WorkerCommand::ExpireLease(*model, application.clone()));
            }
        }
    }

    /// When an agent comes to be taken for gone, what status shows changes without a commit.
    fn add_presence(&mut self, root: &Root) {
        for presence in root.agents().filter_map(|agent| root.presence(&agent.name)) {
            let gone_at = presence.last_seen.checked_add(SignedDuration::from_secs(GRACE_SECONDS));
            if let Ok(gone_at) = gone_at
                && !presence.connected
                && gone_at > self.now
            {
                self.wake_at(gone_at);
            }
        }
    }

    fn add_models(&mut self, root: &Root) {
        for (uuid, state) in root.busy_models() {
            if self.is_full() {
                break;
            }
            if assign::has_news(root, state, self.now) {
                self.add(WorkerCommand::AssignUnits(*uuid));
            }
            for item in state.work() {
                match item.due {
                    Some(at) if at > self.now => self.wake_at(at),
                    _ => self.add(WorkerCommand::RunWork(*uuid, item.id)),
                }
            }
            match tasks::prune_at(state) {
                Some(at) if at > self.now => self.wake_at(at),
                Some(_) => self.add(WorkerCommand::PruneTasks(*uuid)),
                None => {}
            }
            match secret::next_bell(state) {
                Some(at) if at > self.now => self.wake_at(at),
                Some(_) => self.add(WorkerCommand::RingSecrets(*uuid)),
                None => {}
            }
            if windup::has_step(state) {
                self.add(WorkerCommand::WindUpModel(*uuid));
            }
        }
    }
}
