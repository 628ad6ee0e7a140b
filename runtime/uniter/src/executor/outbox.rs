//! The early effects of one unit's hooks, in one numbered sequence together with its commits.

use std::{collections::VecDeque, time::Duration};

use periapt_host_api::{
    Timestamp,
    commit::{EarlyEffect, EarlyItem},
};

use super::{Executor, ExecutorCommand, SendOutcome, Step};
use crate::Backoff;

mod weight;

pub use weight::early_bytes;

/// The wait of an early effect for a commit that can include it (`docs/design/commit.md`), so that a short
/// hook costs one request.
const WAITS: Duration = Duration::from_millis(50);

/// The most bytes of items in one message, as JSON, so that the items fit beside the largest commit.
const BATCH: usize = 512 << 10;

/// The outbox of one unit. Items are sent in order, by the outbox or by a commit, but never by both at once.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    next: u64,
    unsent: VecDeque<EarlyItem>,
    /// The time since which the first item waits.
    since: Option<Duration>,
    sending: Option<Sending>,
}

/// A batch without an answer.
#[derive(Debug, Clone)]
struct Sending {
    items: Vec<EarlyItem>,
    rest: Remainder,
    backoff: Backoff,
    /// The time of the next attempt; none while one is in flight.
    again_at: Option<Duration>,
}

/// The items that did not fit into a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remainder {
    /// They are sent as soon as the message is answered.
    Follows,
    /// A commit takes them along, or there are none.
    Waits,
}

impl Outbox {
    /// Creates the outbox after the last number that the controller has.
    pub(super) fn new(last_number: u64) -> Self {
        Self { next: last_number.saturating_add(1), unsent: VecDeque::new(), since: None, sending: None }
    }

    /// Adds effects, in order. The driver gets them at once, in case its process dies.
    pub(super) fn push(
        &mut self,
        effects: impl IntoIterator<Item = (Timestamp, EarlyEffect)>,
        step: &mut Step<'_>,
    ) {
        let (mut noted, mut bytes) = (vec![Vec::new()], 0);
        for (at, effect) in effects {
            let item = EarlyItem { number: self.next, at, effect };
            self.next = self.next.saturating_add(1);
            self.unsent.push_back(item.clone());
            bytes += early_bytes(&item);
            if bytes > BATCH {
                bytes = early_bytes(&item);
                noted.push(Vec::new());
            }
            if let Some(message) = noted.last_mut() {
                message.push(item);
            }
        }
        noted.retain(|message| !message.is_empty());
        if !noted.is_empty() {
            self.since.get_or_insert(step.now.steady);
        }
        for items in noted {
            step.command(ExecutorCommand::Note(items));
        }
    }

    /// Returns true if no item waits. Items in flight do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.unsent.is_empty()
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Returns the time at which waiting items are sent, unless a commit includes them.
    pub(super) fn due(&self) -> Option<Duration> {
        match self.sending {
            Some(_) => self.sends_again_at(),
            None => self.since.map(|since| since.saturating_add(WAITS)),
        }
    }

    /// Returns the time of the next attempt for an unanswered batch.
    pub(super) fn sends_again_at(&self) -> Option<Duration> {
        self.sending.as_ref().and_then(|sending| sending.again_at)
    }

    /// Takes the oldest items that fit into one message. Also returns true if more remain.
    fn batch(&mut self, now: Duration) -> (Vec<EarlyItem>, bool) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(item) = self.unsent.front() {
            bytes += early_bytes(item);
            if !batch.is_empty() && bytes > BATCH {
                break;
            }
            batch.extend(self.unsent.pop_front());
        }
        let more = !self.unsent.is_empty();
        self.since = more.then_some(now);
        (batch, more)
    }

    /// Takes the last items, for a commit. Returns none while earlier ones must be sent first.
    pub(super) fn take(&mut self, step: &mut Step<'_>) -> Option<Vec<EarlyItem>> {
        if self.is_sending() {
            return None;
        }
        let (batch, more) = self.batch(step.now.steady);
        if !more {
            return Some(batch);
        }
        self.deliver(batch, Remainder::Waits, step);
        None
    }

    /// Restores the items of a commit that had no effect.
    pub(super) fn put_back(&mut self, taken: Vec<EarlyItem>, step: &mut Step<'_>) {
        if taken.is_empty() {
            return;
        }
        for item in taken.into_iter().rev() {
            self.unsent.push_front(item);
        }
        self.since.get_or_insert(step.now.steady);
    }

    /// Sends the waiting items. Returns true if a batch is in flight.
    pub(super) fn send(&mut self, step: &mut Step<'_>) -> bool {
        if !self.is_sending() && !self.is_empty() {
            let (batch, more) = self.batch(step.now.steady);
            self.deliver(batch, if more { Remainder::Follows } else { Remainder::Waits }, step);
        }
        self.is_sending()
    }

    fn deliver(&mut self, items: Vec<EarlyItem>, rest: Remainder, step: &mut Step<'_>) {
        step.command(ExecutorCommand::SendEarly(items.clone()));
        self.sending = Some(Sending { items, rest, backoff: Backoff::network(), again_at: None });
    }
}

