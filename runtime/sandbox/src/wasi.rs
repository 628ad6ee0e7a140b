//! Base WASI 0.2: linked for every charm, and without access (`docs/design/sandbox.md`).

use std::sync::Arc;

use wasmtime::component::Linker;
use wasmtime_wasi::{
    WasiCtx, WasiView as _,
    cli::{WasiCli, WasiCliView as _},
    p2::bindings::{cli, random, sockets},
    random::WasiRandom,
    sockets::{WasiSockets, WasiSocketsView as _},
};

use crate::{
    Seed, clock, files, limits,
    meter::Meter,
    output::Output,
    random::{Metered, Stream},
    state::HookState,
};

/// Links the interfaces that `periapt_host_api::imports` calls base.
pub(crate) fn link(linker: &mut Linker<HookState>) -> wasmtime::Result<()> {
    // Io, clocks, random and the standard streams. The hook's own clocks then replace the clocks.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    linker.allow_shadowing(true);
    clock::link(linker)?;
    linker.allow_shadowing(false);
    files::link(linker)?;

    random::insecure::add_to_linker::<_, WasiRandom>(linker, |state| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, |state| state.ctx().ctx.random())?;

    cli::environment::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, HookState::cli)?;

    // For guests that import sockets without using them, such as every Python charm.
    let options = sockets::network::LinkOptions::default();
    sockets::network::add_to_linker::<_, WasiSockets>(linker, &options, HookState::sockets)?;
    sockets::instance_network::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)?;
    sockets::tcp::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)?;
    sockets::udp::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)?;
    sockets::udp_create_socket::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)?;
    sockets::ip_name_lookup::add_to_linker::<_, WasiSockets>(linker, HookState::sockets)
}

/// Creates a hook's WASI context: its variables, streams and random numbers, without arguments, input or
/// sockets.
pub(crate) fn context(
    environment: &[(String, String)],
    seed: Seed,
    meter: &Arc<Meter>,
    stdout: Output,
    stderr: Output,
) -> WasiCtx {
    let source = |stream| Metered { source: seed.stream(stream), meter: Arc::clone(meter) };
    WasiCtx::builder()
        .envs(environment)
        .initial_cwd("/charm")
        .stdout(stdout)
        .stderr(stderr)
        .secure_random(source(Stream::Secure))
        .insecure_random(source(Stream::Insecure))
        .insecure_random_seed(seed.insecure_seed())
        .max_random_size(limits::MAX_RANDOM_BYTES)
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .build()
}
