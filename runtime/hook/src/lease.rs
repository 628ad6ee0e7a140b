//! Leadership as one hook sees it (`hook-model.md` 5.6, 7.4).
//!
//! The lease is handed in. A call that rests on leadership is decided by it if enough of it is left; else the call
//! has done nothing yet and answers [`Answer::NeedsLease`]. The shell then renews, says what came of it by
//! `HookContext::lease_renewed`, and makes the same call again, which now is decided either way. So no call can
//! ask twice, and none can pass over the question.

use periapt_host_api::{
    LeaderTerm, Timestamp, resource::ResourceKey, secret::SecretKey, timing::LEADERSHIP_GUARANTEE_MS,
};

use crate::{CallError, FileRequest};

/// When a call is made, on the two clocks that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTime {
    /// For people: statuses and log lines carry it.
    pub at: Timestamp,
    /// Milliseconds on the clock of leases, which goes on while the host sleeps and is never set.
    pub boot_ms: u64,
}

/// A lease that the runner holds for the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLease {
    /// The fencing token.
    pub term: LeaderTerm,
    /// When it ends, on the clock of leases, counted from the moment when it was asked for.
    pub valid_until_ms: u64,
}

/// What the runner knows of the unit's leadership.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The lease, if the unit has one.
    pub held: Option<HeldLease>,
}

/// What a call that may rest on leadership answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Answer<T> {
    /// The answer.
    Ready(T),
    /// Nothing happened yet: renew the lease, tell `HookContext::lease_renewed`, and make the same call again.
    NeedsLease,
    /// Nothing happened yet: fetch this content, tell `HookContext::secret_fetched`, and make the same call again.
    NeedsSecret(SecretKey),
    /// Nothing of the hook happened yet: do this with the guest's files, tell `HookContext::file_answered`, and make the
    /// same call again.
    NeedsFile(FileRequest),
    /// Nothing happened yet: fetch this content and put it where the hook finds it, tell
    /// `HookContext::resource_fetched`, and make the same call again.
    NeedsResource(ResourceKey),
}

/// How often one call may ask before it is decided: for a lease, a secret, and files.
pub const MAX_ASKED: u32 = 70;

impl<T> Answer<T> {
    /// The same answer, of another type.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Ready(value) => Answer::Ready(change(value)),
            Self::NeedsLease => Answer::NeedsLease,
            Self::NeedsSecret(key) => Answer::NeedsSecret(key),
            Self::NeedsFile(request) => Answer::NeedsFile(request),
            Self::NeedsResource(key) => Answer::NeedsResource(key),
        }
    }
}

/// Why a behaviour ended early: refused, or not decided yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    Refused(CallError),
    NeedsLease,
    NeedsSecret(SecretKey),
    NeedsFile(FileRequest),
    NeedsResource(ResourceKey),
}

impl From<CallError> for Halt {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

pub(crate) fn into_answer<T>(result: Result<T, Halt>) -> Answer<Result<T, CallError>> {
    match result {
        Ok(value) => Answer::Ready(Ok(value)),
        Err(Halt::Refused(error)) => Answer::Ready(Err(error)),
        Err(Halt::NeedsLease) => Answer::NeedsLease,
        Err(Halt::NeedsSecret(key)) => Answer::NeedsSecret(key),
        Err(Halt::NeedsFile(request)) => Answer::NeedsFile(request),
        Err(Halt::NeedsResource(key)) => Answer::NeedsResource(key),
    }
}

/// Decides leadership within one hook.
#[derive(Debug)]
pub(crate) struct Leadership {
    state: LeaseState,
    /// Whether the state is fresh from a renewal that the call in progress asked for.
    renewed: bool,
    verdict: Verdict,
}

/// What the charm was told last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unasked,
    Leader(LeaderTerm),
    /// For the rest of the hook, even if leadership arrives.
    NotLeader,
}

impl Leadership {
    pub(crate) fn new(state: LeaseState) -> Self {
        Self { state, renewed: false, verdict: Verdict::Unasked }
    }

    pub(crate) fn renewed(&mut self, state: LeaseState) {
        self.state = state;
        self.renewed = true;
    }

    /// The term, if the unit is leader and stays so for the guaranteed time. `elsewhere`: the snapshot knows
    /// another leader, so that asking for the lease would be in vain.
    pub(crate) fn check(&mut self, now: CallTime, elsewhere: bool) -> Result<Option<LeaderTerm>, Halt> {
        if self.verdict == Verdict::NotLeader {
            return Ok(None);
        }
        let guaranteed = now.boot_ms.saturating_add(LEADERSHIP_GUARANTEE_MS);
        let lease = self.state.held.filter(|lease| lease.valid_until_ms >= guaranteed);
        let in_vain = elsewhere && self.state.held.is_none();
        if lease.is_none() && !self.renewed && !in_vain {
            return Err(Halt::NeedsLease);
        }
        self.renewed = false;
        self.verdict = match (self.verdict, lease) {
            // Lost and won again in mid-hook: somebody else may have led in between.
            (Verdict::Leader(before), Some(lease)) if before != lease.term => Verdict::NotLeader,
            (_, Some(lease)) => Verdict::Leader(lease.term),
            (_, None) => Verdict::NotLeader,
        };
        Ok(lease.map(|lease| lease.term).filter(|_| self.verdict != Verdict::NotLeader))
    }
}
