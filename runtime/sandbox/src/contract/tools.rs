//! The interface `hook-tools`.

use wasmtime::component::LinkerInstance;

use super::{bindings::periapt::charm::hook_tools::Output, host_call};
use crate::state::HookState;

/// The arguments of a call: the tool's name, its arguments, and standard input.
type Arguments = (String, Vec<String>, Option<Vec<u8>>);

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_leader(interface, "run", |context, now, (name, arguments, stdin): &Arguments| {
        context.run_tool(now, name, arguments, stdin.as_deref()).map(|output| Output {
            exit_code: output.exit_code,
            stdout: output.stdout.into(),
            stderr: output.stderr.into(),
        })
    })
}
