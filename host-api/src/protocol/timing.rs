//! The times that clients, agents, runners and the controller grant each other, and the conditions between them.
//!
//! A time that only one side needs, such as the pause before a retry, is defined where it is used.

use std::time::Duration;

/// The most controllers of one store that a client knows, by their URLs. A few controllers serve one store; the bound
/// keeps a list short that others wrote, and a round over all of it within [`crate::timing::AGENT_GRACE_MS`].
pub const MAX_ADDRESSES: usize = 16;

/// The length of the lease that an agent claims, in seconds (`docs/hook-model.md` 7.4, `docs/design/leases.md`).
pub const LEASE_SECONDS: u32 = 60;

/// The length of the lease that an agent claims, as a duration.
pub const LEASE: Duration = Duration::from_secs(LEASE_SECONDS as u64);

/// The shortest lease that the controller grants, in seconds.
pub const SHORTEST_LEASE_SECONDS: u32 = 5;

/// The longest lease that the controller grants, in seconds. It is at most [`LEASE_AFTER_RESTART_MS`]: otherwise
/// another unit could lead after a restart of the controller while the holder still relies on its lease. Juju grants
/// up to five minutes.
pub const LONGEST_LEASE_SECONDS: u32 = LEASE_SECONDS;

/// The interval at which an agent renews its leases: several renewals may fail before a lease expires.
pub const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(15);

/// The longest time that a hook waits for a renewal.
pub const LEASE_RENEWED_WITHIN: Duration = Duration::from_secs(5);

/// The length of every lease after a restart of the controller, which stores no lease times, and once another controller
/// leads, in milliseconds of the lease clock: as long as agents claim, and 5 % for clocks that do not go at the same rate.
pub const LEASE_AFTER_RESTART_MS: u64 = LEASE_SECONDS as u64 * 1_050;

/// The largest difference between the clocks of two controllers of one log with which one of them starts: certificates
/// would not be valid yet, and answers and tokens would end at another time.
pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// The time that a unit stays leader after its charm learned so, in milliseconds of the lease clock: Juju's guarantee
/// to charms.
pub const LEADERSHIP_GUARANTEE_MS: u64 = 30_000;

/// The time for which an agent without a connection still counts as alive, in milliseconds of the lease clock; a
/// reconnect takes less.
pub const AGENT_GRACE_MS: u64 = 30_000;

/// The shortest time without a connection after which the units of an agent go to another agent, if they can, and the one
/// of models that set no other (`agent-failover-after`). By then every lease of the agent has lapsed, and no hook on its host
/// believes any more that its unit leads.
pub const FAILOVER_AFTER: Duration = Duration::from_secs(90);

/// The interval of heartbeats in a watch without changes.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// The longest silence of a watch. The watcher then drops it, whatever the state of the connection.
pub const WATCH_SILENCE: Duration = Duration::from_secs(30);

/// The longest silence of a connection before a ping, and the longest wait for the reply. Client and controller ping
/// independently.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The longest silence of a controller before a client pings it that knows others, while a request or a stream is open. A
/// client of one controller alone has nowhere to go and pings every [`KEEP_ALIVE`]: on each watcher's connection a ping
/// this often costs two small packets each way and a wake-up on both sides, 20,000 pings per second for 10,000 hosts at
/// one controller, about a fifth of a core. Nobody pings on an idle connection, or where other data arrives.
pub const PEER_PING_EVERY: Duration = Duration::from_millis(500);

/// The longest wait for that ping's reply: well above a round trip around the earth and a pause of a loaded controller,
/// both of which must not move its clients.
pub const PEER_PING_WITHIN: Duration = Duration::from_millis(1_000);

/// The longest silence of a controller that a client which knows others bears.
pub const PEER_SILENCE: Duration = Duration::from_millis(1_500);

/// The longest time to connect to one of several controllers, in the first round over all of them.
pub const PEER_CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// The interval at which a runner tells its keeper that it is alive, whatever its hooks do.
pub const RUNNER_ALIVE_EVERY: Duration = Duration::from_secs(5);

