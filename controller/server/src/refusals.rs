//! The counts of refused requests for the audit log: requests without the route's right or with an invalid token, failed
//! logins, and refused commands. Any caller can send them as fast as it likes, so equal ones of a minute are one entry,
//! and entries have a budget. Commands that the writer refuses have an entry each, as long as their user has a budget.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::{
    ErrorCode, Timestamp, UserName,
    audit::{AuditOutcome, AuditedRequest},
    user::SessionId,
};
use tokio::sync::Notify;

use crate::network::Network;

/// The most different requests that are counted apart. All others are counted together.
const MAX_COUNTED: usize = 64;

/// The most entries at once, of all sums and of each user's refused commands. A caller's mistakes of a day are not lost
/// in a flood of others.
const MAX_ENTRIES: u64 = 64;

/// The most users whose refused commands have entries of their own: those who have lately sent some. The commands of
/// others are counted in sums.
const MAX_USERS: usize = 1_024;

/// The time after which another entry may be written, in milliseconds. A flood of years takes a tenth of the audit log:
/// 8,760 entries a year of 100,000 for two years and more.
const ENTRY_EVERY_MS: u64 = 3_600_000;

/// A refused request, without what differs between equal ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RefusedRequest {
    /// The user, if the request proved one.
    pub(crate) user: Option<UserName>,
    /// The session, if the request proved one.
    pub(crate) session: Option<SessionId>,
    /// The network that it came from; none for several.
    pub(crate) network: Option<Network>,
    /// The route, or `log-in`.
    pub(crate) act: String,
    /// The subject, such as the user of a login; may be empty.
    pub(crate) subject: String,
    /// The reason.
    pub(crate) code: ErrorCode,
}

impl RefusedRequest {
    /// Returns the sum of all requests that are not counted apart.
    fn of_others() -> Self {
        Self {
            user: None,
            session: None,
            network: None,
            act: "several".to_owned(),
            subject: String::new(),
            code: ErrorCode::PermissionDenied,
        }
    }

    /// Returns the request as the audit log keeps it.
    fn audited(self, Count { requests, last, .. }: Count) -> AuditedRequest {
        let count = match requests {
            1 => String::new(),
            requests => format!("{requests} requests"),
        };
        let parts = [self.subject, count];
        let subject: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        AuditedRequest {
            at: last,
            user: self.user,
            session: self.session,
            address: self.network.map_or_else(|| "several".to_owned(), |network| network.to_string()),
            act: self.act,
            subject: subject.join(", "),
            outcome: AuditOutcome::Refused(self.code),
        }
    }
}

/// The refused requests that have no entry yet. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    counted: Mutex<Counted>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Counted {
    requests: BTreeMap<RefusedRequest, Count>,
    /// The order of the next request that is counted apart.
    next: u64,
    /// The budget of sums.
    sums: Budget,
    /// The budgets of users, for the commands that were refused to them. The first is for commands without a user.
    commands: BTreeMap<Option<UserName>, Budget>,
}

/// A budget of entries: so many at once, and another one an hour.
#[derive(Debug, Default)]
struct Budget {
    /// The entries that were written beyond those whose time is over.
    written: u64,
    /// The time up to which `written` is reduced, in milliseconds of the monotonic clock.
    reduced_ms: u64,
}

impl Budget {
    /// Returns the number of further entries.
    fn left(&mut self, now_ms: u64) -> u64 {
        let over = now_ms.saturating_sub(self.reduced_ms) / ENTRY_EVERY_MS;
        self.reduced_ms += over * ENTRY_EVERY_MS;
        self.written = self.written.saturating_sub(over);
        MAX_ENTRIES.saturating_sub(self.written)
    }
}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// The place in the order of the first requests.
    order: u64,
    requests: u64,
    last: Timestamp,
}

impl Counted {
    fn add(&mut self, request: RefusedRequest, now: Timestamp) {
        let has_room = self.requests.len() < MAX_COUNTED || self.requests.contains_key(&request);
        let request = if has_room { request } else { RefusedRequest::of_others() };
        let order = self.next;
        self.next += 1;
        let count = self.requests.entry(request).or_insert(Count { order, requests: 0, last: now });
        count.requests = count.requests.saturating_add(1);
        count.last = now;
    }

    fn take(&mut self, now_ms: u64) -> Vec<AuditedRequest> {
        let mut taken = Vec::new();
        while self.sums.left(now_ms) > 0 {
            let oldest = self.requests.iter().min_by_key(|(_, count)| count.order);
            let Some(request) = oldest.map(|(request, _)| request.clone()) else { break };
            taken.extend(self.requests.remove(&request).map(|count| request.audited(count)));
            self.sums.written += 1;
        }
        taken
    }

    /// Returns true if a refused command of a user has an entry of its own.
    fn admits(&mut self, user: Option<&UserName>, now_ms: u64) -> bool {
        let user = user.cloned();
        if !self.commands.contains_key(&user) && self.commands.len() >= MAX_USERS {
            self.commands.retain(|_, budget| budget.left(now_ms) < MAX_ENTRIES);
            if self.commands.len() >= MAX_USERS {
                return false;
            }
        }
        let budget = self.commands.entry(user).or_default();
        let has_room = budget.left(now_ms) > 0;
        budget.written += u64::from(has_room);
        has_room
    }
}

