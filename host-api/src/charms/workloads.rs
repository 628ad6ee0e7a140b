//! The components that a charm brings as workloads: what they export, and what they may import.

use super::imports::{CONTRACT_PACKAGE, ImportKind};

/// The most bytes of a workload's component: a Python one has 40 MB.
pub const MAX_WORKLOAD_COMPONENT: u64 = 128 << 20;

/// The interface that makes a component a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadInterface {
    /// A server of HTTP, which a port in the charm's metadata declares.
    Http,
    /// A command.
    Command,
}

impl WorkloadInterface {
    /// Returns the interface's name, without its version.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "wasi:http/incoming-handler",
            Self::Command => "wasi:cli/run",
        }
    }

    /// Returns true for the name of an export that is this interface in a release that the engine implements.
    pub fn is_export(self, name: &str) -> bool {
        let version = name.strip_prefix(self.as_str()).and_then(|rest| rest.strip_prefix('@'));
        // Every release of WASI has all of its packages.
        version.is_some_and(|version| {
            matches!(ImportKind::of(&format!("wasi:cli/stdout@{version}")), ImportKind::Base)
        })
    }
}

/// Returns the reason why an import of a workload cannot be linked, if there is one. A workload has WASI without
/// sockets, and `wasi:http`, whose requests go where a policy lets them.
pub fn refused_import(import: &str) -> Option<String> {
    match ImportKind::of(import) {
        ImportKind::Base | ImportKind::Grantable(_) => None,
        ImportKind::Contract => Some(format!("{CONTRACT_PACKAGE} is for hooks alone")),
        ImportKind::Refused(reason) => Some(reason.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_counts_in_the_releases_that_the_engine_has() {
        for (name, is_server) in [
            ("wasi:http/incoming-handler@0.2.0", true),
            ("wasi:http/incoming-handler@0.2.12", true),
            ("wasi:http/incoming-handler@0.2.13", false),
            ("wasi:http/incoming-handler@0.3.0", false),
            ("wasi:http/incoming-handler", false),
            ("wasi:http/incoming-handlers@0.2.0", false),
            ("wasi:cli/run@0.2.0", false),
        ] {
            assert_eq!(WorkloadInterface::Http.is_export(name), is_server, "{name}");
        }
        assert!(WorkloadInterface::Command.is_export("wasi:cli/run@0.2.3"));
    }

    #[test]
    fn a_workload_imports_wasi_and_http_and_no_hook_tools() {
        for import in
            ["wasi:cli/environment@0.2.3", "wasi:http/types@0.2.3", "wasi:http/outgoing-handler@0.2.0"]
        {
            assert_eq!(refused_import(import), None, "{import}");
        }
        let hooks = refused_import("periapt:charm/config@0.1.0");
        assert_eq!(hooks.as_deref(), Some("periapt:charm is for hooks alone"));
        assert!(refused_import("wasi:nn/tensor@0.2.0").is_some());
    }
}
