//! The check of a component that a charm declares as a workload.

use periapt_host_api::workloads::{WorkloadInterface, refused_import};

use super::{WorldError, decoded::Decoded, listed};

/// A component that is not the workload that it is declared to be.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorkloadMismatch {
    /// The bytes are no component.
    #[error(transparent)]
    NotAComponent(WorldError),
    /// The component has other exports.
    #[error(
        "the component does not export {}, which {} has; its exports: {}",
        wanted.as_str(),
        declared(*wanted),
        listed(exports, ", ")
    )]
    NoExport {
        /// The interface that is missing.
        wanted: WorkloadInterface,
        /// The component's exports.
        exports: Vec<String>,
    },
    /// Imports that cannot be linked, each with the reason.
    #[error("imports that a workload cannot have: {}", listed(.0, "; "))]
    Imports(Vec<String>),
}

fn declared(interface: WorkloadInterface) -> &'static str {
    match interface {
        WorkloadInterface::Http => "a workload with a port",
        WorkloadInterface::Command => "a workload without a port",
    }
}

/// Checks that a component is a workload with an interface.
///
/// # Errors
/// [`WorkloadMismatch`] names what is missing, or each import that cannot be linked.
pub fn check_workload(bytes: &[u8], wanted: WorkloadInterface) -> Result<(), WorkloadMismatch> {
    let found = Decoded::read(bytes).map_err(WorkloadMismatch::NotAComponent)?;
    let is_wanted = |(name, instance): (&String, &Option<_>)| instance.is_some() && wanted.is_export(name);
    if !found.exports.iter().any(is_wanted) {
        let mut exports: Vec<String> = found.exports.into_keys().collect();
        if exports.is_empty() {
            exports.push("none".to_owned());
        }
        return Err(WorkloadMismatch::NoExport { wanted, exports });
    }
    let refused: Vec<String> = found
        .imports
        .iter()
        .filter_map(|(name, instance)| match instance {
            Some(_) => refused_import(name).map(|reason| format!("{name}: {reason}")),
            None => Some(format!("{name}: it is not an interface")),
        })
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(WorkloadMismatch::Imports(refused)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(component: &str, wanted: WorkloadInterface, message: &str) {
        let bytes = wat::parse_str(component).unwrap();
        let told = check_workload(&bytes, wanted).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.starts_with(message) && told.is_empty() == message.is_empty(), "{component}: {told}");
    }

    const EMPTY: &str = "(component)";
    const COMMAND: &str = r#"(component (instance $run) (export "wasi:cli/run@0.2.3" (instance $run)))"#;

    #[test]
    fn the_export_that_is_missing_is_named_with_those_that_there_are() {
        check(COMMAND, WorkloadInterface::Command, "");
        let server = "the component does not export wasi:http/incoming-handler, which a workload with a port has; \
                      its exports: ";
        check(EMPTY, WorkloadInterface::Http, &format!("{server}none"));
        check(COMMAND, WorkloadInterface::Http, &format!("{server}wasi:cli/run@0.2.3"));
        let function = r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (export "run" (func $f)))"#;
        check(function, WorkloadInterface::Command, "the component does not export wasi:cli/run");
        check("(module)", WorkloadInterface::Http, "not a WebAssembly component: it is a core module");
    }

    #[test]
    fn imports_that_cannot_be_linked_are_named() {
        let component = |import: &str| {
            COMMAND.replace("(component", &format!(r#"(component (import "{import}" (instance))"#))
        };
        check(&component("wasi:http/types@0.2.3"), WorkloadInterface::Command, "");
        let message =
            "imports that a workload cannot have: periapt:charm/config@0.1.0: periapt:charm is for hooks";
        check(&component("periapt:charm/config@0.1.0"), WorkloadInterface::Command, message);
    }
}
