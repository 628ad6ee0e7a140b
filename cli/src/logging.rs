//! The program's log, on standard error, apart from its output.

use tracing_subscriber::EnvFilter;

use crate::{
    args::Cli,
    commands::{Runtime, Verb as _},
    output,
};

/// The variable that sets log levels beyond those of the options, as in `periapt_agent=trace`.
pub(crate) const LOG_VARIABLE: &str = "PERIAPT_LOG";

/// Starts the log. Called once.
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

/// Returns true for a service, or a process of one, whose log is its only message.
fn is_process(cli: &Cli) -> bool {
    match cli.command.runtime() {
        Runtime::OneThread => false,
        Runtime::AllCores | Runtime::Own(..) => true,
    }
}
