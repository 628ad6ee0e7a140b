//! The charms of `a` by their versions, and those of the related applications.

use periapt_host_api::Digest;
use periapt_lab::LabCharm;

use super::World;

/// The version of the charm that wants batches in all relations.
pub(crate) const BATCHING: u64 = 3;

/// The version of the charm whose option `port` has the type string.
pub(crate) const TEXTUAL: u64 = 4;

/// The declarations of every test: two endpoints, and two options.
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

/// A charm that requires what `a` and every application provide.
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
    /// Returns a version of the unit's charm.
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

    /// Returns the digest of a version.
    pub(crate) fn digest(&mut self, version: u64) -> Digest {
        self.charm(version).digest()
    }
}

/// Returns the charm of the applications related to `a`.
pub(super) fn remote() -> LabCharm {
    LabCharm::new(REMOTE).unwrap()
}

/// Returns the charm of subordinates.
pub(super) fn subordinate() -> LabCharm {
    LabCharm::new(SUBORDINATE).unwrap()
}
