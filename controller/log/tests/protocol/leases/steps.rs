//! The steps. They follow `writer.rs`, `writer/journal.rs` and `replication/` of `controller/server`.

use periapt_host_api::{Level, Timestamp};
use periapt_log::{Announcement, Content, Entry, EntryId, LogHead, StoredEntry, Term};
use periapt_store::codec::{self, Writes};

use super::{
    Action, Answer, Granted, LAST_MS, Leases, Mutation, Next, Role, STEP_MS, State, TERMS, Waiting,
    scene::environment,
};

impl Leases {
    /// Takes a step, if it is possible.
    pub(super) fn step(&self, state: &mut State, action: &Action) -> Option<()> {
        let possible = |holds: bool| holds.then_some(());
        match *action {
            Action::TimePasses => {
                possible(state.now_ms < LAST_MS)?;
                state.now_ms += STEP_MS;
            }
            Action::Claim(unit) => {
                possible(state.units[unit].claim_ms.is_none())?;
                state.units[unit].claim_ms = Some(state.now_ms);
            }
            Action::Acquire(at) => {
                possible(state.log.term() < Term(TERMS) && state.controllers[at].role == Role::Following)?;
                state.controllers[at].role = Role::CatchingUp(state.log.begin_term());
            }
            Action::Begin(at) => {
                let Role::CatchingUp(term) = state.controllers[at].role else { return None };
                state.catch_up(at);
                let controller = &mut state.controllers[at];
                controller.role = if controller.head.is_past(term) {
                    Role::Following
                } else {
                    let next = next(&controller.head, term, Content::Term(Announcement::default()));
                    Role::Leading(term, Some(Waiting { next: Some(next), claim: None }))
                };
            }
            Action::Evaluate { at, unit } => self.evaluate(state, at, unit)?,
            Action::Call(at) => self.call(state, at)?,
        }
        Some(())
    }

    fn evaluate(&self, state: &mut State, at: usize, unit: usize) -> Option<()> {
        let controller = &mut state.controllers[at];
        let Role::Leading(term, None) = controller.role else { return None };
        let sent_ms = state.units[unit].claim_ms?;
        let env = environment(at, state.now_ms);
        let (changes, granted) = self.scene.claim(&controller.known, unit, &env);
        let answer = Answer { unit, sent_ms, granted };
        let after = controller.known.with(controller.known.root.apply(&changes, controller.head.position));
        if changes.stores_nothing() && self.mutation == Mutation::NoConfirmation {
            controller.known = after;
            state.answer(answer);
            return Some(());
        }
        let entry = (!changes.stores_nothing()).then(|| {
            let batch = codec::batch(controller.head.position, [Writes::of(&changes).unwrap()]);
            let content = Content::Batch { entities: batch.entities, records: batch.records };
            next(&controller.head, term, content)
        });
        let claim = Some((answer, after));
        controller.role = Role::Leading(term, Some(Waiting { next: entry, claim }));
        Some(())
    }

    fn call(&self, state: &mut State, at: usize) -> Option<()> {
        let controller = &mut state.controllers[at];
        let Role::Leading(term, Some(waiting)) = controller.role.clone() else { return None };
        let done = match &waiting.next {
            Some(next) => state.log.append(term, next.position, next.bytes.clone()),
            None => state.log.confirm(term),
        };
        if done.is_err() {
            // Nothing of it happened, and the claim is passed on.
            controller.role = Role::Following;
            return Some(());
        }
        controller.role = Role::Leading(term, None);
        if let Some(next) = waiting.next {
            controller.head = next.head;
        }
        match waiting.claim {
            Some((answer, known)) => {
                controller.known = known;
                state.answer(answer);
            }
            None if self.mutation == Mutation::NoFullLeases => {}
            None => {
                let env = environment(at, state.now_ms);
                let root = controller.known.root.restart(env.now, env.lease_now_ms);
                controller.known = controller.known.with(root);
            }
        }
        Some(())
    }
}

impl State {
    /// Applies all entries that the log has.
    fn catch_up(&mut self, at: usize) {
        let controller = &mut self.controllers[at];
        for StoredEntry { position, bytes } in self.log.read(controller.head.position, usize::MAX).unwrap() {
            let entry = Entry::decode(position, &bytes).unwrap();
            controller.head = controller.head.after(position, &entry, &bytes).unwrap();
            let changes = codec::writes(&entry.into_batch(position, &controller.head)).unwrap();
            controller.known = controller.known.with(controller.known.root.replay(&changes, position));
        }
    }

    /// Answers a claim. The agent counts from when it sent it.
    fn answer(&mut self, Answer { unit, sent_ms, granted }: Answer) {
        let unit = &mut self.units[unit];
        unit.claim_ms = unit.claim_ms.filter(|claim| *claim != sent_ms);
        if let Granted::For(seconds) = granted {
            unit.until_ms = unit.until_ms.max(sent_ms + u64::from(seconds) * 1_000);
        }
    }
}

fn next(head: &LogHead, term: Term, content: Content) -> Next {
    let id = EntryId(uuid::Uuid::from_u64_pair(term.0, head.position.0));
    let next = head.next_entry((id, term), (Timestamp::UNIX_EPOCH, Level::FIRST), content);
    next.unwrap().into()
}
