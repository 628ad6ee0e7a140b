//! How long clients, agents, runners and the controller wait for each other, and what must hold between these times.
//!
//! A time that one side alone knows, as the pause before another attempt, stands where it is used.

use std::time::Duration;

/// For how long an agent asks for leadership, in seconds (`hook-model.md` 7.4, `design.md` section 7).
pub const LEASE_SECONDS: u32 = 60;

/// The same.
pub const LEASE: Duration = Duration::from_secs(LEASE_SECONDS as u64);

/// The shortest lease that the controller grants, in seconds.
pub const SHORTEST_LEASE_SECONDS: u32 = 5;

/// The longest lease that the controller grants, in seconds. It may not outlast [`LEASE_AFTER_RESTART_MS`]: after a restart
/// of the controller, somebody else would lead while its holder still counts on it. Juju grants up to five minutes.
pub const LONGEST_LEASE_SECONDS: u32 = LEASE_SECONDS;

/// How often an agent renews its leases: several rounds may be lost before one lapses.
pub const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(15);

/// How long a hook waits for a renewal.
pub const LEASE_RENEWED_WITHIN: Duration = Duration::from_secs(5);

/// How long a lease holds after a restart of the controller, which stores no times of leases, in milliseconds of the clock of
/// leases: as long as agents ask for.
pub const LEASE_AFTER_RESTART_MS: u64 = LEASE_SECONDS as u64 * 1_000;

/// How long a unit stays leader after its charm was told so, in milliseconds of the clock of leases: what Juju promises to charms.
pub const LEADERSHIP_GUARANTEE_MS: u64 = 30_000;

/// For how long an agent that lost its connection is still taken for alive: a reconnect takes less.
pub const AGENT_GRACE: Duration = Duration::from_secs(30);

/// How often a watch says that nothing has changed.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// A watch in which nothing came for this long is dead, whatever its connection says.
pub const WATCH_SILENCE: Duration = Duration::from_secs(30);

/// A connection over which nothing comes for this long is asked for a sign of life, and as long again is waited for one; client
/// and controller do so each by itself.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How often a runner says to its keeper that it lives, whatever its hooks do.
pub const RUNNER_ALIVE_EVERY: Duration = Duration::from_secs(5);

/// A runner that said nothing for this long hangs.
pub const RUNNER_SILENCE: Duration = Duration::from_secs(60);

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
    LEASE_AFTER_RESTART_MS >= LONGEST_LEASE_SECONDS as u64 * 1_000,
    "nobody else leads while an agent counts on its lease"
);
const _: () = assert!(
    2 * ms(KEEP_ALIVE) < ms(AGENT_GRACE),
    "a dead connection is replaced before its agent counts as lost"
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
