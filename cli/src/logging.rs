//! What the program says of its own doings: on standard error, never between its output.

use tracing_subscriber::EnvFilter;

use crate::{
    args::Cli,
    commands::{Runtime, Verb as _},
    output,
};

/// The variable with which more than the options allow can be asked for, as in `periapt_agent=trace`.
pub(crate) const LOG_VARIABLE: &str = "PERIAPT_LOG";

/// Starts it; once.
pub(crate) fn start(cli: &Cli) {
    let level = match (cli.debug, cli.verbose || cli.show_log, cli.quiet, is_process(cli)) {
        (true, ..) => "debug",
        (_, true, ..) | (_, _, false, true) => "info",
        (_, _, true, _) => "error",
        _ => "warn",
    };
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| output::Log)
        .with_ansi(output::is_seen())
        .init();
}

/// A service, or a process of one: what they log is all that is heard of them.
fn is_process(cli: &Cli) -> bool {
    match cli.command.runtime() {
        Runtime::OneThread => false,
        Runtime::AllCores | Runtime::Own(..) => true,
    }
}