impl Executor {
    /// Sends the items whose wait is over, and repeats an unanswered batch.
    pub(super) fn send_what_is_due(&mut self, step: &mut Step<'_>) {
        let now = step.now.steady;
        if let Some(sending) = &mut self.outbox.sending {
            if sending.again_at.is_some_and(|at| at <= now) {
                sending.again_at = None;
                step.command(ExecutorCommand::SendEarly(sending.items.clone()));
            }
        } else if !self.is_committing() && self.outbox.due().is_some_and(|due| due <= now) {
            self.outbox.send(step);
        }
    }

    /// Handles the answer to a batch. Refused items are dropped.
    pub(super) fn early_answered(&mut self, answer: &SendOutcome, step: &mut Step<'_>) {
        let Some(sending) = &mut self.outbox.sending else { return };
        if sending.again_at.is_some() {
            return;
        }
        if *answer == SendOutcome::Unreachable {
            sending.again_at = Some(step.now.steady.saturating_add(sending.backoff.failed()));
            return;
        }
        let rest = sending.rest;
        self.outbox.sending = None;
        // A commit may wait for that, or the end of the unit.
        if self.is_committing() {
            self.send_commit(step);
        } else {
            if rest == Remainder::Follows {
                self.outbox.send(step);
            }
            self.stop_when_all_is_sent(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ErrorCode, Refusal, logs::LogLevel, view::View};

    use super::*;
    use crate::executor::{ExecutorInput, Now, Options};

    /// An executor that has not started, and the time.
    struct StartedExecutor {
        executor: Executor,
        now: Duration,
    }

    impl StartedExecutor {
        fn new() -> Self {
            let options = Options {
                unit: "app/0".parse().unwrap(),
                incarnation: periapt_host_api::Incarnation(7),
                engine: "none".into(),
                last_number: 10,
            };
            Self { executor: Executor::new(options), now: Duration::ZERO }
        }

        fn at(&self) -> Now {
            Now { wall: Timestamp::UNIX_EPOCH, timer: Timestamp::UNIX_EPOCH, steady: self.now }
        }

        fn feed(&mut self, input: ExecutorInput) -> Vec<ExecutorCommand> {
            self.executor.handle(input, &View::default(), self.at())
        }

        fn say(&mut self, lines: impl IntoIterator<Item = String>) -> Vec<ExecutorCommand> {
            let effect = |message| EarlyEffect::Log {
                level: LogLevel::Info,
                module: "unit.app/0.juju-log".to_owned(),
                message,
            };
            let lines = lines.into_iter().map(|line| (Timestamp::UNIX_EPOCH, effect(line)));
            self.feed(ExecutorInput::Said(lines.collect()))
        }

        fn pass(&mut self, milliseconds: u64) -> Vec<ExecutorCommand> {
            self.now += Duration::from_millis(milliseconds);
            self.feed(ExecutorInput::Woken)
        }

        /// Returns the items that a commit would include now.
        fn take(&mut self) -> Option<Vec<EarlyItem>> {
            let (view, now) = (View::default(), self.at());
            let mut step = Step { view: &view, now, commands: Vec::new() };
            self.executor.outbox.take(&mut step)
        }
    }

    fn numbers(items: &[EarlyItem]) -> Vec<u64> {
        items.iter().map(|item| item.number).collect()
    }

    fn sent(commands: &[ExecutorCommand]) -> Vec<Vec<EarlyItem>> {
        let sent = |command: &ExecutorCommand| match command {
            ExecutorCommand::SendEarly(items) => Some(items.clone()),
            _ => None,
        };
        commands.iter().filter_map(sent).collect()
    }

    fn noted(commands: &[ExecutorCommand]) -> Vec<Vec<EarlyItem>> {
        let noted = |command: &ExecutorCommand| match command {
            ExecutorCommand::Note(items) => Some(items.clone()),
            _ => None,
        };
        commands.iter().filter_map(noted).collect()
    }

    #[test]
    fn what_no_commit_takes_along_is_sent_after_fifty_milliseconds() {
        let mut executor = StartedExecutor::new();
        assert_eq!(
            numbers(&noted(&executor.say(["one".to_owned()]))[0]),
            [11],
            "the keeper hears of it at once"
        );
        assert!(sent(&executor.pass(30)).is_empty());
        executor.say(["two".to_owned()]);
        assert!(sent(&executor.pass(19)).is_empty());
        assert_eq!(numbers(&sent(&executor.pass(1))[0]), [11, 12]);
        assert!(sent(&executor.pass(1_000)).is_empty(), "it is under way");
    }

    #[test]
    fn a_commit_takes_along_what_waits_and_a_refused_one_gives_it_back() {
        let mut executor = StartedExecutor::new();
        executor.say(["one".to_owned(), "two".to_owned()]);
        let taken = executor.take().unwrap();
        assert_eq!(numbers(&taken), [11, 12]);
        assert!(sent(&executor.pass(1_000)).is_empty());
        executor.say(["three".to_owned()]);
        let (view, now) = (View::default(), executor.at());
        let mut step = Step { view: &view, now, commands: Vec::new() };
        executor.executor.outbox.put_back(taken, &mut step);
        assert_eq!(numbers(&sent(&executor.pass(50))[0]), [11, 12, 13]);
    }

    #[test]
    fn nothing_passes_what_was_sent_before_it() {
        let mut executor = StartedExecutor::new();
        executor.say(["one".to_owned()]);
        let first = sent(&executor.pass(50));
        executor.say(["two".to_owned()]);
        // The same batch is repeated, with doubling waits, until the controller answers.
        for wait in [50, 100, 200] {
            executor.feed(ExecutorInput::EarlyAnswered(SendOutcome::Unreachable));
            assert_eq!(executor.take(), None, "a commit waits for it");
            assert!(sent(&executor.pass(wait - 1)).is_empty());
            assert_eq!(sent(&executor.pass(1)), first);
        }
        executor.feed(ExecutorInput::EarlyAnswered(SendOutcome::Accepted));
        assert_eq!(numbers(&executor.take().unwrap()), [12]);
    }

    #[test]
    fn what_the_controller_refuses_is_dropped() {
        let mut executor = StartedExecutor::new();
        executor.say(["one".to_owned()]);
        executor.pass(50);
        let refusal = Refusal::new(ErrorCode::PermissionDenied, "not yours");
        executor.feed(ExecutorInput::EarlyAnswered(SendOutcome::Refused(refusal)));
        assert_eq!(executor.take(), Some(Vec::new()));
    }

    /// Returns all batches of the waiting items. The last one goes with a commit.
    fn pieces(executor: &mut StartedExecutor) -> Vec<Vec<EarlyItem>> {
        let mut pieces = Vec::new();
        loop {
            let (view, now) = (View::default(), executor.at());
            let mut step = Step { view: &view, now, commands: Vec::new() };
            if let Some(last) = executor.executor.outbox.take(&mut step) {
                pieces.push(last);
                return pieces;
            }
            pieces.extend(sent(&step.commands));
            executor.feed(ExecutorInput::EarlyAnswered(SendOutcome::Accepted));
        }
    }

    #[test]
    fn a_flood_leaves_in_pieces_and_in_order() {
        let mut executor = StartedExecutor::new();
        let commands = executor.say((0..100).map(|_| "x".repeat(16 << 10)));
        let pieces = pieces(&mut executor);
        let all: Vec<u64> = pieces.iter().flat_map(|items| numbers(items)).collect();
        assert_eq!(all, (11..111).collect::<Vec<_>>());
        assert!(pieces.len() > 2 && pieces.last().unwrap().len() < 40, "{}", pieces.len());
        let noted: Vec<u64> = noted(&commands).iter().flat_map(|items| numbers(items)).collect();
        assert_eq!(noted, all);
        assert!(executor.executor.has_sent_all());
    }

    #[test]
    fn a_flood_that_no_commit_takes_along_leaves_at_once_piece_by_piece() {
        let mut executor = StartedExecutor::new();
        executor.say((0..100).map(|_| "x".repeat(16 << 10)));
        let mut pieces = sent(&executor.pass(50));
        loop {
            let next = sent(&executor.feed(ExecutorInput::EarlyAnswered(SendOutcome::Accepted)));
            if next.is_empty() {
                break;
            }
            pieces.extend(next);
        }
        let all: Vec<u64> = pieces.iter().flat_map(|items| numbers(items)).collect();
        assert_eq!(all, (11..111).collect::<Vec<_>>());
        assert!(executor.executor.has_sent_all());
    }

    #[test]
    fn text_that_grows_when_it_is_written_still_fits_into_messages() {
        /// A quarter of the keeper's limit for one message.
        const FITS: usize = 1 << 20;
        let mut executor = StartedExecutor::new();
        // The largest log of one hook, written at once.
        let commands = executor.say((0..64).map(|_| "\u{1}".repeat(16 << 10)));
        let pieces = pieces(&mut executor);
        for items in pieces.iter().chain(&noted(&commands)) {
            assert!(serde_json::to_vec(items).unwrap().len() < FITS);
        }
        let all: Vec<u64> = pieces.iter().flat_map(|items| numbers(items)).collect();
        assert_eq!(all, (11..75).collect::<Vec<_>>());
    }
}
