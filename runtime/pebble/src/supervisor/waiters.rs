//! Requests that wait.

use std::time::Duration;

use super::Supervisor;
use crate::{
    duration::GoDuration,
    message::{ChangeId, NoticesQuery, PodAnswer, PodOutput, PodRefusal, RequestId},
};

/// A request that waits.
#[derive(Debug, Clone)]
pub(super) enum Waiter {
    /// For the end of a change.
    Change { change: ChangeId, until: Option<Duration>, timeout: Duration },
    /// For a notice.
    Notices { query: Box<NoticesQuery>, user: Option<Option<u32>>, until: Duration },
}

impl Waiter {
    pub(super) fn wake(&self) -> Option<Duration> {
        match self {
            Self::Change { until, .. } => *until,
            Self::Notices { until, .. } => Some(*until),
        }
    }
}

impl Supervisor {
    /// Lets a request wait.
    pub(super) fn wait(&mut self, id: RequestId, waiter: Waiter) {
        let most = self.options.limits.waiters;
        if self.waiters.len() >= most {
            let refusal = PodRefusal::busy(format!("{most} requests wait already; ask again later"));
            self.outputs.push(PodOutput::Respond(id, Err(refusal)));
            return;
        }
        self.waiters.insert(id, waiter);
    }

    /// Answers those that wait for a change.
    pub(super) fn answer_change(&mut self, id: ChangeId) {
        let Some(shown) = self.changes.get(id).map(crate::change::Change::shown) else { return };
        let outputs = &mut self.outputs;
        self.waiters.retain(|request, waiter| {
            let waits = matches!(waiter, Waiter::Change { change, .. } if *change == id);
            if waits {
                outputs.push(PodOutput::Respond(*request, Ok(PodAnswer::Sync(shown.clone()))));
            }
            !waits
        });
    }

    /// Answers those that wait for notices which are there now.
    pub(super) fn answer_notices(&mut self) {
        let (date, limits, notices) = (self.now.date, &self.options.limits, &self.notices);
        let outputs = &mut self.outputs;
        self.waiters.retain(|request, waiter| {
            let Waiter::Notices { query, user, .. } = waiter else { return true };
            let found = notices.listed(query, *user, date, limits);
            if !found.is_empty() {
                outputs.push(PodOutput::Respond(*request, Ok(PodAnswer::Sync(found.into()))));
                return false;
            }
            true
        });
    }

    /// Answers those that have waited long enough.
    pub(super) fn tick_waiters(&mut self) {
        let (now, outputs) = (self.now.since_start, &mut self.outputs);
        self.waiters.retain(|request, waiter| {
            if waiter.wake().is_none_or(|until| until > now) {
                return true;
            }
            let answer = match waiter {
                Waiter::Change { timeout, .. } => Err(PodRefusal {
                    status: 504,
                    kind: None,
                    message: format!("timed out waiting for change after {}", GoDuration(*timeout)),
                }),
                Waiter::Notices { .. } => {
                    Ok(PodAnswer::Sync(Vec::<()>::new().into_iter().map(|()| 0).collect()))
                }
            };
            outputs.push(PodOutput::Respond(*request, answer));
            false
        });
    }
}
