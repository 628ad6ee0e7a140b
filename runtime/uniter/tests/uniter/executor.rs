//! Tests of the executor's commands, with a module for each input. The laboratory tests whole lives of it.

mod bench;
mod charm_answered;
mod commit_answered;
mod frame_applied;
mod hook_ended;
mod runner_lost;
mod store_replaced;
mod time_passed;
