//! The passing on of commands from a following controller to the one that leads.

use std::{collections::BTreeMap, time::Duration};

use periapt_client::{ClientError, RequestOutcome};
use periapt_host_api::{ErrorCode, Refusal, Revision, command::Caller};
use periapt_log::LogLeader;
use periapt_model::{Root, check_level};
use tokio::time::Instant;

use super::{
    Links, Role, RoleReceiver,
    turns::Turn,
    wire::{ForwardedAnswers, ForwardedCommand, ForwardedCommands},
};
use crate::writer::{CommandAnswer, Job, Outcome, Pending, unknown};

/// The time for which commands are held while no controller leads, or the one that leads does not answer.
const HELD_FOR: Duration = Duration::from_secs(5);

/// The pause before commands are passed on again to a controller that did not take them.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Commands that the leading controller has answered. Their callers are answered once this controller has applied what
/// the commands wrote.
#[derive(Default)]
pub(super) struct Answered {
    waiting: Vec<(Pending, CommandAnswer)>,
    /// The commands that no other controller has taken, because this one leads now, by the numbers of their groups.
    untaken: BTreeMap<u64, Vec<Job>>,
}

impl Answered {
    /// Adds answers.
    pub(super) fn extend(&mut self, more: Self) {
        self.waiting.extend(more.waiting);
        self.untaken.extend(more.untaken);
    }

    /// Takes the commands that this controller carries out itself, in the order in which they came.
    pub(super) fn take_untaken(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.untaken).into_values().flatten().collect()
    }

    /// Answers the callers whose revision this controller has reached.
    pub(super) fn release(&mut self, applied: Revision) {
        let ready = self.waiting.extract_if(.., |(_, answer)| answer.revision <= applied);
        for (pending, answer) in ready {
            pending.answer(answer, Outcome::Evaluated);
        }
    }
}

