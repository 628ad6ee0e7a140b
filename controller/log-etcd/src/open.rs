//! Opening a log: the checks of the cluster, and the keys of a fresh log.

use std::time::Duration;

use etcd_client::{AlarmType, Compare, CompareOp, GetOptions, StatusResponse, Txn, TxnOp};
use futures_util::future::join_all;
use periapt_host_api::{Revision, StoreId};
use periapt_log::LogError;
use tokio::time::{sleep, timeout};

use crate::{
    EtcdOptions, OpenError,
    connect::{self, ConnectError, Member},
    failure::Failure,
    keys::Keys,
    pool::Pool,
    value::{decode_id, encode_id},
};

/// The oldest version whose watches and leases are sound.
const OLDEST: (u64, u64) = (3, 5);

/// The timeout of the checks. A cluster that has just lost its leader needs seconds to choose another.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The attempts to learn why a connection ends, and the pause between them.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// The term of a log that no controller has ever led, and the end of one without entries.
const UNLED: &str = "0";

/// The answer of a member that knows no leader of the cluster.
const NO_LEADER: &str = "no leader";

/// Checks the cluster, and finds or makes the log.
pub(crate) async fn open(options: &EtcdOptions, keys: &Keys) -> Result<(Pool, StoreId), OpenError> {
    let pool = check(options).await?;
    let id = match present(&pool, keys).await? {
        Some(id) => id,
        None => make(&pool, keys, options.fresh_id).await?,
    };
    prepare_shard(&pool, keys).await?;
    Ok((pool, id))
}

/// Checks the cluster, and finds the log, which must be there.
pub(crate) async fn find(options: &EtcdOptions, keys: &Keys) -> Result<(Pool, StoreId), OpenError> {
    let pool = check(options).await?;
    match present(&pool, keys).await? {
        Some(id) => Ok((pool, id)),
        None => Err(OpenError::Absent(options.url.to_string())),
    }
}

/// Checks the cluster, and writes nothing.
pub(crate) async fn check(options: &EtcdOptions) -> Result<Pool, OpenError> {
    let pool = reach(options).await?;
    check_alarms(&pool).await?;
    Ok(pool)
}

/// Connects to the cluster, which may be full.
pub(crate) async fn reach(options: &EtcdOptions) -> Result<Pool, OpenError> {
    let tls = connect::tls(options)?;
    let mut members = Vec::new();
    for endpoint in &options.url.endpoints {
        members.push((endpoint.clone(), Member::new(endpoint, tls.clone()).await?));
    }
    let pool = Pool::new(members);
    check_members(&pool).await?;
    Ok(pool)
}

/// Checks the versions of all members that answer.
async fn check_members(pool: &Pool) -> Result<(), OpenError> {
    let asked =
        pool.members().iter().map(|(endpoint, member)| async move { (endpoint, status(member).await) });
    let (mut answered, mut handshakes, mut unreachable) = (0, Vec::new(), Vec::new());
    let mut leaderless = None;
    for ((endpoint, status), (_, member)) in join_all(asked).await.into_iter().zip(pool.members()) {
        match status {
            Ok(status) => {
                check_version(endpoint, &status)?;
                answered += 1;
            }
            Err(error) => match (Failure::from(error), member.take_trouble()) {
                (_, Some(ConnectError::Tls(reason))) => handshakes.push(format!("{endpoint}: {reason}")),
                (_, Some(ConnectError::Network(reason))) => unreachable.push(format!("{endpoint}: {reason}")),
                (Failure::Authentication(reason), None) => return Err(OpenError::Denied(reason)),
                (Failure::Unavailable(reason), None) if reason == NO_LEADER => {
                    leaderless = Some(format!("{endpoint}: {reason}"));
                }
                (Failure::Unavailable(reason) | Failure::Refused(reason), None) => {
                    unreachable.push(format!("{endpoint}: {reason}"));
                }
                (other, None) => unreachable.push(format!("{endpoint}: {}", LogError::from(other))),
            },
        }
    }
    for reason in handshakes.iter().chain(&unreachable) {
        tracing::warn!(reason, "a member of etcd does not answer");
    }
    if answered > 0 {
        return Ok(());
    }
    if let Some(reason) = leaderless {
        unreachable.insert(0, reason);
        return Err(OpenError::NoQuorum(unreachable.join("; ")));
    }
    Err(match handshakes.is_empty() {
        false => OpenError::Handshake(handshakes.join("; ")),
        true => OpenError::Unreachable(unreachable.join("; ")),
    })
}

