//! The rooms and the arrows between them: the only place that allows a dependency.

use std::collections::BTreeSet;

/// A crate of the host's workspace.
pub(crate) struct Room {
    /// The crate's name.
    pub(crate) name: &'static str,
    /// The rooms that it depends on. It may also use the rooms that these reach.
    pub(crate) arrows: &'static [&'static str],
}

/// The map of the rooms, as `ARCHITECTURE.md` draws it.
pub(crate) const ROOMS: &[Room] = &[
    Room { name: "periapt-host-api", arrows: &[] },
    Room { name: "periapt-transport", arrows: &["periapt-host-api"] },
    Room { name: "periapt-client", arrows: &["periapt-transport"] },
    Room { name: "periapt-telemetry", arrows: &["periapt-host-api"] },
    Room { name: "periapt-archive", arrows: &["periapt-host-api"] },
    Room { name: "periapt-pack", arrows: &[] },
    Room { name: "periapt-python", arrows: &["periapt-archive"] },
    Room { name: "periapt-helper", arrows: &[] },
    Room { name: "periapt-image", arrows: &["periapt-transport"] },
    Room { name: "periapt-netlink", arrows: &[] },
    Room { name: "periapt-program", arrows: &["periapt-host-api"] },
    Room { name: "periapt-uniter", arrows: &["periapt-host-api"] },
    Room { name: "periapt-hook", arrows: &["periapt-host-api"] },
    Room { name: "periapt-shell", arrows: &["periapt-hook"] },
    Room { name: "periapt-pebble", arrows: &["periapt-host-api"] },
    Room {
        name: "periapt-pod",
        arrows: &["periapt-pebble", "periapt-helper", "periapt-netlink", "periapt-transport"],
    },
    Room { name: "periapt-sandbox", arrows: &["periapt-hook"] },
    Room {
        name: "periapt-agent",
        arrows: &[
            "periapt-sandbox",
            "periapt-shell",
            "periapt-uniter",
            "periapt-client",
            "periapt-archive",
            "periapt-helper",
            "periapt-image",
            "periapt-netlink",
            "periapt-program",
            "periapt-telemetry",
        ],
    },
    // Its units' containers are real cores of pods, on its clock: the core is pure.
    Room {
        name: "periapt-lab",
        arrows: &["periapt-model", "periapt-uniter", "periapt-shell", "periapt-pebble", "periapt-sandbox"],
    },
    Room { name: "periapt-trial", arrows: &["periapt-sandbox", "periapt-archive"] },
    Room { name: "periapt-workload", arrows: &["periapt-sandbox", "periapt-helper", "periapt-transport"] },
    Room { name: "periapt-model", arrows: &["periapt-host-api"] },
    Room { name: "periapt-store", arrows: &["periapt-model"] },
    Room { name: "periapt-store-rocksdb", arrows: &["periapt-store"] },
    Room { name: "periapt-log", arrows: &["periapt-store"] },
    Room { name: "periapt-log-etcd", arrows: &["periapt-log", "periapt-transport"] },
    Room { name: "periapt-blobs", arrows: &["periapt-store", "periapt-transport"] },
    Room {
        name: "periapt-controller",
        arrows: &[
            "periapt-store-rocksdb",
            "periapt-blobs",
            "periapt-log",
            "periapt-archive",
            "periapt-client",
            "periapt-helper",
            "periapt-image",
            "periapt-program",
            "periapt-telemetry",
        ],
    },
    Room {
        name: "periapt",
        arrows: &[
            "periapt-client",
            "periapt-controller",
            "periapt-blobs",
            "periapt-log-etcd",
            "periapt-agent",
            "periapt-image",
            "periapt-pack",
            "periapt-pod",
            "periapt-python",
            "periapt-trial",
            "periapt-workload",
        ],
    },
    // These crates test from outside: the binary, the HTTP API, the public crates.
    Room { name: "periapt-tests", arrows: &["periapt", "periapt-lab"] },
    Room { name: "periapt-bindings", arrows: &[] },
    Room { name: "periapt-conformance", arrows: &[] },
];

/// The crates without a runtime, a clock, random numbers, threads or I/O.
pub(crate) const PURE: &[&str] = &[
    "periapt-host-api",
    "periapt-model",
    "periapt-uniter",
    "periapt-hook",
    "periapt-shell",
    "periapt-pebble",
];

/// The only crate that may name the WebAssembly engine, whose generic code is compiled once, there.
pub(crate) const ENGINE: (&str, &[&str]) =
    ("periapt-sandbox", &["wasmtime", "wasmtime-wasi", "wasmtime-wasi-http"]);

/// The only crate that may name the embedded database, so that a build without it needs no C++ compiler.
pub(crate) const STORE_ENGINE: (&str, &[&str]) = ("periapt-store-rocksdb", &["rocksdb", "librocksdb-sys"]);

/// The only crate that may name the client of etcd, so that a build without it needs no gRPC.
pub(crate) const LOG_ENGINE: (&str, &[&str]) = ("periapt-log-etcd", &["etcd-client", "tonic"]);

/// Returns all rooms that `name` reaches by arrows, without itself.
fn reach<'a>(rooms: &'a [Room], name: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![name];
    while let Some(next) = open.pop() {
        for room in rooms.iter().filter(|room| room.name == next) {
            open.extend(room.arrows.iter().filter(|arrow| reached.insert(**arrow)));
        }
    }
    reached
}

/// Returns the edges (from, to) between rooms that no arrow allows, one sentence each.
pub(crate) fn breaches(rooms: &[Room], edges: &[(String, String)]) -> Vec<String> {
    let mut breaches = Vec::new();
    for (from, to) in edges {
        let reached = reach(rooms, from);
        if !reached.contains(to.as_str()) {
            let allowed = if reached.is_empty() {
                "no room at all".to_owned()
            } else {
                reached.into_iter().collect::<Vec<_>>().join(", ")
            };
            breaches.push(format!("{from} depends on {to}, but may know only: {allowed}"));
        }
    }
    breaches
}
