//! Leadership as one hook sees it (`docs/hook-model.md` 5.6, 7.4).
//!
//! The host hands the lease in. A call that needs leadership is decided by the lease if enough of its time is left.
//! Otherwise the call has no effect yet and answers [`CallAnswer::NeedsLease`]. The host then renews, reports the result by
//! `HookContext::lease_renewed`, and repeats the call, which is now decided either way. So no call asks twice, and none
//! proceeds without a decision.

use periapt_host_api::{
    LeaderTerm, Timestamp, resource::ResourceKey, secret::SecretKey, timing::LEADERSHIP_GUARANTEE_MS,
};

use crate::{CallError, FileRequest};

/// The time of a call, on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTime {
    /// The wall clock's time, for statuses and log lines.
    pub at: Timestamp,
    /// Milliseconds on the clock of leases, which goes on while the host sleeps and is never set.
    pub boot_ms: u64,
}

/// A lease that the runner holds for the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLease {
    /// The fencing token.
    pub term: LeaderTerm,
    /// The end of the lease in milliseconds on the clock of leases, counted from the moment of the request.
    pub valid_until_ms: u64,
}

/// The unit's leadership, as the runner knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseState {
    /// The lease, if the unit has one.
    pub held: Option<HeldLease>,
}

/// The answer of a call that may need the host to act first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CallAnswer<T> {
    /// The decided answer.
    Ready(T),
    /// No effect yet: renew the lease, call `HookContext::lease_renewed`, and repeat the call.
    NeedsLease,
    /// No effect yet: fetch this content, call `HookContext::secret_fetched`, and repeat the call.
    NeedsSecret(SecretKey),
    /// No effect yet: do this with the guest's files, call `HookContext::file_answered`, and repeat the call.
    NeedsFile(FileRequest),
    /// No effect yet: fetch this content, put it in the hook's place for it, call `HookContext::resource_fetched`, and
    /// repeat the call.
    NeedsResource(ResourceKey),
}

/// The most requests to the host of one call, for a lease, a secret, and files.
pub const MAX_ASKED: u32 = 70;

impl<T> CallAnswer<T> {
    /// Changes the type of a decided answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> CallAnswer<U> {
        match self {
            Self::Ready(value) => CallAnswer::Ready(change(value)),
            Self::NeedsLease => CallAnswer::NeedsLease,
            Self::NeedsSecret(key) => CallAnswer::NeedsSecret(key),
            Self::NeedsFile(request) => CallAnswer::NeedsFile(request),
            Self::NeedsResource(key) => CallAnswer::NeedsResource(key),
        }
    }
}

/// The reason why a call was interrupted: a refusal, or a request to the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interruption {
    Refused(CallError),
    NeedsLease,
    NeedsSecret(SecretKey),
    NeedsFile(FileRequest),
    NeedsResource(ResourceKey),
}

impl From<CallError> for Interruption {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

pub(crate) fn into_answer<T>(result: Result<T, Interruption>) -> CallAnswer<Result<T, CallError>> {
    match result {
        Ok(value) => CallAnswer::Ready(Ok(value)),
        Err(Interruption::Refused(error)) => CallAnswer::Ready(Err(error)),
        Err(Interruption::NeedsLease) => CallAnswer::NeedsLease,
        Err(Interruption::NeedsSecret(key)) => CallAnswer::NeedsSecret(key),
        Err(Interruption::NeedsFile(request)) => CallAnswer::NeedsFile(request),
        Err(Interruption::NeedsResource(key)) => CallAnswer::NeedsResource(key),
    }
}

/// The leadership decisions of one hook.
#[derive(Debug)]
pub(crate) struct Leadership {
    state: LeaseState,
    /// True if the state comes from a renewal that the current call requested.
    renewed: bool,
    answer: LeadershipAnswer,
}

/// The last answer to the charm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeadershipAnswer {
    Unasked,
    Leader(LeaderTerm),
    /// The answer for the rest of the hook, even if the unit becomes leader.
    NotLeader,
}

impl Leadership {
    pub(crate) fn new(state: LeaseState) -> Self {
        Self { state, renewed: false, answer: LeadershipAnswer::Unasked }
    }

    pub(crate) fn renewed(&mut self, state: LeaseState) {
        self.state = state;
        self.renewed = true;
    }

    /// Returns the term, if the unit is leader and stays so for the guaranteed time. `elsewhere`: the snapshot knows
    /// another leader, so a request for the lease would be in vain.
    pub(crate) fn check(
        &mut self,
        now: CallTime,
        elsewhere: bool,
    ) -> Result<Option<LeaderTerm>, Interruption> {
        if self.answer == LeadershipAnswer::NotLeader {
            return Ok(None);
        }
        let guaranteed = now.boot_ms.saturating_add(LEADERSHIP_GUARANTEE_MS);
        let lease = self.state.held.filter(|lease| lease.valid_until_ms >= guaranteed);
        let in_vain = elsewhere && self.state.held.is_none();
        if lease.is_none() && !self.renewed && !in_vain {
            return Err(Interruption::NeedsLease);
        }
        self.renewed = false;
        self.answer = match (self.answer, lease) {
            // The unit lost leadership and won it again during the hook: another unit may have led in between.
            (LeadershipAnswer::Leader(before), Some(lease)) if before != lease.term => {
                LeadershipAnswer::NotLeader
            }
            (_, Some(lease)) => LeadershipAnswer::Leader(lease.term),
            (_, None) => LeadershipAnswer::NotLeader,
        };
        Ok(lease.map(|lease| lease.term).filter(|_| self.answer != LeadershipAnswer::NotLeader))
    }
}
