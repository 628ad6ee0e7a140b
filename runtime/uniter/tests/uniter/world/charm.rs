//! The charms of `a`, told apart by their versions, and those of the applications that it is related to.

use periapt_host_api::Digest;
use periapt_lab::LabCharm;

use super::World;

/// The version of the charm that asks for batches in all relations.
pub(crate) const BATCHING: u64 = 3;

/// The version of the charm whose option `port` is a text.
pub(crate) const TEXTUAL: u64 = 4;

/// What is in every test: two endpoints, and two options.
const LOCAL: &str = "
name: a
summary: for tests
description: for tests
provides:
  db: {interface: any}
  web: {interface: any}
config:
  options:
    settings: {type: string, default: config-1}
    port: {type: int}
";

/// It requires what `a` provides, and what every application does.
const REMOTE: &str = "
name: remote
summary: for tests
description: for tests
requires:
  remote: {interface: any}
  info: {interface: juju-info}
provides:
  provided: {interface: any}
";

const SUBORDINATE: &str = "
name: subordinate
summary: for tests
description: for tests
subordinate: true
requires:
  host: {interface: juju-info, scope: container}
  other: {interface: any, scope: container}
provides:
  sink: {interface: any, scope: container}
";

impl World {
    /// A version of the unit's charm.
    pub(crate) fn charm(&mut self, version: u64) -> LabCharm {
        let text = format!("{LOCAL}{}# version {version}\n", self.declares);
        let text = match version {
            BATCHING => text.replace("{interface", "{batch: true, interface"),
            TEXTUAL => text.replace("port: {type: int}", "port: {type: string}"),
            _ => text,
        };
        let charm = LabCharm::new(&text).unwrap();
        self.versions.insert(charm.digest(), version);
        charm
    }

    /// The archive of a version.
    pub(crate) fn digest(&mut self, version: u64) -> Digest {
        self.charm(version).digest()
    }
}

/// The charm of an application that `a` is related to.
pub(super) fn remote() -> LabCharm {
    LabCharm::new(REMOTE).unwrap()
}

/// The charm of a subordinate.
pub(super) fn subordinate() -> LabCharm {
    LabCharm::new(SUBORDINATE).unwrap()
}
