//! The steps. Where the controller has a pure function for a step, this calls it; the others follow
//! `writer/journal.rs` and `replication/replica.rs` of `controller/server`.

use std::collections::BTreeSet;

use periapt_host_api::{Level, Revision, Timestamp};
use periapt_log::{
    AfterFailure, Announcement, Content, Entry, EntryId, LogError, LogHead, LogWindow, MemberProgress,
    NextEntry, Term, UnansweredCall, trimmable,
};

use super::{
    actions::{Action, Fate},
    laws,
    state::{Answers, Append, Mutation, Request, Role, State, Task, Trimming, Writers, key_of},
};

impl Writers {
    /// Takes a step. One that is not possible changes nothing.
    pub(super) fn step(&self, state: &mut State, action: &Action) {
        match *action {
            Action::Send { request, to } => {
                state.clients[request].sent += 1;
                state.controllers[to].queue.insert(request);
            }
            Action::PassOn(index) => {
                if let Role::Leading(..) = state.controllers[1 - index].role {
                    let jobs = std::mem::take(&mut state.controllers[index].queue);
                    state.controllers[1 - index].queue.extend(jobs);
                }
            }
            Action::Expire => state.holder = None,
            Action::Acquire(index) => {
                state.holder = Some(index);
                state.controllers[index].role = Role::CatchingUp(state.log.begin_term());
            }
            Action::Apply(index) => apply(state, index),
            Action::Begin(index) => begin(state, index),
            Action::Evaluate(index) => self.evaluate(state, index),
            Action::Call(index, fate) => self.call(state, index, fate),
            Action::Arrive(number) => {
                let append = state.stray.iter().nth(number).unwrap().clone();
                state.stray.remove(&append);
                // Its sender does not hear of it.
                let _ = self.append(state, append);
            }
            Action::StepDown(index) => state.controllers[index].role = Role::Following,
            Action::Sync(index) => {
                let controller = &mut state.controllers[index];
                controller.disk = controller.store.clone();
            }
            Action::Report(index) => {
                let controller = &state.controllers[index];
                let (applied, durable) = (controller.store.head.position, controller.disk.head.position);
                let durable = if self.mutation == Mutation::TrimsApplied { applied } else { durable };
                state.reports[index] = MemberProgress { applied, durable };
            }
            Action::Trim(index) => self.trim(state, index),
            Action::TakeSnapshot(index) => take_snapshot(state, index),
            Action::Crash(index) => {
                state.crashes += 1;
                let controller = &mut state.controllers[index];
                controller.store = controller.disk.clone();
                (controller.role, controller.queue) = (Role::Following, BTreeSet::new());
            }
        }
    }

    /// Evaluates all that waits, in one batch.
    fn evaluate(&self, state: &mut State, index: usize) {
        let end = state.log.end();
        let controller = &mut state.controllers[index];
        let Role::Leading(term, Task::Idle) = controller.role else { return };
        let requests = std::mem::take(&mut controller.queue);
        let is_new = |request: &usize| {
            self.requests[*request] == Request::Write
                && (self.mutation == Mutation::NoRequestId
                    || !controller.store.entities.contains_key(&key_of(*request)))
        };
        let entities: Vec<_> =
            requests.iter().copied().filter(is_new).map(|request| (key_of(request), Some(vec![1]))).collect();
        let answers = Answers { requests, end };
        let call = UnansweredCall::new(term);
        let task = match entities.is_empty() {
            true if self.mutation == Mutation::NoConfirmation => {
                answer(state, index, &answers);
                Task::Idle
            }
            true => Task::Confirming { answers, call },
            false => {
                let content = Content::Batch { entities, records: Vec::new() };
                let (append, head) = next(&controller.store.head, term, content);
                Task::Appending { append, head, answers, call }
            }
        };
        state.controllers[index].role = Role::Leading(term, task);
    }

    /// Has the log take the call that a writer waits for.
    fn call(&self, state: &mut State, index: usize, fate: Fate) {
        let Role::Leading(term, task) = state.controllers[index].role.clone() else { return };
        let done = match (&task, fate) {
            (Task::Idle, _) => return,
            (Task::Appending { append, .. }, Fate::UnderWay) => {
                state.stray.insert(append.clone());
                Ok(())
            }
            (Task::Appending { append, .. }, _) => self.append(state, append.clone()),
            (Task::Confirming { .. }, _) => state.log.confirm(term),
        };
        let done = match fate {
            Fate::Answered => done,
            Fate::AnswerLost | Fate::UnderWay => {
                state.losses += 1;
                Err(LogError::Unavailable("no answer".into()))
            }
        };
        let role = match (task, done) {
            (Task::Idle, _) => return,
            (Task::Appending { append, head, answers, .. }, Ok(())) => {
                take_entry(state, index, append.position, &append.bytes, Some(head));
                answer(state, index, &answers);
                Role::Leading(term, Task::Idle)
            }
            (Task::Confirming { answers, .. }, Ok(())) => {
                answer(state, index, &answers);
                Role::Leading(term, Task::Idle)
            }
            (mut task, Err(failure)) => {
                let (Task::Appending { call, answers, .. } | Task::Confirming { call, answers }) = &mut task
                else {
                    return;
                };
                match call.failed(failure) {
                    AfterFailure::Repeat(_) => Role::Leading(term, task),
                    // Their clients are told that the outcome is not known.
                    AfterFailure::Unknown(_) => Role::Following,
                    // Nothing of them happened: they are passed on.
                    AfterFailure::Deposed(_) | AfterFailure::Refused(_) => {
                        state.controllers[index].queue.extend(&answers.requests);
                        Role::Following
                    }
                }
            }
        };
        state.controllers[index].role = role;
    }

