//! Notices as they occur.

use periapt_host_api::notice::WorkloadNotice;

use super::Supervisor;
use crate::{
    message::PodOutput,
    notice::{CUSTOM, Occurrence},
};

impl Supervisor {
    /// Records an occurrence, answers those that wait for it, and tells the charm of a custom notice. Returns the notice's
    /// id.
    pub(super) fn occur(&mut self, occurrence: Occurrence) -> u64 {
        let (date, limits) = (self.now.date, &self.options.limits);
        let before = self.notices.dropped;
        let custom = (occurrence.kind == CUSTOM).then(|| occurrence.key.clone());
        let occurred = self.notices.occur(date, occurrence, limits);
        if self.notices.dropped > before {
            let message = format!("more than {} notices: the oldest were dropped", limits.notices);
            self.warnings.add(date, &message, limits);
        }
        self.answer_notices();
        if let Some(key) = custom.filter(|_| occurred.is_repeated) {
            self.outputs.push(PodOutput::Notice(WorkloadNotice::Custom { id: occurred.id, key }));
        }
        occurred.id
    }
}
