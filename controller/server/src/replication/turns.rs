//! The turns of the groups of commands that a following controller passes on: a group leaves once the leading controller
//! has queued all groups before it. So commands of one queue keep their order, and no group waits for the answers to
//! another one.

use std::collections::BTreeMap;

use periapt_log::Term;
use tokio::sync::watch;

/// The groups that have not ended, by their numbers: each with the term of the controller that has queued it; none while no
/// controller that leads has it.
type Groups = BTreeMap<u64, Option<Term>>;

/// The turns that are given to groups, in the order in which their commands were taken.
#[derive(Default)]
pub(super) struct Turns {
    groups: watch::Sender<Groups>,
    next: u64,
}

/// The turn of one group. It ends when it is dropped: the group is answered, or is passed on no more.
pub(super) struct Turn {
    number: u64,
    groups: watch::Sender<Groups>,
}

impl Turns {
    /// Waits until each group is queued by a leading controller, or has ended.
    pub(super) async fn until_free(&self) {
        // The sender lives, so this does not fail.
        let _ = self.groups.subscribe().wait_for(|groups| groups.values().all(Option::is_some)).await;
    }

    /// Returns the turn of the next group.
    pub(super) fn next(&mut self) -> Turn {
        let turn = Turn { number: self.next, groups: self.groups.clone() };
        self.next += 1;
        turn.note(None);
        turn
    }
}

impl Turn {
    /// Returns the place of the group among all.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits until each group before is queued by the controller that leads in this term, or has ended.
    pub(super) async fn comes(&self, term: Term) {
        let all_before =
            |groups: &Groups| groups.range(..self.number).all(|(_, queued)| *queued == Some(term));
        let _ = self.groups.subscribe().wait_for(all_before).await;
    }

    /// Notes that the controller that leads in this term has queued the group.
    pub(super) fn queued(&self, term: Term) {
        self.note(Some(term));
    }

    /// Notes that the group is to be passed on again. Groups that have not left yet wait for it.
    pub(super) fn lost(&self) {
        self.note(None);
    }

    fn note(&self, queued: Option<Term>) {
        self.groups.send_modify(|groups| {
            groups.insert(self.number, queued);
        });
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.groups.send_modify(|groups| {
            groups.remove(&self.number);
        });
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
        let first = turns.next();
        first.comes(Term(1)).await;
        assert!(poll!(pin!(turns.until_free())).is_pending(), "nobody has queued the first group");
        first.queued(Term(1));
        turns.until_free().await;

        let second = turns.next();
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
        let (first, second) = (turns.next(), turns.next());
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

    #[tokio::test]
    async fn a_group_that_has_ended_lets_none_overtake_one_that_is_passed_on_again() {
        let mut turns = Turns::default();
        let (first, second, third) = (turns.next(), turns.next(), turns.next());
        first.queued(Term(1));
        second.queued(Term(1));
        first.lost();
        drop(second);
        assert!(
            poll!(pin!(third.comes(Term(2)))).is_pending(),
            "the next leader does not have the first group"
        );
        first.queued(Term(2));
        third.comes(Term(2)).await;
    }
}
