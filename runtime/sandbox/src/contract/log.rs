//! The interface `log`.

use periapt_host_api::logs::LogLevel;
use wasmtime::component::LinkerInstance;

use super::{bindings::periapt::charm::log::Level, host_call};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_silent(interface, "write", |context, now, (level, message): (Level, String)| {
        context.log(now, level.into(), &message);
    })
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Trace => Self::Trace,
            Level::Debug => Self::Debug,
            Level::Info => Self::Info,
            Level::Warning => Self::Warning,
            Level::Error => Self::Error,
        }
    }
}