/// Asks a member for its status. A connection that ends without a reason is tried again: its member may have refused the
/// certificate, and the end of the connection may overtake that answer.
async fn status(member: &Member) -> Result<StatusResponse, etcd_client::Error> {
    let ask = async {
        let mut attempt = 1;
        loop {
            let answer = member.maintenance.clone().status().await;
            if answer.is_ok() || member.has_trouble() || attempt == ATTEMPTS {
                return answer;
            }
            attempt += 1;
            sleep(PAUSE).await;
            if member.has_trouble() {
                return answer;
            }
        }
    };
    let late = |_| Err(tonic::Status::unavailable("no answer in time").into());
    timeout(TIMEOUT, ask).await.unwrap_or_else(late)
}

fn check_version(endpoint: &str, status: &StatusResponse) -> Result<(), OpenError> {
    if is_known(status.version()) {
        return Ok(());
    }
    let version = status.version().chars().take(40).collect();
    Err(OpenError::TooOld { endpoint: endpoint.to_owned(), version })
}

fn is_known(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u64>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= OLDEST)
}

async fn check_alarms(pool: &Pool) -> Result<(), OpenError> {
    use etcd_client::AlarmAction::Get;
    let alarms =
        pool.call(TIMEOUT, |member| async move {
            member.maintenance.clone().alarm(Get, AlarmType::None, None).await
        })
        .await
        .map_err(without_quorum)?;
    for alarm in alarms.alarms() {
        let member = format!("member {:x}", alarm.member_id());
        match alarm.alarm() {
            AlarmType::Nospace => return Err(OpenError::Full(member)),
            AlarmType::Corrupt => return Err(OpenError::Corrupt(member)),
            AlarmType::None => {}
        }
    }
    Ok(())
}

/// Returns the failure of a call that a majority must answer, after a member has answered by itself.
pub(crate) fn without_quorum(failure: Failure) -> OpenError {
    match failure {
        Failure::Unavailable(reason) => OpenError::NoQuorum(reason),
        Failure::Authentication(reason) => OpenError::Denied(reason),
        Failure::Full => OpenError::Full("a member".into()),
        other => OpenError::Log(other.into()),
    }
}

/// Returns the identity of the log, if there is one.
async fn present(pool: &Pool, keys: &Keys) -> Result<Option<StoreId>, OpenError> {
    let some = GetOptions::new().with_prefix().with_keys_only().with_limit(1);
    let found = pool
        .call(TIMEOUT, |mut member| {
            let read = Txn::new()
                .and_then([TxnOp::get(keys.id(), None), TxnOp::get(keys.all(), Some(some.clone()))]);
            async move { member.kv.txn(read).await }
        })
        .await
        .map_err(without_quorum)?;
    let mut keys_found = crate::answers::values(&found).into_iter();
    let (id, any) = (keys_found.next().flatten(), keys_found.next().flatten());
    let foreign =
        |reason: String| OpenError::Foreign(format!("no log of periapt below {:?}: {reason}", keys.all()));
    match (id, any) {
        (Some(id), _) => decode_id(id.value()).map(Some).map_err(foreign),
        (None, Some(other)) => {
            let other: String = String::from_utf8_lossy(other.key()).chars().take(100).collect();
            Err(foreign(format!("another program has keys there, such as {other:?}; take another prefix")))
        }
        (None, None) => Ok(None),
    }
}

