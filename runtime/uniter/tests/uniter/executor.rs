//! Tests of the executor's commands, with a module for each input. The laboratory tests whole lives of it.

mod begin;
mod bench;
mod charm_answered;
mod commit_answered;
mod early_effects;
mod frame_applied;
mod hook_ended;
mod ignored;
mod phase;
mod runner_lost;
mod store_replaced;
mod text;
mod time_passed;
mod turn_came;
