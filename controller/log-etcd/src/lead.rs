//! The leadership: a lease that one controller holds and renews.

use std::{sync::Arc, time::Duration};

use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};
use periapt_log::{Announcement, LEADERSHIP_TTL, Leadership, LogError, LogLeader, Term};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    answers::{number, values},
    failure::Failure,
    leaders::Changes,
    shared::Shared,
    value::{decode_id, decode_leader, encode_id, encode_leader},
};

/// The interval of renewals: several attempts fit into the time of a leadership.
const RENEW_EVERY: Duration = Duration::from_millis(500);

/// The timeout of one renewal.
const RENEW_TIMEOUT: Duration = Duration::from_millis(900);

/// A lease; dropping it gives it up.
struct Lease {
    shared: Arc<Shared>,
    id: i64,
    /// The time until which etcd certainly keeps it.
    until: Instant,
}

/// Waits until no controller leads, and takes the leadership.
pub(crate) async fn acquire(shared: Arc<Shared>, announcement: Announcement) -> Result<Leadership, LogError> {
    let (mut lease, mut changes) = (None, Changes::default());
    loop {
        let seen = shared.leader().await?;
        if let Some((_, holder)) = &seen.leader
            && lease.as_ref().is_none_or(|lease: &Lease| lease.id != *holder)
        {
            lease = None;
            changes.wait(&shared, seen.revision).await?;
            continue;
        }
        let held = match lease.take().filter(|lease| lease.until > Instant::now()) {
            Some(lease) => lease,
            None => shared.grant().await?,
        };
        match shared.take(&held, &announcement).await {
            Ok(Some(term)) => return Ok(lead(held, term)),
            Ok(None) => lease = Some(held),
            Err(Failure::LeaseGone) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

/// Returns the leadership, which a task renews.
fn lead(lease: Lease, term: Term) -> Leadership {
    let (lost, given_up) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(renew(lease, lost.clone(), given_up.clone()));
    let guard: DropGuard = given_up.drop_guard();
    Leadership::new(term, lost, guard)
}

/// Renews a lease until it is given up or may be over. A renewal counts from before it was sent.
async fn renew(mut lease: Lease, lost: CancellationToken, given_up: CancellationToken) {
    loop {
        let sent = Instant::now();
        let within = RENEW_TIMEOUT.min(lease.until.saturating_duration_since(sent));
        let renewed = tokio::select! {
            renewed = lease.renew(within) => renewed,
            () = given_up.cancelled() => break,
        };
        match renewed {
            Ok(()) => lease.until = sent + LEADERSHIP_TTL,
            Err(Failure::Unavailable(reason)) => tracing::debug!(reason, "the leadership was not renewed"),
            Err(failure) => {
                tracing::warn!(reason = %LogError::from(failure), "the leadership is lost");
                break;
            }
        }
        tokio::select! {
            () = sleep_until((sent + RENEW_EVERY).min(lease.until)) => {}
            () = given_up.cancelled() => break,
        }
        if Instant::now() >= lease.until {
            break;
        }
    }
    lost.cancel();
}

impl Lease {
    async fn renew(&self, within: Duration) -> Result<(), Failure> {
        let id = self.id;
        // The first answer of a stream of renewals; etcd-client reads it before it returns.
        let renew = |mut member: crate::connect::Member| async move { member.lease.keep_alive(id).await };
        self.shared.pool.call(within, renew).await.map(|_| ())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Without a runtime, and if the call fails, the lease runs out.
        let Ok(runtime) = Handle::try_current() else { return };
        let (shared, id) = (Arc::clone(&self.shared), self.id);
        runtime.spawn(async move {
            let revoke = |mut member: crate::connect::Member| async move { member.lease.revoke(id).await };
            let _ = shared.pool.call(LEADERSHIP_TTL, revoke).await;
        });
    }
}

impl Shared {
    async fn grant(self: &Arc<Self>) -> Result<Lease, Failure> {
        let sent = Instant::now();
        let ttl = i64::try_from(LEADERSHIP_TTL.as_secs()).unwrap_or(2);
        let granted = self.call(0, |mut member| async move { member.lease.grant(ttl, None).await }).await?;
        if granted.ttl() > ttl {
            tracing::warn!(
                granted = granted.ttl(),
                wanted = ttl,
                "etcd grants no shorter leases, so a failover takes longer: lower its --election-timeout"
            );
        }
        Ok(Lease { shared: Arc::clone(self), id: granted.id(), until: sent + LEADERSHIP_TTL })
    }

    /// Takes the leadership with the next term, if no controller leads. A call that is repeated finds its own lease.
    async fn take(&self, lease: &Lease, announcement: &Announcement) -> Result<Option<Term>, Failure> {
        let term =
            self.call(0, |mut member| async move { member.kv.get(self.keys.term(), None).await }).await?;
        let damaged = |error: LogError| Failure::Refused(error.to_string());
        let term = number("term", term.kvs().first().cloned()).map_err(damaged)?;
        let next = Term(term.saturating_add(1));
        let leader = LogLeader { term: next, announcement: announcement.clone() };
        let value = encode_leader(&leader).map_err(damaged)?;
        let answer = self
            .call(value.len(), |mut member| {
                let leased = PutOptions::new().with_lease(lease.id);
                let take = Txn::new()
                    .when([
                        self.is_term(Term(term)),
                        // A bootstrap may have begun another log in the place of this one, which nobody had led.
                        Compare::value(self.keys.id(), CompareOp::Equal, encode_id(self.id)),
                        Compare::create_revision(self.keys.leader(), CompareOp::Equal, 0),
                    ])
                    .and_then([
                        TxnOp::put(self.keys.leader(), value.clone(), Some(leased)),
                        TxnOp::put(self.keys.term(), next.0.to_string(), None),
                    ])
                    .or_else([TxnOp::get(self.keys.leader(), None), TxnOp::get(self.keys.id(), None)]);
                async move { member.kv.txn(take).await }
            })
            .await?;
        if answer.succeeded() {
            return Ok(Some(next));
        }
        let mut found = values(&answer).into_iter();
        let (leader, id) = (found.next().flatten(), found.next().flatten());
        match leader {
            Some(found) if found.lease() == lease.id => {
                decode_leader(found.value()).map(|leader| Some(leader.term)).map_err(damaged)
            }
            // Without this, the caller would try again at once, for ever.
            _ if id.as_ref().is_none_or(|id| decode_id(id.value()) != Ok(self.id)) => Err(Failure::Refused(
                "another log was begun in the place of the one that was opened".to_owned(),
            )),
            _ => Ok(None),
        }
    }
}
