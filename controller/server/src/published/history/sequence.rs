//! The former states of one part.

use std::collections::VecDeque;

use periapt_host_api::Revision;
use tokio::time::Instant;

/// A former state.
#[derive(Debug)]
pub(super) struct FormerState<T> {
    /// The state.
    pub(super) state: T,
    /// The revision of the state that replaced it.
    pub(super) until: Revision,
    /// The time of that.
    pub(super) replaced_at: Instant,
    /// The memory that it alone holds, in bytes.
    pub(super) weight: usize,
}

/// The former states of one part, the oldest first.
#[derive(Debug)]
pub(super) struct Sequence<T> {
    states: VecDeque<FormerState<T>>,
    /// The end of the states that were dropped for their weight. They count as old once the last of them is.
    forgotten: Option<(Revision, Instant)>,
    weight: usize,
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self { states: VecDeque::new(), forgotten: None, weight: 0 }
    }
}

impl<T: Clone> Sequence<T> {
    /// Adds a state that was replaced now.
    pub(super) fn push(&mut self, state: FormerState<T>) {
        self.weight = self.weight.saturating_add(state.weight);
        self.states.push_back(state);
    }

    /// Returns the state at a revision; none if it was forgotten.
    pub(super) fn at(&self, revision: Revision, newest: impl FnOnce() -> T) -> Option<T> {
        if self.forgotten.is_some_and(|(until, _)| revision < until) {
            return None;
        }
        let next = self.states.partition_point(|state| state.until <= revision);
        Some(self.states.get(next).map_or_else(newest, |state| state.state.clone()))
    }

    /// Drops the oldest state for its weight, and remembers that there was one.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(FormerState { until, replaced_at, weight, .. }) = self.states.pop_front() {
            self.weight = self.weight.saturating_sub(weight);
            self.forgotten = Some((until, replaced_at));
        }
    }

    /// Drops the oldest state for its age. Returns the revision of the state that replaced it.
    pub(super) fn drop_oldest(&mut self) -> Option<Revision> {
        if let Some((until, _)) = self.forgotten.take() {
            return Some(until);
        }
        let gone = self.states.pop_front()?;
        self.weight = self.weight.saturating_sub(gone.weight);
        Some(gone.until)
    }

    /// Returns the time at which the oldest state was replaced; none if there is no state.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let oldest = self.states.front().map(|state| state.replaced_at);
        self.forgotten.map(|(_, at)| at).or(oldest)
    }

    /// Returns the memory that the states alone hold, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }
}
