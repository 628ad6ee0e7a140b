//! The helper that checks charms, for controllers that are built into something else than `periapt`: tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    periapt_controller::run_check_helper(&std::env::args().next_back().unwrap_or_default())
}
