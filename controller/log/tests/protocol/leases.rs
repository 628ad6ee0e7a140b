//! Two units that claim the leadership of their application at two controllers, on the agents' clocks. Claims
//! are evaluated by the controller's own model.

mod scene;
mod steps;

use periapt_host_api::{Revision, timing::LEASE_SECONDS};
use periapt_log::{LogHead, LogState, NextEntry, Term};
use stateright::{Model, Property};

use crate::{
    breaks, explored,
    leases::scene::{Known, Scene},
};

/// A step of time, in milliseconds.
const STEP_MS: u64 = LEASE_SECONDS as u64 * 500;

/// The end of the search: time enough for a lease to end, and for renewals beside the next one.
const LAST_MS: u64 = 3 * STEP_MS;

/// The number of terms.
const TERMS: u64 = 2;

const H6: &str = "H6: one unit at a time believes that it leads";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    None,
    /// A renewal, which writes nothing, is answered without a confirmed term.
    NoConfirmation,
    /// A controller that begins to lead counts with no lease but those that it knows.
    NoFullLeases,
}

struct Leases {
    mutation: Mutation,
    scene: Scene,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    now_ms: u64,
    log: LogState,
    controllers: [Controller; 2],
    units: [Unit; 2],
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Unit {
    /// The time until which its agent counts on the lease, on its own clock.
    until_ms: u64,
    /// The time at which the claim that is under way was sent. Any controller that leads may get it.
    claim_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Controller {
    head: LogHead,
    known: Known,
    role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "there are two of them in a state")]
enum Role {
    Following,
    /// It has a term, and has not read the log to its end.
    CatchingUp(Term),
    Leading(Term, Option<Waiting>),
}

/// The work with which a writer waits for the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Waiting {
    /// The entry that it appends; none if it confirms its term.
    next: Option<Next>,
    /// The claim that is answered, and the state afterwards. The first entry of a term answers none.
    claim: Option<(Answer, Known)>,
}

/// An entry that a writer appends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Next {
    position: Revision,
    bytes: bytes::Bytes,
    head: LogHead,
}

impl From<NextEntry> for Next {
    fn from(NextEntry { position, bytes, head, .. }: NextEntry) -> Self {
        Self { position, bytes, head }
    }
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Answer {
    unit: usize,
    sent_ms: u64,
    granted: Granted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Granted {
    /// For so many seconds.
    For(u32),
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    TimePasses,
    /// The agent of a unit sends a claim.
    Claim(usize),
    /// The leadership runs out, and a controller takes it.
    Acquire(usize),
    /// A controller reads the log to its end, and appends the first entry of its term.
    Begin(usize),
    Evaluate {
        at: usize,
        unit: usize,
    },
    Call(usize),
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let head = LogHead::empty(scene::LOG);
        let controller = Controller { head, known: self.scene.known(), role: Role::Following };
        vec![State {
            now_ms: 0,
            log: LogState::default(),
            controllers: [controller.clone(), controller],
            units: Default::default(),
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        actions.push(Action::TimePasses);
        for index in 0..2 {
            actions.extend([
                Action::Claim(index),
                Action::Acquire(index),
                Action::Begin(index),
                Action::Call(index),
            ]);
            actions.extend((0..2).map(|unit| Action::Evaluate { at: index, unit }));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.step(&mut next, &action)?;
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let both_led = |_: &Self, state: &State| state.units.iter().all(|unit| unit.until_ms > 0);
        vec![
            Property::always(H6, |_, state: &State| {
                state.units.iter().filter(|unit| unit.until_ms > state.now_ms).count() <= 1
            }),
            Property::sometimes("both units lead, one after the other", both_led),
            Property::sometimes("a unit leads on in the last term", |_, state: &State| {
                state.log.term() == Term(TERMS)
                    && state.controllers.iter().any(|one| one.head.term == Term(TERMS))
                    && state.units.iter().any(|unit| unit.until_ms > state.now_ms)
            }),
        ]
    }
}

fn leases(mutation: Mutation) -> Leases {
    Leases { mutation, scene: Scene::new() }
}

#[test]
fn no_two_units_lead_at_a_time_whatever_controllers_do() {
    assert!(explored(leases(Mutation::None)) > 10_000);
}

#[test]
fn a_renewal_without_a_confirmed_term_lets_two_units_lead() {
    breaks(leases(Mutation::NoConfirmation), &[H6]);
}

#[test]
fn a_takeover_that_forgets_leases_lets_two_units_lead() {
    breaks(leases(Mutation::NoFullLeases), &[H6]);
}
