//! What the controller does by itself, a bounded step at a time: placing units, finishing what was too much for
//! one commit, forced removals, lapsed leases, destroyed models.

use periapt_host_api::Timestamp;

use crate::{
    input::{Environment, WorkerCommand},
    root::Root,
};

pub(crate) mod assign;
pub(crate) mod lease;
pub(crate) mod windup;
pub(crate) mod work;

/// How many steps are named at once: the rest is asked for again after these.
const MAX_COMMANDS: usize = 64;

/// What the controller's workers should submit now, and when to ask again if nothing changes before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DueWork {
    /// Steps, each of which changes something.
    pub commands: Vec<WorkerCommand>,
    /// Milliseconds until more is due; none: when something changes.
    pub wake_in_ms: Option<u64>,
}

impl DueWork {
    fn wake_in(&mut self, milliseconds: u64) {
        // Never at once: what is due at once stands among the commands.
        let milliseconds = milliseconds.max(1);
        self.wake_in_ms = Some(self.wake_in_ms.map_or(milliseconds, |other| other.min(milliseconds)));
    }

    fn is_full(&self) -> bool {
        self.commands.len() >= MAX_COMMANDS
    }
}

/// Asks what is due. Cheap when nothing is: models without work are not looked at.
pub fn due_work(root: &Root, env: &Environment) -> DueWork {
    let mut due = DueWork::default();
    for (expires, model, application) in root.lapses() {
        if *expires > env.lease_now_ms {
            due.wake_in(expires - env.lease_now_ms);
            break;
        }
        let anybody_else = root
            .model(model)
            .is_some_and(|state| lease::somebody_else_could_lead(root, state, application, env.now));
        if anybody_else && !due.is_full() {
            due.commands.push(WorkerCommand::ExpireLease(*model, application.clone()));
        }
    }
    for (uuid, state) in root.busy_models() {
        if due.is_full() {
            break;
        }
        if assign::has_news(root, state, env.now) {
            due.commands.push(WorkerCommand::AssignUnits(*uuid));
        }
        for item in state.work() {
            match item.due {
                Some(at) if at > env.now => due.wake_in(milliseconds_until(env.now, at)),
                _ if due.is_full() => break,
                _ => due.commands.push(WorkerCommand::RunWork(*uuid, item.id)),
            }
        }
        if windup::has_step(state) {
            due.commands.push(WorkerCommand::WindUpModel(*uuid));
        }
    }
    due
}

fn milliseconds_until(now: Timestamp, then: Timestamp) -> u64 {
    u64::try_from(then.as_millisecond().saturating_sub(now.as_millisecond())).unwrap_or_default()
}
