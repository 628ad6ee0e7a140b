//! The commands that a following controller has passed on to the one that leads, in groups.

use periapt_host_api::Revision;
use tokio::task::JoinSet;

use super::{
    Links, RoleReceiver,
    forward::{Answered, forward},
    turns::Turns,
};
use crate::writer::{Job, Queue, Writer, give_back};

/// The most groups under way at a time. The leading controller answers some of them with one batch, while others wait for
/// the next one. Commands that come while all are under way leave together once one of them is answered.
const MAX_GROUPS: usize = 16;

/// The bytes of commands under way from which on no further group leaves: as many as one batch takes. With one more group
/// they bound the memory, and large commands do not fill the queue of the leading controller.
const MAX_BYTES_UNDER_WAY: usize = 1 << 20;

/// The least weight of a command under way, in bytes. So two followers have fewer commands under way than answers of a user are
/// kept: each is still known when it is passed on again.
const LEAST_WEIGHT_UNDER_WAY: usize = MAX_BYTES_UNDER_WAY / 512;

/// Commands that were passed on to the controller that leads.
#[derive(Default)]
pub(crate) struct PassedOn {
    /// The groups under way.
    pub(super) groups: Groups,
    /// Their order.
    pub(super) turns: Turns,
    /// The answers that wait until this controller has applied what the commands wrote.
    pub(super) answered: Answered,
}

/// The groups of commands that are under way.
#[derive(Default)]
pub(super) struct Groups {
    /// Each with the weight of its commands in bytes.
    tasks: JoinSet<(usize, Answered)>,
    bytes: usize,
}

impl Groups {
    /// Returns true if one more group may leave.
    pub(super) fn have_room(&self) -> bool {
        self.tasks.len() < MAX_GROUPS && self.bytes < MAX_BYTES_UNDER_WAY
    }

    fn add(&mut self, bytes: usize, answered: impl Future<Output = Answered> + Send + 'static) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.tasks.spawn(async move { (bytes, answered.await) });
    }

    /// Waits until a group has ended; for ever if there is none.
    pub(super) async fn came_back(&mut self) -> Answered {
        match self.tasks.join_next().await {
            Some(ended) => {
                // A task that ended without answers has dropped the commands, and with them refused their callers.
                let (bytes, answered) = ended.unwrap_or_default();
                self.bytes = if self.tasks.is_empty() { 0 } else { self.bytes.saturating_sub(bytes) };
                answered
            }
            None => std::future::pending().await,
        }
    }
}

impl PassedOn {
    /// Passes commands on as the next group, which weighs so many bytes. The caller has waited for its turn and for room.
    pub(super) fn pass_on(&mut self, links: Links, role: RoleReceiver, (jobs, bytes): (Vec<Job>, usize)) {
        let turn = self.turns.next();
        let bytes = bytes.max(jobs.len().saturating_mul(LEAST_WEIGHT_UNDER_WAY));
        self.groups.add(bytes, forward(links, role, turn, jobs));
    }

    /// Answers all callers: this controller has applied what was written before it leads. Returns once all groups have ended,
    /// which takes moments while it leads. What no other controller took is then before all that came later.
    pub(super) async fn finish(&mut self, queue: &Queue<Job>) {
        self.answered.release(Revision(u64::MAX));
        while !self.groups.tasks.is_empty() {
            let answered = self.groups.came_back().await;
            self.answered.extend(answered);
            self.answered.release(Revision(u64::MAX));
        }
        give_back(queue, self.answered.take_untaken());
    }
}

/// Takes the commands of the next group from the queue, once the last group is queued by the controller that leads. Also
/// returns their weight in bytes.
pub(super) async fn next_group(turns: &Turns, writer: &Writer) -> (Vec<Job>, usize) {
    turns.until_free().await;
    writer.take_weighed().await
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        ModelName, UserName,
        command::{Caller, ControllerCommand},
    };
    use periapt_log::Term;
    use periapt_model::Input;
    use tokio::sync::watch;

    use super::{
        super::{LinkIdentity, Role},
        *,
    };
    use crate::writer::{QueueKey, Sender};

    fn add_model(name: &str) -> Input {
        Input::Controller(ControllerCommand::add_model(ModelName::new(name).unwrap()))
    }

    fn job(name: &str) -> Job {
        let caller = Caller::User(UserName::new("admin").unwrap());
        Job::new(QueueKey::Controller, Sender::from(&caller), add_model(name).into()).0
    }

    #[tokio::test]
    async fn what_no_other_controller_took_is_evaluated_before_what_came_later() {
        let (queue, mut passed_on) = (Queue::default(), PassedOn::default());
        let (role, following) = watch::channel(Role::Following(None));
        let links = Links::new(LinkIdentity::InProcess(None));
        passed_on.pass_on(links, following, (vec![job("first")], 1));
        queue.push(QueueKey::Controller, 1, vec![job("second")]).unwrap();
        role.send_replace(Role::Leading(Term(1)));
        passed_on.finish(&queue).await;
        let inputs: Vec<_> = queue.take(1 << 20, 99).await.into_iter().map(|job| job.input).collect();
        assert_eq!(inputs, [add_model("first"), add_model("second")]);
    }

    #[tokio::test]
    async fn groups_are_bounded_by_their_number_and_by_their_bytes() {
        let mut groups = Groups::default();
        for _ in 0..MAX_GROUPS {
            assert!(groups.have_room());
            groups.add(1, std::future::ready(Answered::default()));
        }
        assert!(!groups.have_room());
        groups.came_back().await;
        assert!(groups.have_room());

        groups.add(MAX_BYTES_UNDER_WAY, std::future::ready(Answered::default()));
        assert!(!groups.have_room(), "no group leaves after a large one");
        while !groups.tasks.is_empty() {
            groups.came_back().await;
        }
        assert!(groups.have_room());
        assert_eq!(groups.bytes, 0);
    }

    #[tokio::test]
    async fn a_group_whose_task_is_lost_takes_no_room_for_ever() {
        let mut groups = Groups::default();
        groups.add(MAX_BYTES_UNDER_WAY, std::future::pending());
        groups.tasks.abort_all();
        groups.came_back().await;
        assert!(groups.have_room());
    }
}
