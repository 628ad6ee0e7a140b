//! The helper process that checks charms, for controllers that are built into other programs, such as tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    periapt_controller::run_check_helper(&std::env::args().next_back().unwrap_or_default())
}
