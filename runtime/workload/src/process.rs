//! The process from its order to its exit code.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, mpsc},
    thread::{available_parallelism, sleep},
    time::{Duration, Instant},
};

use periapt_helper::{
    DirectoryAccess, Fence, Resident, WorkloadDirectory, WorkloadKind, WorkloadOrder, give_back_what_is_freed,
};
use periapt_host_api::workloads::MAX_WORKLOAD_COMPONENT;
use periapt_sandbox::{
    CompileError, SandboxError,
    workload::{
        CommandEnd, CommandWorkload, CompiledWorkload, HttpWorkload, NoOutbound, Outbound,
        PreopenedDirectory, RequestBudgets, UnfitWorkload, WorkloadEngine, WorkloadInputs, WorkloadLog,
        WorkloadPool,
    },
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    calls::{OutboundTls, PodOutbound},
    listener::Listener,
    log,
    serve::serve,
};

/// The time in which a component must be compiled. A Python one takes some seconds.
const COMPILE_TIME: Duration = Duration::from_secs(120);

/// The time in which guests that still run, and then the log, must end.
const END_TIME: Duration = Duration::from_secs(1);

/// The threads that run guests.
const MAX_THREADS: usize = 4;

/// The threads that read files for guests. Their stacks count as the process's memory; further reads wait.
const MAX_FILE_THREADS: usize = 32;

/// The exit code of a command that aborts: as of a process that the signal ends.
const ABORTED: u8 = 134;

