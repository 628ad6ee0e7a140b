//! The charms of small models, with the minimum for a relation.

use periapt_lab::LabCharm;

/// A charm that requires the interface of a [`PROVIDER`].
pub(super) const REQUIRER: &str = "
name: requirer
requires:
  db: {interface: sql}
";

/// A charm that provides the interface of a [`REQUIRER`].
pub(super) const PROVIDER: &str = "
name: provider
provides:
  db: {interface: sql}
";

/// A charm with a peer relation.
pub(super) const PEERED: &str = "
name: peered
peers:
  ring: {interface: ring}
";

/// A subordinate of any other charm.
pub(super) const SUBORDINATE: &str = "
name: subordinate
subordinate: true
requires:
  host: {interface: juju-info, scope: container}
";

pub(super) fn charm(text: &str) -> LabCharm {
    LabCharm::new(&format!("summary: for tests\ndescription: for tests\n{text}")).unwrap()
}
