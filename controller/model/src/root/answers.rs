//! Kept answers in the root, and their indexes.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use periapt_host_api::{RequestId, Timestamp, UserName};

use super::Root;
use crate::entity::{AnswerKey, KeptAnswer};

/// The indexes of kept answers.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerIndex {
    of_user: OrdMap<UserName, OfUser>,
    /// The answers by the time at which their commands were carried out.
    times: OrdSet<(Timestamp, AnswerKey)>,
}

/// The answers that are kept for one user.
#[derive(Debug, Clone, Default)]
struct OfUser {
    times: OrdSet<(Timestamp, RequestId, u32)>,
    bytes: usize,
}

/// The number and size of kept answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerSum {
    /// The number.
    pub(crate) count: usize,
    /// The bytes.
    pub(crate) bytes: usize,
}

impl AnswerSum {
    /// Adds an answer.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Removes an answer.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl AnswerIndex {
    /// Removes the old answer from the indexes, and adds the new one.
    pub(super) fn update(&mut self, old: Option<&Arc<KeptAnswer>>, new: Option<&Arc<KeptAnswer>>) {
        if let Some(old) = old {
            let AnswerKey { user, request, index } = &old.key;
            self.times.remove(&(old.at, old.key.clone()));
            if let Some(of_user) = self.of_user.get_mut(user) {
                of_user.times.remove(&(old.at, *request, *index));
                of_user.bytes = of_user.bytes.saturating_sub(old.weight());
                if of_user.times.is_empty() {
                    self.of_user.remove(user);
                }
            }
        }
        if let Some(new) = new {
            let AnswerKey { user, request, index } = &new.key;
            self.times.insert((new.at, new.key.clone()));
            let of_user = self.of_user.entry(user.clone()).or_default();
            of_user.times.insert((new.at, *request, *index));
            of_user.bytes = of_user.bytes.saturating_add(new.weight());
        }
    }
}

impl Root {
    /// Returns a kept answer.
    pub(crate) fn answer(&self, key: &AnswerKey) -> Option<&KeptAnswer> {
        self.answers.get(key).map(Arc::as_ref)
    }

    /// Returns the sum of a user's kept answers.
    pub(crate) fn answers_of(&self, user: &UserName) -> AnswerSum {
        let of_user = self.answer_index.of_user.get(user);
        of_user.map_or_else(AnswerSum::default, |of_user| AnswerSum {
            count: of_user.times.len(),
            bytes: of_user.bytes,
        })
    }

    /// Returns a user's kept answers, the oldest first.
    pub(crate) fn oldest_answers<'a>(&'a self, user: &'a UserName) -> impl Iterator<Item = &'a KeptAnswer> {
        let times = self.answer_index.of_user.get(user).into_iter().flat_map(|of_user| of_user.times.iter());
        times.filter_map(move |(_, request, index)| {
            self.answer(&AnswerKey { user: user.clone(), request: *request, index: *index })
        })
    }

    /// Returns the kept answers of all users by their times, the oldest first.
    pub(crate) fn answer_times(&self) -> impl Iterator<Item = &(Timestamp, AnswerKey)> {
        self.answer_index.times.iter()
    }

    /// Returns the number of kept answers.
    pub fn answer_count(&self) -> usize {
        self.answers.len()
    }
}
