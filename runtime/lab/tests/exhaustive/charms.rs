//! The charms of small models: as little as a relation needs.

use periapt_lab::Charm;

/// Needs what a [`PROVIDER`] has.
pub(super) const REQUIRER: &str = "
name: requirer
requires:
  db: {interface: sql}
";

/// Has what a [`REQUIRER`] needs.
pub(super) const PROVIDER: &str = "
name: provider
provides:
  db: {interface: sql}
";

/// Its units see each other.
pub(super) const PEERED: &str = "
name: peered
peers:
  ring: {interface: ring}
";

/// Comes along with units of any other charm.
pub(super) const SUBORDINATE: &str = "
name: subordinate
subordinate: true
requires:
  host: {interface: juju-info, scope: container}
";

pub(super) fn charm(text: &str) -> Charm {
    Charm::new(&format!("summary: for tests\ndescription: for tests\n{text}")).unwrap()
}
