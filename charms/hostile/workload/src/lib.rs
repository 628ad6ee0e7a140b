//! A workload for tests: a server and a command in one component. Most of what it does is what no workload should.

#[cfg(target_arch = "wasm32")]
mod command;
#[cfg(target_arch = "wasm32")]
mod modes;
#[cfg(target_arch = "wasm32")]
mod server;

#[cfg(target_arch = "wasm32")]
struct Workload;

#[cfg(target_arch = "wasm32")]
wasip2::http::proxy::export!(Workload);

#[cfg(target_arch = "wasm32")]
wasip2::cli::command::export!(Workload);
