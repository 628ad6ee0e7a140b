//! The imports that a charm's component may have: one table for `pack`, `deploy` and the sandbox's linker
//! (`docs/design/sandbox.md`).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The package of the contract with charms.
pub const CONTRACT_PACKAGE: &str = "periapt:charm";

/// The contract's version. A component names exactly this version. A later version will be linked beside it, not in
/// its place.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// The export that makes a component a charm.
pub const HANDLER_EXPORT: &str = "periapt:charm/handler@0.1.0";

/// The newest WASI release that the engine implements. Releases of 0.2 only add, so older ones fit.
pub const WASI_NEWEST: (u32, u32, u32) = (0, 2, 12);

/// The contract's interfaces that may be imported. `types` has no functions, and all other interfaces name it.
const CONTRACT: &[&str] = &[
    "actions",
    "config",
    "events",
    "goal-state",
    "hook-tools",
    "identity",
    "leadership",
    "log",
    "network",
    "pebble",
    "ports",
    "relations",
    "resources",
    "secrets",
    "state",
    "status",
    "storage",
    "types",
    "workloads",
];

/// WASI's interfaces that are always linked, without any access: a charm finds no network, no inherited environment
/// and no files but the hook's own.
const BASE: [(&str, &[&str]); 6] = [
    (
        "wasi:cli",
        &[
            "environment",
            "exit",
            "stderr",
            "stdin",
            "stdout",
            "terminal-input",
            "terminal-output",
            "terminal-stderr",
            "terminal-stdin",
            "terminal-stdout",
        ],
    ),
    ("wasi:clocks", &["monotonic-clock", "wall-clock"]),
    ("wasi:filesystem", &["preopens", "types"]),
    ("wasi:io", &["error", "poll", "streams"]),
    ("wasi:random", &["insecure", "insecure-seed", "random"]),
    (
        "wasi:sockets",
        &[
            "instance-network",
            "ip-name-lookup",
            "network",
            "tcp",
            "tcp-create-socket",
            "udp",
            "udp-create-socket",
        ],
    ),
];

/// Interfaces that an operator may grant.
const GRANTABLE: [(&str, &[&str], Grant); 1] =
    [("wasi:http", &["outgoing-handler", "types"], Grant::OutboundHttp)];

/// An ability beyond the sandbox. The charm declares it, and an operator grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// HTTP requests to other hosts.
    OutboundHttp,
}

impl Grant {
    /// Returns the ability's name in metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutboundHttp => "outbound-http",
        }
    }

    /// Returns true if this version supports the ability. `pack` and `deploy` refuse unsupported abilities by name.
    pub fn is_offered(self) -> bool {
        match self {
            Self::OutboundHttp => false,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kinds of imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    /// An interface of the contract: linked, with the hook's context as its implementation.
    Contract,
    /// An interface of WASI 0.2: linked, without any access.
    Base,
    /// An interface that is linked if the charm declares the ability. Each call checks the grant.
    Grantable(Grant),
    /// An import that is refused.
    Refused(Refused),
}

impl ImportKind {
    /// Returns the kind of a component's import, such as `wasi:cli/stdout@0.2.9`.
    pub fn of(import: &str) -> Self {
        let Some(name) = InterfaceName::parse(import) else { return Self::Refused(Refused::Unknown) };
        if name.package == CONTRACT_PACKAGE {
            return match name.version {
                Some(CONTRACT_VERSION) if CONTRACT.contains(&name.interface) => Self::Contract,
                Some(CONTRACT_VERSION) => Self::Refused(Refused::Unknown),
                _ => Self::Refused(Refused::Version),
            };
        }
        if BASE.iter().any(|(package, interfaces)| name.is_one_of(package, interfaces)) {
            return name.with_wasi_version(Self::Base);
        }
        match GRANTABLE.iter().find(|(package, interfaces, _)| name.is_one_of(package, interfaces)) {
            Some((_, _, grant)) => name.with_wasi_version(Self::Grantable(*grant)),
            None => Self::Refused(Refused::Unknown),
        }
    }
}

/// The reason that an import is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The sandbox has no interface of that name.
    Unknown,
    /// The sandbox has the interface in another version.
    Version,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = WASI_NEWEST;
        match self {
            Self::Unknown => f.write_str("the sandbox offers no such interface"),
            Self::Version => write!(
                f,
                "the sandbox offers this interface in another version ({CONTRACT_PACKAGE} {CONTRACT_VERSION}, \
                 wasi {major}.{minor}.0 to {major}.{minor}.{patch})"
            ),
        }
    }
}