    /// Appends to the log, as far as the protocol is not mutated, and folds it.
    fn append(&self, state: &mut State, append: Append) -> Result<(), LogError> {
        let (before, newest) = (state.log.end(), state.log.term());
        let term = match self.mutation {
            Mutation::NoTerm | Mutation::NoFence => newest,
            _ => append.term,
        };
        let position = match self.mutation {
            Mutation::NoPosition | Mutation::NoFence => Revision(before.0 + 1),
            _ => append.position,
        };
        state.log.append(term, position, append.bytes.clone())?;
        if state.log.end() == before {
            return Ok(());
        }
        let entry = Entry::decode(position, &append.bytes).unwrap();
        match state.seen.tail.after(position, &entry, &append.bytes) {
            Ok(tail) if entry.term == newest => state.seen.tail = tail,
            _ => drop(state.seen.breach.get_or_insert(laws::H3)),
        }
        if let Content::Batch { entities, .. } = entry.content {
            for (key, _) in entities {
                state.seen.written[usize::from(key[1])] += 1;
            }
        }
        Ok(())
    }

    fn trim(&self, state: &mut State, index: usize) {
        let Role::Leading(term, Task::Idle) = state.controllers[index].role else { return };
        let end = state.controllers[index].store.head.position;
        let own = match self.mutation {
            Mutation::TrimsApplied => end,
            _ => state.controllers[index].disk.head.position,
        };
        let bound = match self.trimming {
            Trimming::Bounded(fit) => Revision(end.0.saturating_sub(fit)),
            Trimming::Never | Trimming::Unneeded => Revision(0),
        };
        let window = LogWindow { spared: end, bound };
        if let Some(part) = trimmable(own, 1, &[state.reports[1 - index]], window) {
            // A deposed controller trims nothing.
            let _ = state.log.trim(term, part.through);
        }
        let trimmed = state.log.trimmed();
        state.seen.was_cut_off |= state.controllers[1 - index].store.head.position < trimmed;
    }
}

/// Makes the append of the entry after an end.
fn next(head: &LogHead, term: Term, content: Content) -> (Append, LogHead) {
    // A term has one writer, which appends one entry at a place.
    let id = EntryId(uuid::Uuid::from_u64_pair(term.0, head.position.0));
    let next = head.next_entry((id, term), (Timestamp::UNIX_EPOCH, Level::FIRST), content);
    let NextEntry { position, bytes, head, .. } = next.unwrap();
    (Append { term, position, bytes }, head)
}

/// Applies the next entry of the log.
fn apply(state: &mut State, index: usize) {
    let head = &state.controllers[index].store.head;
    let Some(bytes) = state.log.entry(Revision(head.position.0 + 1)).cloned() else { return };
    let position = Revision(head.position.0 + 1);
    take_entry(state, index, position, &bytes, None);
}

/// Brings a store to an entry. `head` is the end after it, if it is known.
fn take_entry(state: &mut State, index: usize, position: Revision, bytes: &[u8], head: Option<LogHead>) {
    let entry = Entry::decode(position, bytes).unwrap();
    let store = &mut state.controllers[index].store;
    store.head = head.unwrap_or_else(|| store.head.after(position, &entry, bytes).unwrap());
    if let Content::Batch { entities, .. } = entry.content {
        store.entities.extend(entities.into_iter().filter_map(|(key, value)| Some((key, value?))));
    }
}

/// Begins a term, if the controller has read the log to its end.
fn begin(state: &mut State, index: usize) {
    let controller = &mut state.controllers[index];
    let Role::CatchingUp(term) = controller.role else { return };
    let head = controller.store.head.clone();
    if head.is_past(term) {
        controller.role = Role::Following;
        return;
    }
    if state.log.read(head.position, usize::MAX) != Ok(Vec::new()) {
        return;
    }
    let (append, head) = next(&head, term, Content::Term(Announcement::default()));
    let task = Task::Appending { append, head, answers: Answers::default(), call: UnansweredCall::new(term) };
    controller.role = Role::Leading(term, task);
}

/// Takes the state of the controller that leads, if it is newer. Its stored form replaces what is on the disk.
fn take_snapshot(state: &mut State, index: usize) {
    let head = state.controllers[index].store.head.position;
    let trimmed = matches!(state.log.read(head, 1), Err(LogError::Trimmed(_)));
    if let (true, Role::Leading(..)) = (trimmed, &state.controllers[1 - index].role) {
        let store = state.controllers[1 - index].store.clone();
        if store.head.position <= head {
            return;
        }
        let controller = &mut state.controllers[index];
        (controller.store, controller.disk) = (store.clone(), store);
        controller.role = Role::Following;
    }
}

/// Answers requests from the present state of a controller.
fn answer(state: &mut State, index: usize, answers: &Answers) {
    let head = state.controllers[index].store.head.position;
    if head < answers.end {
        state.seen.breach.get_or_insert(laws::H2);
    }
    for request in &answers.requests {
        state.clients[*request].answered = true;
    }
}
