//! Notices as they occur.

use super::Supervisor;
use crate::notice::Occurrence;

impl Supervisor {
    /// Records an occurrence, and answers those that wait for it.
    pub(super) fn occur(&mut self, occurrence: Occurrence) -> u64 {
        let (date, limits) = (self.now.date, &self.options.limits);
        let before = self.notices.dropped;
        let id = self.notices.occur(date, occurrence, limits);
        if self.notices.dropped > before {
            let message = format!("more than {} notices: the oldest were dropped", limits.notices);
            self.warnings.add(date, &message, limits);
        }
        self.answer_notices();
        id
    }
}