/// The parts of `NAMESPACE:PACKAGE/INTERFACE[@VERSION]`.
struct InterfaceName<'a> {
    package: &'a str,
    interface: &'a str,
    version: Option<&'a str>,
}

impl<'a> InterfaceName<'a> {
    fn parse(import: &'a str) -> Option<Self> {
        let (path, version) = match import.split_once('@') {
            Some((path, version)) => (path, Some(version)),
            None => (import, None),
        };
        let (package, interface) = path.split_once('/')?;
        Some(Self { package, interface, version })
    }

    fn is_one_of(&self, package: &str, interfaces: &[&str]) -> bool {
        self.package == package && interfaces.contains(&self.interface)
    }

    /// Returns the kind, if the version is a 0.2 release that the engine knows.
    fn with_wasi_version(&self, kind: ImportKind) -> ImportKind {
        let (major, minor, newest) = WASI_NEWEST;
        let patch = self
            .version
            .and_then(|version| version.strip_prefix(&format!("{major}.{minor}.")))
            .filter(|patch| patch.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|patch| patch.parse::<u32>().ok());
        match patch {
            Some(patch) if patch <= newest => kind,
            _ => ImportKind::Refused(Refused::Version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(import: &str, kind: ImportKind) {
        assert_eq!(ImportKind::of(import), kind, "{import}");
    }

    #[test]
    fn the_contract_is_linked_in_its_own_version_only() {
        check("periapt:charm/config@0.1.0", ImportKind::Contract);
        check("periapt:charm/hook-tools@0.1.0", ImportKind::Contract);
        check("periapt:charm/types@0.1.0", ImportKind::Contract);
        check("periapt:charm/config@0.2.0", ImportKind::Refused(Refused::Version));
        check("periapt:charm/config", ImportKind::Refused(Refused::Version));
        check("periapt:charm/handler@0.1.0", ImportKind::Refused(Refused::Unknown));
    }

    #[test]
    fn every_interface_of_the_wit_but_the_handler_is_in_the_table() {
        let wit = include_str!("../../wit/charm.wit");
        let declared: Vec<&str> = wit
            .lines()
            .filter_map(|line| line.strip_prefix("interface "))
            .filter_map(|rest| rest.split_whitespace().next())
            .collect();
        assert!(declared.contains(&"relations"), "the interfaces of charm.wit are found: {declared:?}");
        for interface in declared {
            let kind = ImportKind::of(&format!("periapt:charm/{interface}@{CONTRACT_VERSION}"));
            assert_eq!(kind == ImportKind::Contract, interface != "handler", "{interface}");
        }
        assert!(wit.contains(&format!("package {CONTRACT_PACKAGE}@{CONTRACT_VERSION};")));
    }

    #[test]
    fn base_interfaces_fit_in_every_known_release_of_0_2() {
        check("wasi:io/streams@0.2.0", ImportKind::Base);
        check("wasi:sockets/tcp@0.2.9", ImportKind::Base);
        check("wasi:cli/environment@0.2.12", ImportKind::Base);
        check("wasi:cli/environment@0.2.13", ImportKind::Refused(Refused::Version));
        check("wasi:cli/environment@0.2.+1", ImportKind::Refused(Refused::Version));
        check("wasi:cli/environment@0.3.0", ImportKind::Refused(Refused::Version));
        check("wasi:cli/environment", ImportKind::Refused(Refused::Version));
    }

    #[test]
    fn what_is_not_in_the_table_is_refused() {
        check("wasi:cli/run@0.2.12", ImportKind::Refused(Refused::Unknown));
        check("wasi:clocks/timezone@0.2.12", ImportKind::Refused(Refused::Unknown));
        check("wasi:nn/tensor@0.2.0", ImportKind::Refused(Refused::Unknown));
        check("run", ImportKind::Refused(Refused::Unknown));
        check("", ImportKind::Refused(Refused::Unknown));
        check("periapt:charmed/config@0.1.0", ImportKind::Refused(Refused::Unknown));
    }

    #[test]
    fn outbound_http_can_be_declared_and_is_not_offered_yet() {
        check("wasi:http/outgoing-handler@0.2.12", ImportKind::Grantable(Grant::OutboundHttp));
        check("wasi:http/outgoing-handler@0.3.0", ImportKind::Refused(Refused::Version));
        check("wasi:http/incoming-handler@0.2.12", ImportKind::Refused(Refused::Unknown));
        assert!(!Grant::OutboundHttp.is_offered());
    }
}