/// Makes the log, unless another controller makes it at the same time. Returns its identity.
async fn make(pool: &Pool, keys: &Keys, fresh: StoreId) -> Result<StoreId, OpenError> {
    pool.call(TIMEOUT, |mut member| {
        let make = Txn::new()
            .when([Compare::create_revision(keys.id(), CompareOp::Equal, 0)])
            .and_then([TxnOp::put(keys.id(), encode_id(fresh), None)]);
        async move { member.kv.txn(make).await }
    })
    .await
    .map_err(without_quorum)?;
    let made = present(pool, keys).await?;
    made.ok_or_else(|| OpenError::Foreign("the log's identity was deleted while it was made".into()))
}

/// Checks the cluster, and refuses one in which controllers have a log there.
pub(crate) async fn is_free(options: &EtcdOptions, keys: &Keys) -> Result<(), OpenError> {
    unled(&check(options).await?, keys).await.map(drop)
}

/// Makes a log that begins after a position, in the place of one that no controller has ever led.
pub(crate) async fn begin(options: &EtcdOptions, keys: &Keys, position: Revision) -> Result<(), OpenError> {
    let pool = check(options).await?;
    let still_unled = unled(&pool, keys).await?;
    let end = position.0.to_string();
    pool.call(TIMEOUT, |mut member| {
        let make = [
            TxnOp::put(keys.id(), encode_id(options.fresh_id), None),
            TxnOp::put(keys.term(), UNLED, None),
            TxnOp::put(keys.end(), end.clone(), None),
            TxnOp::put(keys.trimmed(), end.clone(), None),
        ];
        let make = Txn::new().when(still_unled.clone()).and_then(make);
        async move { member.kv.txn(make).await }
    })
    .await
    .map_err(without_quorum)?;
    match present(&pool, keys).await? {
        Some(made) if made == options.fresh_id => Ok(()),
        _ => Err(OpenError::Present(keys.all().to_owned())),
    }
}

/// Refuses a log that a controller has led. Returns the conditions under which there is still none, or only one that no
/// controller has ever led.
async fn unled(pool: &Pool, keys: &Keys) -> Result<[Compare; 2], OpenError> {
    let id = present(pool, keys).await?;
    let found = pool
        .call(TIMEOUT, |mut member| {
            let key = keys.term();
            async move { member.kv.get(key, None).await }
        })
        .await
        .map_err(without_quorum)?;
    let term = found.kvs().first().map(|found| found.value().to_owned());
    if term.as_ref().is_some_and(|term| term != UNLED.as_bytes()) {
        return Err(OpenError::Present(keys.all().to_owned()));
    }
    let still = |key: String, value: Option<Vec<u8>>| match value {
        Some(value) => Compare::value(key, CompareOp::Equal, value),
        None => Compare::create_revision(key, CompareOp::Equal, 0),
    };
    Ok([still(keys.id(), id.map(|id| encode_id(id).into_bytes())), still(keys.term(), term)])
}

/// Makes the keys of the shard, unless it has them. Those of a log that was removed meanwhile are not made.
async fn prepare_shard(pool: &Pool, keys: &Keys) -> Result<(), OpenError> {
    pool.call(TIMEOUT, |mut member| {
        let fresh = [keys.term(), keys.end(), keys.trimmed()];
        let mut absent = fresh.clone().map(|key| Compare::create_revision(key, CompareOp::Equal, 0)).to_vec();
        absent.push(Compare::create_revision(keys.id(), CompareOp::Greater, 0));
        let make = Txn::new().when(absent).and_then(fresh.map(|key| TxnOp::put(key, UNLED, None)));
        async move { member.kv.txn(make).await }
    })
    .await
    .map_err(without_quorum)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_3_5_are_refused() {
        for version in ["3.5.0", "3.5.16", "3.6.1", "4.0.0-rc.1", "3.10.0"] {
            assert!(is_known(version), "{version}");
        }
        for version in ["3.4.23", "2.3.8", "3", "", "x.y.z", "3.x"] {
            assert!(!is_known(version), "{version}");
        }
    }
}