/// The longest silence of a runner. The keeper then takes it for hung.
pub const RUNNER_SILENCE: Duration = Duration::from_secs(60);

/// The time for which the controller keeps the answer to a request with an id, at least. Requests that are sent again come
/// within it.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(600);

/// The longest time for which a client sends a request again that was not answered. The rest of [`ANSWERS_KEPT`] is for
/// the wait for the last answer.
pub const LONGEST_REPEAT: Duration = Duration::from_secs(300);

const fn ms(time: Duration) -> u128 {
    time.as_millis()
}

const _: () = assert!(
    SHORTEST_LEASE_SECONDS <= LEASE_SECONDS && LEASE_SECONDS <= LONGEST_LEASE_SECONDS,
    "agents ask for leases that the controller grants"
);
const _: () =
    assert!(4 * ms(LEASE_RENEWED_EVERY) <= ms(LEASE), "three rounds may be lost before a lease lapses");
const _: () = assert!(
    ms(LEASE) - ms(LEASE_RENEWED_EVERY) >= LEADERSHIP_GUARANTEE_MS as u128 + ms(LEASE_RENEWED_WITHIN),
    "while rounds succeed, enough is left of a lease for a hook to be told that it leads"
);
const _: () = assert!(
    SHORTEST_LEASE_SECONDS as u128 * 1_000 >= ms(LEASE_RENEWED_WITHIN),
    "the shortest lease has not lapsed when the hook that waits for it hears of it"
);
const _: () = assert!(
    LEASE_AFTER_RESTART_MS * 100 >= LONGEST_LEASE_SECONDS as u64 * 105_000,
    "nobody else leads while an agent counts on its lease, though its clock goes 5 % slower than the controller's"
);
const _: () = assert!(
    2 * ms(KEEP_ALIVE) < AGENT_GRACE_MS as u128,
    "a dead connection is replaced before its agent counts as lost"
);
const _: () = assert!(
    ms(PEER_PING_EVERY) + ms(PEER_PING_WITHIN) <= ms(PEER_SILENCE),
    "a silent controller is left in time"
);
const _: () = assert!(
    ms(PEER_SILENCE) < ms(KEEP_ALIVE),
    "a client that knows other controllers leaves a silent one sooner than a client that does not"
);
const _: () = assert!(
    ms(PEER_SILENCE) + MAX_ADDRESSES as u128 * ms(PEER_CONNECT_WITHIN) < AGENT_GRACE_MS as u128,
    "an agent has tried all controllers before it counts as lost"
);
const _: () = assert!(
    ms(PEER_SILENCE) + MAX_ADDRESSES as u128 * ms(PEER_CONNECT_WITHIN) < ms(LEASE) - ms(LEASE_RENEWED_EVERY),
    "leases outlast the way to another controller"
);
const _: () = assert!(
    ms(LEASE) + LEADERSHIP_GUARANTEE_MS as u128 <= ms(FAILOVER_AFTER),
    "a unit that goes on elsewhere does not lead twice"
);
const _: () = assert!(
    2 * ms(LONGEST_REPEAT) <= ms(ANSWERS_KEPT),
    "no request comes again after its answer is forgotten"
);
const _: () = assert!(
    (AGENT_GRACE_MS as u128) < ms(FAILOVER_AFTER),
    "units are shown as lost before they go elsewhere"
);
const _: () = assert!(
    2 * ms(KEEP_ALIVE) < ms(LEASE),
    "an agent whose host vanished is noticed before its leases lapse"
);
const _: () =
    assert!(3 * ms(HEARTBEAT) <= ms(WATCH_SILENCE), "two heartbeats may be lost before a watch is given up");
const _: () =
    assert!(ms(WATCH_SILENCE) < ms(LEASE), "a dead watch is replaced before its agent's leases lapse");
const _: () = assert!(
    4 * ms(RUNNER_ALIVE_EVERY) <= ms(RUNNER_SILENCE),
    "a runner that lives is not taken for one that hangs"
);