/// A workload that cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The order is not one of a pod.
    #[error("a workload is started by a pod, with an order: {0}")]
    Order(#[from] serde_json::Error),
    /// The component's file cannot be read.
    #[error("{}: {source}", path.display())]
    Component {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The component has too many bytes.
    #[error("{}: the component has more than {MAX_WORKLOAD_COMPONENT} bytes", .0.display())]
    TooLarge(PathBuf),
    /// The system refuses a part of the set-up.
    #[error("the process cannot be set up: {0}")]
    Setup(#[from] io::Error),
    /// The engine cannot be built.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(#[from] SandboxError),
    /// The component cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The component takes too long to compile.
    #[error("the component takes longer than {} s to compile", COMPILE_TIME.as_secs())]
    Slow,
    /// The component is not the workload that the charm declares.
    #[error("the component is not what the charm declares: {0}")]
    Unfit(#[from] UnfitWorkload),
}

/// Runs a workload in this process, which must have no other threads yet. `order` is the text of a [`WorkloadOrder`].
/// The exit code is the command's; a server that is told to end has 0, and a workload that cannot begin 1, with the
/// reason on standard error.
pub fn run_workload(order: &str) -> ExitCode {
    match run(order) {
        Ok(code) => code.into(),
        Err(error) => {
            // Without a reader on standard error the reason is of no use.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(order: &str) -> Result<u8, WorkloadError> {
    let order: WorkloadOrder = serde_json::from_str(order)?;
    order.limits.bind().map_err(io::Error::from)?;
    let file = File::open(&order.component).map_err(failed(&order.component))?;
    let calls = order.calls.map(|descriptor| (descriptor, OutboundTls::of_this_host()));
    let resident = Resident::open();
    for gap in Fence::Workload(&order.directories).raise() {
        // Without a reader on standard error there is nobody to tell.
        let _ = writeln!(io::stderr(), "this host fences the workload without a part: {gap}");
    }
    let component = read(&order.component, file)?;
    // What the compiler took is given back. The thread of this function starts behind the fence, like all later ones.
    give_back_what_is_freed(resident);
    let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(MAX_FILE_THREADS)
        .enable_all()
        .build()?;
    let (engine, compiled) = compile(&order, component)?;
    let (log, chunks) = WorkloadLog::new();
    let writer = log::start(chunks)?;
    let kind = order.kind;
    let budgets = RequestBudgets {
        cpu: order.limits.request_cpu,
        time: order.limits.request_time,
        request_bytes: order.limits.request_bytes,
        response_bytes: order.limits.response_bytes,
        ..RequestBudgets::default()
    };
    let outbound: Arc<dyn Outbound> = match calls {
        Some((descriptor, tls)) => {
            let _runtime = runtime.enter();
            Arc::new(PodOutbound::take(descriptor, tls)?)
        }
        None => Arc::new(NoOutbound),
    };
    let inputs = inputs(order, log, outbound);
    let code = match kind {
        WorkloadKind::Http => {
            let workload = HttpWorkload::new(&engine, &compiled, inputs, budgets)?;
            let socket = io::stdin().as_fd().try_clone_to_owned()?;
            runtime.block_on(async { serve_until_told(Listener::of(socket)?, workload).await })?;
            0
        }
        WorkloadKind::Command => {
            let workload = CommandWorkload::new(&engine, &compiled, inputs)?;
            match runtime.block_on(workload.run()) {
                CommandEnd::Exited(code) => exit_code(code),
                CommandEnd::Failed(_) => ABORTED,
            }
        }
    };
    runtime.shutdown_timeout(END_TIME);
    // The log ends with its last sender.
    match kind {
        // As with any program, its output is complete when its reader has it; a signal and the pod's end end the wait.
        WorkloadKind::Command => {
            writer.join().map_err(|_| WorkloadError::Setup(io::Error::other("the log failed")))?;
        }
        // A pod that reads no more holds no server up.
        WorkloadKind::Http => {
            let until = Instant::now() + END_TIME;
            while !writer.is_finished() && Instant::now() < until {
                sleep(Duration::from_millis(1));
            }
        }
    }
    Ok(code)
}

/// Returns the lowest byte of a code, as the kernel does; no other code becomes success.
fn exit_code(code: i32) -> u8 {
    match u8::try_from(code & 0xff) {
        Ok(0) if code != 0 => 1,
        Ok(code) => code,
        Err(_) => 1,
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> WorkloadError + '_ {
    |source| WorkloadError::Component { path: path.to_owned(), source }
}

fn read(path: &Path, file: File) -> Result<Vec<u8>, WorkloadError> {
    let mut component = Vec::new();
    file.take(MAX_WORKLOAD_COMPONENT + 1).read_to_end(&mut component).map_err(failed(path))?;
    match component.len() as u64 > MAX_WORKLOAD_COMPONENT {
        true => Err(WorkloadError::TooLarge(path.to_owned())),
        false => Ok(component),
    }
}

/// Compiles the component. A thread that takes too long ends with the process, which the error ends.
fn compile(
    order: &WorkloadOrder,
    component: Vec<u8>,
) -> Result<(WorkloadEngine, CompiledWorkload), WorkloadError> {
    let memory = order.limits.memory;
    let (instances, instance_memory) = match order.kind {
        WorkloadKind::Http => (order.limits.instances, order.limits.instance_memory.min(memory)),
        WorkloadKind::Command => (1, memory),
    };
    let cpu = order.limits.cpu;
    let pool = WorkloadPool { instances, memory, instance_memory, cpu, ..WorkloadPool::default() };
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("compile".to_owned()).spawn(move || {
        let made = WorkloadEngine::new(pool).map_err(WorkloadError::from).and_then(|engine| {
            let compiled = engine.compile(&component)?;
            Ok((engine, compiled))
        });
        let _ = sender.send(made);
    })?;
    match receiver.recv_timeout(COMPILE_TIME) {
        Ok(made) => made,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(WorkloadError::Slow),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(WorkloadError::Setup(io::Error::other("the compiler ended without a result")))
        }
    }
}

fn inputs(order: WorkloadOrder, log: WorkloadLog, outbound: Arc<dyn Outbound>) -> WorkloadInputs {
    let directory = |WorkloadDirectory { host, guest, access }| PreopenedDirectory {
        host,
        guest,
        is_read_only: access == DirectoryAccess::ReadOnly,
    };
    WorkloadInputs {
        arguments: order.arguments,
        environment: order.environment,
        directories: order.directories.into_iter().map(directory).collect(),
        log,
        outbound,
    }
}

async fn serve_until_told(listener: Listener, workload: HttpWorkload) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let cancel = CancellationToken::new();
    let told = cancel.clone();
    let serving = serve(listener, workload, cancel);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = serving.as_mut() => return Ok(()),
        _ = terminate.recv() => told.cancel(),
    }
    serving.await;
    Ok(())
}