/// Passes a group of commands on, again and again until a leading controller takes them or the time is over. It leaves
/// once the leading controller has queued the group before it. Returns the answers; callers that get none are refused.
pub(super) async fn forward(
    links: Links,
    mut role: RoleReceiver,
    turn: Turn,
    mut jobs: Vec<Job>,
) -> Answered {
    let until = Instant::now() + HELD_FOR;
    let mut reason = "no controller leads".to_owned();
    loop {
        let leader = match leader(&mut role, until).await {
            Found::Leader(leader) => leader,
            Found::Oneself => {
                return Answered { untaken: [(turn.number(), jobs)].into(), ..Answered::default() };
            }
            Found::None => return refuse(jobs, &untaken(&reason)),
        };
        let comes = while_led_by(&leader, &mut role, until, turn.comes(leader.term)).await;
        let sent = match comes {
            Ok(()) => {
                let sent = while_led_by(&leader, &mut role, until, send(&links, &leader, &turn, &jobs)).await;
                sent.unwrap_or_else(|why| Err(silent(&leader, why, RequestOutcome::Unknown)))
            }
            Err(why) => Err(silent(&leader, why, RequestOutcome::NothingHappened)),
        };
        match sent {
            Ok(answers) if answers.answers.len() == jobs.len() => {
                let answers = answers.answers.into_iter();
                if answers.as_slice().iter().any(|answer| !answer.asks_again()) {
                    let waiting = jobs.into_iter().zip(answers);
                    let waiting = waiting.map(|(job, answer)| (job.pending, answer.into())).collect();
                    return Answered { waiting, ..Answered::default() };
                }
                reason = "the controller that led does not lead any more".to_owned();
            }
            Ok(_) => reason = "another controller answered other commands".to_owned(),
            // It would be refused again: it is too large with what is sent along, or makes no sense there.
            Err(ClientError::Refused(refusal))
                if refusal.code == ErrorCode::BadRequest && jobs.len() == 1 =>
            {
                return refuse(jobs, &refusal);
            }
            Err(failure) => {
                tracing::debug!(%failure, leader = leader.announcement.url, "commands were not passed on");
                reason = failure.to_string();
                if may_have_happened(&failure) {
                    jobs = keep_safe(jobs, &reason);
                }
            }
        }
        turn.lost();
        if jobs.is_empty() {
            return Answered::default();
        }
        if Instant::now() >= until {
            return refuse(jobs, &untaken(&reason));
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Waits for something for as long as no other controller is known to lead, and the time is not over.
///
/// # Errors
/// The reason why the leading controller is asked no more.
async fn while_led_by<T>(
    leader: &LogLeader,
    role: &mut RoleReceiver,
    until: Instant,
    waited: impl Future<Output = T>,
) -> Result<T, &'static str> {
    tokio::select! {
        waited = waited => Ok(waited),
        _ = role.wait_for(|role| !role.is_led_by(leader)) => Err("it does not lead any more"),
        () = tokio::time::sleep_until(until) => Err("no answer in time"),
    }
}

enum Found {
    Leader(LogLeader),
    Oneself,
    None,
}

/// Waits for a controller that leads.
async fn leader(role: &mut RoleReceiver, until: Instant) -> Found {
    let known = role.wait_for(|role| !matches!(role, Role::Following(None)));
    match tokio::time::timeout_at(until, known).await {
        Ok(Ok(role)) => match &*role {
            Role::Following(Some(leader)) => Found::Leader(leader.clone()),
            _ => Found::Oneself,
        },
        _ => Found::None,
    }
}

/// Sends commands to the controller that leads, notes that it has queued them, and waits for the answers.
async fn send(
    links: &Links,
    leader: &LogLeader,
    turn: &Turn,
    jobs: &[Job],
) -> Result<ForwardedAnswers, ClientError> {
    let client = links.to(&leader.announcement.url)?;
    let commands = jobs.iter().map(ForwardedCommand::of).collect();
    let queued = client.forward_commands(&ForwardedCommands { term: leader.term.0, commands }).await?;
    turn.queued(leader.term);
    queued.answers().await
}

fn silent(leader: &LogLeader, reason: &str, outcome: RequestOutcome) -> ClientError {
    let (url, reason) = (leader.announcement.url.clone(), reason.to_owned());
    ClientError::Unreachable { url, reason, outcome }
}

/// Returns true if the other controller may have carried out commands whose answer did not come.
fn may_have_happened(failure: &ClientError) -> bool {
    match failure {
        ClientError::Unreachable { outcome, .. } => *outcome != RequestOutcome::NothingHappened,
        ClientError::Refused(refusal) => refusal.code == ErrorCode::OutcomeUnknown,
        ClientError::NotTrusted { .. } | ClientError::NoneReached(_) | ClientError::InvalidUrl { .. } => {
            false
        }
        _ => true,
    }
}

/// Returns the commands that may be sent twice, and refuses the others. Calls of agents, runners and workers may be
/// repeated: at worst the audit log has an entry twice, a registration is refused though it was made, or a runner attaches
/// again. A user's command with the id of its request is carried out once. What such
/// a command did stays unknown until a controller that leads answers it.
fn keep_safe(jobs: Vec<Job>, reason: &str) -> Vec<Job> {
    let (mut kept, mut refused) = (Vec::with_capacity(jobs.len()), Vec::new());
    for mut job in jobs {
        match (&job.sender.caller, &job.command) {
            (Caller::User(_), None) => refused.push(job),
            (Caller::User(_), Some(_)) => {
                job.pending.doubt();
                kept.push(job);
            }
            _ => kept.push(job),
        }
    }
    answer_all(refused, &unknown(reason));
    kept
}

fn untaken(reason: &str) -> Refusal {
    Refusal::new(ErrorCode::TryAgain, format!("{reason}; the request had no effect, send it again"))
}

fn refuse(jobs: Vec<Job>, refusal: &Refusal) -> Answered {
    answer_all(jobs, refusal);
    Answered::default()
}

/// Refuses commands.
pub(super) fn answer_all(jobs: Vec<Job>, refusal: &Refusal) {
    for job in jobs {
        let answer = CommandAnswer { result: Err(refusal.clone()), revision: Revision(0) };
        job.pending.answer(answer, Outcome::Failed);
    }
}

/// Refuses the commands that programs of the stored level do not know, and returns the others. The controller that leads
/// could not read a request with one of them.
pub(super) fn known_to_all(root: &Root, jobs: Vec<Job>) -> Vec<Job> {
    let mut known = Vec::with_capacity(jobs.len());
    for job in jobs {
        match check_level(root, &job.input) {
            Ok(()) => known.push(job),
            Err(refusal) => answer_all(vec![job], &refusal),
        }
    }
    known
}
