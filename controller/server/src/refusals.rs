//! The counts of refused requests for the audit log: requests without the route's right or with an invalid token, and
//! failed logins. Any caller can send them as fast as it likes, so equal ones of a minute are one entry, and entries
//! have a budget. Commands that the writer refuses have an entry each.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{
    ErrorCode, Timestamp, UserName,
    audit::{AuditOutcome, AuditedRequest},
    command::Caller,
    user::SessionId,
};
use periapt_model::Input;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, commands::Commands, network::Network, writer::QueueKey};

/// The time for which equal requests are counted before their entry is written, in milliseconds.
const COUNTED_MS: u64 = 60_000;

/// The most different requests that are counted apart. All others are counted together.
const MAX_COUNTED: usize = 64;

/// The most entries at once. A caller's mistakes of a day are not lost in a flood of others.
const MAX_ENTRIES: u64 = 64;

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
    /// The entries that were written beyond those whose time is over.
    written: u64,
    /// The time up to which `written` is reduced, in milliseconds of the monotonic clock.
    reduced_ms: u64,
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

    /// Takes the requests whose entries are within the budget, the oldest first. The others are counted on.
    fn take(&mut self, now_ms: u64) -> Vec<AuditedRequest> {
        let over = now_ms.saturating_sub(self.reduced_ms) / ENTRY_EVERY_MS;
        self.reduced_ms += over * ENTRY_EVERY_MS;
        self.written = self.written.saturating_sub(over);
        let mut taken = Vec::new();
        while self.written < MAX_ENTRIES {
            let oldest = self.requests.iter().min_by_key(|(_, count)| count.order);
            let Some(request) = oldest.map(|(request, _)| request.clone()) else { break };
            taken.extend(self.requests.remove(&request).map(|count| request.audited(count)));
            self.written += 1;
        }
        taken
    }
}

impl Refusals {
    /// Counts a refused request.
    pub(crate) fn note(&self, request: RefusedRequest, now: Timestamp) {
        self.0.counted.lock().add(request, now);
        self.0.filled.notify_one();
    }

    fn is_empty(&self) -> bool {
        self.0.counted.lock().requests.is_empty()
    }

    /// Writes entries for what is counted, until the controller stops, and once more then.
    pub(crate) async fn run(self, commands: Commands, clock: Arc<dyn Clock>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if self.is_empty() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = self.0.filled.notified() => {}
                }
                continue;
            }
            let due = clock.monotonic_ms().saturating_add(COUNTED_MS);
            while let left @ 1.. = due.saturating_sub(clock.monotonic_ms()) {
                tokio::select! {
                    () = stop.cancelled() => break,
                    () = clock.sleep(Duration::from_millis(left)) => {}
                }
            }
            self.write(&commands, &*clock).await;
        }
        self.write(&commands, &*clock).await;
    }

    async fn write(&self, commands: &Commands, clock: &dyn Clock) {
        let taken = self.0.counted.lock().take(clock.monotonic_ms());
        if taken.is_empty() {
            return;
        }
        let inputs = taken.into_iter().map(|request| (Input::Refused(request), None)).collect();
        let answered = commands.submit(QueueKey::Controller, &Caller::Worker, inputs, 0).await;
        let refused = match answered {
            Ok(answered) => answered.into_iter().find_map(|answered| answered.result.err()),
            Err(refusal) => Some(refusal),
        };
        if let Some(refusal) = refused {
            tracing::warn!(%refusal, "refused requests are missing in the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_flood_of_different_requests_is_counted_within_bounds_and_writes_an_entry_an_hour() {
        let mut counted = Counted::default();
        let (mut entries, mut requests) = (0, 0);
        let days = 10;
        for minute in 0..days * 24 * 60 {
            for number in 0..200 {
                counted.add(request(&format!("user{number}")), Timestamp::UNIX_EPOCH);
                requests += 1;
            }
            entries += counted.take(minute * COUNTED_MS).len() as u64;
            assert!(counted.requests.len() <= MAX_COUNTED + 1);
        }
        assert!(entries <= MAX_ENTRIES + days * 24, "{entries} entries of {requests} requests");
        assert!(entries >= days * 24 - 1, "{entries} entries: the flood is seen while it goes on");
    }
}
