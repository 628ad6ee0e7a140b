//! The turns of the groups of commands that a following controller passes on: a group leaves once the leading controller
//! has queued all groups before it. So commands of one queue keep their order, and no group waits for the answers to
//! another one.

use periapt_log::Term;
use tokio::sync::watch;

/// The term of the controller that has queued a group; none while no controller that leads has it.
type Queued = Option<Term>;

/// The turns that are given to groups, in the order in which their commands were taken.
pub(super) struct Turns {
    /// The state of the last group. Its sender goes with the group.
    last: watch::Receiver<Queued>,
    next: u64,
}

/// The turn of one group. It ends when it is dropped: the group is answered, or is passed on no more.
pub(super) struct Turn {
    number: u64,
    before: watch::Receiver<Queued>,
    own: watch::Sender<Queued>,
}

impl Default for Turns {
    fn default() -> Self {
        // Its sender is gone, as that of a group that has ended.
        Self { last: watch::channel(None).1, next: 0 }
    }
}

impl Turns {
    /// Waits until the last group is queued by a leading controller, or has ended.
    pub(super) async fn until_free(&mut self) {
        // An error is the end of the group.
        let _ = self.last.wait_for(Option::is_some).await;
    }

    /// Returns the turn of the next group.
    pub(super) fn next(&mut self) -> Turn {
        let (own, last) = watch::channel(None);
        let (number, before) = (self.next, std::mem::replace(&mut self.last, last));
        self.next += 1;
        Turn { number, before, own }
    }
}

impl Turn {
    /// Returns the place of the group among all.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits until the group before is queued by the controller that leads in this term, or has ended.
    pub(super) async fn comes(&mut self, term: Term) {
        let _ = self.before.wait_for(|queued| *queued == Some(term)).await;
    }

    /// Notes that the controller that leads in this term has queued the group.
    pub(super) fn queued(&self, term: Term) {
        self.own.send_replace(Some(term));
    }

    /// Notes that the group is to be passed on again. Groups that have not left yet wait for it.
    pub(super) fn lost(&self) {
        self.own.send_replace(None);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn a_group_leaves_once_the_one_before_is_queued_by_the_same_leader_and_not_before() {
        let mut turns = Turns::default();
        turns.until_free().await;
        let mut first = turns.next();
        first.comes(Term(1)).await;
        assert!(poll!(pin!(turns.until_free())).is_pending(), "nobody has queued the first group");
        first.queued(Term(1));
        turns.until_free().await;

        let mut second = turns.next();
        second.comes(Term(1)).await;
        assert!(
            poll!(pin!(second.comes(Term(2)))).is_pending(),
            "the next leader does not have the first group"
        );
        first.lost();
        assert!(poll!(pin!(second.comes(Term(1)))).is_pending());
        first.queued(Term(2));
        second.comes(Term(2)).await;
        assert!(first.number() < second.number());
    }

    #[tokio::test]
    async fn a_group_that_has_ended_holds_up_no_other() {
        let mut turns = Turns::default();
        let (first, mut second) = (turns.next(), turns.next());
        {
            let mut comes = pin!(second.comes(Term(7)));
            assert!(poll!(&mut comes).is_pending());
            drop(first);
            comes.await;
        }
        drop(second);
        turns.until_free().await;
        turns.next().comes(Term(8)).await;
    }
}
