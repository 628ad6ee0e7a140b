//! The members of the cluster, and the failover between them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use etcd_client::Error;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    connect::{ConnectError, Member},
    failure::Failure,
};

/// The least time that one member has for an answer, so that a pause of a busy machine is not taken for a failure.
const LEAST_SHARE: Duration = Duration::from_millis(250);

/// The pause after all members failed, while the timeout of the call is not over.
const PAUSE: Duration = Duration::from_millis(50);

/// The members of the cluster.
pub(crate) struct Pool {
    members: Vec<(String, Member)>,
    /// The member that answered last.
    current: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(members: Vec<(String, Member)>) -> Self {
        Self { members, current: AtomicUsize::new(0) }
    }

    pub(crate) fn members(&self) -> &[(String, Member)] {
        &self.members
    }

    /// Makes a call, of one member after the other until one answers or the timeout is over. A member that failed may
    /// still carry out the call, so a call must not harm if it is made twice. A refusal of another member says nothing
    /// about the first attempt: the next call hears it again, at once.
    pub(crate) async fn call<T, F>(&self, within: Duration, call: impl Fn(Member) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (count, end) = (self.members.len().max(1), Instant::now() + within);
        let share =
            within.checked_div(count.try_into().unwrap_or(u32::MAX)).unwrap_or(within).max(LEAST_SHARE);
        let first = self.current.load(Ordering::Relaxed);
        let mut reasons: Vec<Option<String>> = vec![None; count];
        for attempt in 0_usize.. {
            let index = first.wrapping_add(attempt) % count;
            let left = end.saturating_duration_since(Instant::now());
            let Some((endpoint, member)) = self.members.get(index).filter(|_| !left.is_zero()) else {
                break;
            };
            let reason = match timeout(share.min(left), call(member.clone())).await {
                Ok(Ok(answer)) => {
                    self.current.store(index, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(error)) => match Failure::from(error) {
                    Failure::Unavailable(reason) => match member.take_trouble() {
                        Some(ConnectError::Network(reason) | ConnectError::Tls(reason)) => reason,
                        None => reason,
                    },
                    refusal => {
                        self.current.store(index, Ordering::Relaxed);
                        return Err(if attempt == 0 { refusal } else { refusal.after_doubt(endpoint) });
                    }
                },
                Err(_) => "no answer in time".to_owned(),
            };
            if let Some(kept) = reasons.get_mut(index) {
                *kept = Some(format!("{endpoint}: {reason}"));
            }
            if (attempt + 1) % count == 0 {
                sleep(PAUSE.min(end.saturating_duration_since(Instant::now()))).await;
            }
        }
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        Err(Failure::Unavailable(reasons.join("; ")))
    }
}
