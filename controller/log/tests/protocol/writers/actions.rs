//! The actions that are possible in a state.

use stateright::{Model, Property};

use super::{
    laws,
    state::{CONTROLLERS, Role, State, Task, Trimming, Writers},
};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A client sends a request to a controller.
    Send { request: usize, to: usize },
    /// A controller that follows passes its requests on to the other one.
    PassOn(usize),
    /// The leadership runs out, because it was not renewed.
    Expire,
    /// A controller takes the leadership.
    Acquire(usize),
    /// A controller applies the next entry.
    Apply(usize),
    /// A controller that has read the log to its end appends the first entry of its term.
    Begin(usize),
    /// A writer evaluates what waits.
    Evaluate(usize),
    /// The log takes a writer's call.
    Call(usize, Fate),
    /// An append arrives late.
    Arrive(usize),
    /// A controller notices that its leadership may be over.
    StepDown(usize),
    /// A controller syncs its store.
    Sync(usize),
    /// A controller reports what it has.
    Report(usize),
    /// A leading controller trims the log.
    Trim(usize),
    /// A controller takes the state of the other one, because the log does not have the next entry any more.
    TakeSnapshot(usize),
    /// A machine crashes and comes back.
    Crash(usize),
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    /// It takes effect, and its answer is lost.
    AnswerLost,
    /// It is under way, and its sender hears nothing.
    UnderWay,
}

impl Model for Writers {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.requests.len())]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.seen.breach.is_some() {
            return;
        }
        for (request, client) in state.clients.iter().enumerate() {
            if !client.answered && client.sent < self.bounds.sends {
                let free = (0..CONTROLLERS).filter(|to| !state.controllers[*to].queue.contains(&request));
                actions.extend(free.map(|to| Action::Send { request, to }));
            }
        }
        if state.holder.is_some() && state.log.term().0 < self.bounds.terms {
            actions.push(Action::Expire);
        }
        actions.extend((0..state.stray.len()).map(Action::Arrive));
        for index in 0..CONTROLLERS {
            self.of_controller(state, index, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.step(&mut next, &action);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all(self)
    }
}

impl Writers {
    fn of_controller(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let controller = &state.controllers[index];
        match &controller.role {
            Role::Following => {
                actions.extend([Action::Apply(index), Action::PassOn(index)]);
                if state.holder.is_none() && state.log.term().0 < self.bounds.terms {
                    actions.push(Action::Acquire(index));
                }
            }
            Role::CatchingUp(_) => actions.extend([Action::Apply(index), Action::Begin(index)]),
            Role::Leading(_, Task::Idle) => {
                if !controller.queue.is_empty() {
                    actions.push(Action::Evaluate(index));
                }
                if state.holder != Some(index) {
                    actions.push(Action::StepDown(index));
                }
                if self.trimming != Trimming::Never {
                    actions.push(Action::Trim(index));
                }
            }
            Role::Leading(..) => {
                actions.push(Action::Call(index, Fate::Answered));
                if state.losses < self.bounds.losses {
                    actions.extend([Fate::AnswerLost, Fate::UnderWay].map(|fate| Action::Call(index, fate)));
                }
            }
        }
        if self.trimming != Trimming::Never {
            actions.extend([Action::Sync(index), Action::Report(index), Action::TakeSnapshot(index)]);
        }
        if state.crashes < self.bounds.crashes {
            actions.push(Action::Crash(index));
        }
    }
}
