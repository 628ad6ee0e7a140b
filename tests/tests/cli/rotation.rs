//! The rotation of a secret. The shortest policy is an hour, so the test stops the controller, and runs it in its own
//! process with a clock of its own. Agent, runners, charms and command line are the binary's, and notice nothing.

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use periapt_controller::{Clock, Listen, Options, SystemClock, TlsListen};
use periapt_host_api::Timestamp;
use periapt_tests::{Installation, POLL_INTERVAL, check_helper, signal};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::{
    secrets::{logged, related},
    text,
};

/// The longest time that the previous process may hold its directory and port.
const UNTIL: Duration = Duration::from_secs(60);

/// The machine's clocks, with the wall clock set ahead.
#[derive(Default)]
struct AheadClocks {
    by: Duration,
    machine: SystemClock,
}

impl Clock for AheadClocks {
    fn now(&self) -> Timestamp {
        self.machine.now() + self.by
    }

    fn monotonic_ms(&self) -> u64 {
        self.machine.monotonic_ms()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.machine.sleep(duration)
    }
}

/// A controller in this process, which runs until the value is dropped.
struct RunningController(Runtime);

impl RunningController {
    /// Continues the installation's controller `local`.
    fn on(periapt: &Installation, by: Duration) -> anyhow::Result<Self> {
        let listing = periapt.json(["controllers"])?;
        let endpoint = text(&listing, "/controllers/local/url")?;
        let address: SocketAddr = endpoint.trim_start_matches("https://").parse()?;
        signal(periapt.controller_process("local")?, "TERM")?;
        let directory = periapt.path().join("data/controllers/local/controller");
        let runtime = Runtime::new()?;
        let deadline = Instant::now() + UNTIL;
        loop {
            let listen = Listen::Tls(TlsListen::in_directory(&directory, address, Vec::new())?);
            let mut options = Options::in_directory("local", &directory, listen, "test", check_helper()?)?;
            options.clock = Arc::new(AheadClocks { by, ..AheadClocks::default() });
            match runtime.block_on(options.build()) {
                Ok(service) => {
                    runtime.spawn(service.run(CancellationToken::new()));
                    return Ok(Self(runtime));
                }
                Err(error) if Instant::now() > deadline => return Err(error).context("not let go of"),
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn end(self) {
        self.0.shutdown_background();
    }
}

#[test]
fn a_secret_is_rotated_by_its_owner_and_its_reader_hears_of_it() -> anyhow::Result<()> {
    let periapt = related(
        "db-relation-created: share password=eno\ndb-relation-created: rotate\n\
         secret-rotate: revise password=owt\nsecret-remove: prune",
    )?;
    logged(&periapt, "reader/0", "opened password=eno")?;
    let revision = |expected: u64| {
        move |secrets: &serde_json::Value| {
            let mut secrets = secrets.as_object().into_iter().flat_map(serde_json::Map::values);
            secrets.any(|secret| secret["revision"] == expected)
        }
    };
    periapt.json_until(&["secrets"], revision(1))?;

    let controller = RunningController::on(&periapt, Duration::from_secs(61 * 60))?;
    logged(&periapt, "owner/0", "event secret-rotate")?;
    logged(&periapt, "reader/0", "event secret-changed")?;
    logged(&periapt, "reader/0", "opened password=owt")?;
    // The reader tracks the second revision, so the owner has learned that the first is obsolete, and has removed it.
    logged(&periapt, "owner/0", "event secret-remove")?;
    let secrets = periapt.json_until(&["secrets"], revision(2))?;
    let id = secrets.as_object().and_then(|secrets| secrets.keys().next()).context("a secret")?;
    let shown = periapt.json_until(&["show-secret", id, "--revisions"], |shown| {
        shown[id]["revisions"].as_array().is_some_and(|revisions| revisions.len() == 1)
    })?;
    assert_eq!(shown[id]["rotation"], "hourly", "{shown}");
    controller.end();
    Ok(())
}