impl Refusals {
    /// Counts a refused request.
    pub(crate) fn note(&self, request: RefusedRequest, now: Timestamp) {
        self.0.counted.lock().add(request, now);
        self.0.filled.notify_one();
    }

    /// Returns a refused command for its entry, if the budget of its user has room. Otherwise counts it in a sum.
    pub(crate) fn admit(&self, request: AuditedRequest, now_ms: u64) -> Option<AuditedRequest> {
        let AuditOutcome::Refused(code) = request.outcome else { return Some(request) };
        if self.0.counted.lock().admits(request.user.as_ref(), now_ms) {
            return Some(request);
        }
        let AuditedRequest { at, user, session, address, act, .. } = request;
        let network = address.parse().ok().map(Network::of);
        self.note(RefusedRequest { user, session, network, act, subject: String::new(), code }, at);
        None
    }

    /// Returns true if nothing is counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.counted.lock().requests.is_empty()
    }

    /// Waits until something is counted, or returns at once if something was counted since the last call.
    pub(crate) async fn filled(&self) {
        self.0.filled.notified().await;
    }

    /// Takes the requests whose entries are within the budget, the oldest first. The others are counted on.
    pub(crate) fn take(&self, now_ms: u64) -> Vec<AuditedRequest> {
        self.0.counted.lock().take(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn request(user: &str) -> RefusedRequest {
        RefusedRequest {
            user: Some(user.parse().unwrap()),
            session: None,
            network: Some(Network::of("192.0.2.7".parse().unwrap())),
            act: "GET /v1/audit".to_owned(),
            subject: String::new(),
            code: ErrorCode::PermissionDenied,
        }
    }

    fn acts_of(taken: &[AuditedRequest]) -> Vec<String> {
        let user = |request: &AuditedRequest| request.user.as_ref().map_or("-".into(), ToString::to_string);
        taken
            .iter()
            .map(|request| format!("{} {} [{}]", user(request), request.act, request.subject))
            .collect()
    }

    #[test]
    fn equal_requests_are_one_entry_with_their_number() {
        let mut counted = Counted::default();
        for _ in 0..1_000 {
            counted.add(request("jane"), Timestamp::UNIX_EPOCH);
        }
        counted.add(request("joe"), Timestamp::UNIX_EPOCH);
        let taken = counted.take(0);
        assert_eq!(acts_of(&taken), ["jane GET /v1/audit [1000 requests]", "joe GET /v1/audit []"]);
        assert!(counted.take(0).is_empty());
    }

    #[test]
    fn refused_commands_have_entries_until_their_users_budget_is_used_and_then_sums() {
        let refusals = Refusals::default();
        let refused = |user: &str, now_ms| {
            let request = AuditedRequest {
                at: Timestamp::UNIX_EPOCH,
                user: Some(user.parse().unwrap()),
                session: None,
                address: "192.0.2.7".to_owned(),
                act: "add-model".to_owned(),
                subject: format!("model m{now_ms}"),
                outcome: AuditOutcome::Refused(ErrorCode::PermissionDenied),
            };
            refusals.admit(request, now_ms).is_some()
        };
        let entries = (0..1_000).filter(|now_ms| refused("jane", *now_ms)).count() as u64;
        assert_eq!(entries, MAX_ENTRIES);
        assert!(refused("joe", 1_000), "another user has a budget of their own");
        let taken = refusals.take(1_000);
        assert_eq!(acts_of(&taken), [format!("jane add-model [{} requests]", 1_000 - MAX_ENTRIES)]);
        let later = ENTRY_EVERY_MS;
        assert_eq!([refused("jane", later), refused("jane", later)], [true, false], "one more an hour");
    }

    #[test]
    fn budgets_are_bounded_and_users_who_sent_nothing_lately_make_room() {
        let mut counted = Counted::default();
        let user = |number: usize| format!("user{number}").parse::<UserName>().unwrap();
        for number in 0..MAX_USERS {
            assert!(counted.admits(Some(&user(number)), 0));
        }
        assert!(!counted.admits(Some(&user(MAX_USERS)), 0), "counted in a sum");
        assert!(counted.admits(Some(&user(0)), 0));
        assert!(counted.admits(Some(&user(MAX_USERS)), ENTRY_EVERY_MS));
        assert_eq!(counted.commands.len(), 2, "the first user has used two entries");
    }

    #[test]
    fn a_flood_of_different_requests_is_counted_within_bounds_and_writes_an_entry_an_hour() {
        let mut counted = Counted::default();
        let (mut entries, mut requests) = (0, 0);
        let days = 10;
        for minute in 0..days * 24 * 60 {
            for number in 0..200 {
                counted.add(request(&format!("user{number}")), Timestamp::UNIX_EPOCH);
                requests += 1;
            }
            entries += counted.take(minute * MINUTE_MS).len() as u64;
            assert!(counted.requests.len() <= MAX_COUNTED + 1);
        }
        assert!(entries <= MAX_ENTRIES + days * 24, "{entries} entries of {requests} requests");
        assert!(entries >= days * 24 - 1, "{entries} entries: the flood is seen while it goes on");
    }
}
