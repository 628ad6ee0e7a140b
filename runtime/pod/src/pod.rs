//! A pod from its begin to its end.

use std::{
    io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use periapt_pebble::{PodLimits, Supervisor};
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    connection::{serve_tcp, serve_unix},
    core::Core,
    driver,
    keeper::Keeper,
    options::{PodError, PodOptions},
};

/// The version of Pebble whose API the pod speaks, for clients that ask.
const VERSION: &str = "v1.32.1";

/// The time that services get to stop before the rest is killed.
const END_TIME: Duration = Duration::from_secs(30);

/// Runs a pod until `cancel`, or until a service ends it, and returns its exit code. No process of it is left then.
///
/// It reaps every child of this process: nothing else may start any.
///
/// # Errors
/// [`PodError`], before anything runs.
pub async fn run(
    options: PodOptions,
    cancel: CancellationToken,
    ready: impl FnOnce(),
) -> Result<i32, PodError> {
    let PodOptions { socket, keeper, http, driver: kind, accepts_no_isolation } = options;
    if !kind.isolates() && !accepts_no_isolation {
        return Err(PodError::NoIsolation(kind.as_str()));
    }
    let keeper = keeper.map(Keeper::new).transpose().map_err(PodError::Setup)?;
    let listener = match &socket {
        None => None,
        Some(socket) => Some(listen(socket).await?),
    };
    let bound = socket.map(Bound);
    let open = match http {
        None => None,
        Some(address) => {
            let listened = TcpListener::bind(address).await;
            Some(listened.map_err(|source| PodError::Listen { of: address.to_string(), source })?)
        }
    };
    let mut driver = kind.build();
    driver.create().map_err(PodError::Setup)?;
    let root = driver.root();
    let (orders, reports, thread) = driver::start(driver).map_err(PodError::Setup)?;
    let settings = settings()?;
    let boot_id = settings.boot_id.clone();
    let (core, handle) = Core::new(Supervisor::new(settings), orders.clone(), reports);
    let state = Arc::new(api::State::new(handle, root));
    let mut servers = tokio::task::JoinSet::new();
    if let Some(listener) = listener {
        servers.spawn(serve_unix(listener, api::router(state.clone())));
    }
    if let Some(open) = open {
        servers.spawn(serve_tcp(open, api::open_router(state.clone())));
    }
    let cancel = cancel.child_token();
    if let Some(keeper) = keeper {
        let (router, gone) = (api::router(state), cancel.clone());
        servers.spawn(async move {
            keeper.serve(&router, boot_id).await;
            gone.cancel();
        });
    }
    ready();
    let code = {
        let late = async {
            cancel.cancelled().await;
            tokio::time::sleep(END_TIME).await;
        };
        tokio::select! {
            code = core.run(cancel.clone()) => code.map_err(PodError::Setup),
            () = late => Ok(0),
        }
    };
    servers.shutdown().await;
    drop(bound);
    let _ = orders.send(driver::Order::End);
    let _ = timeout(END_TIME, tokio::task::spawn_blocking(move || thread.join())).await;
    code
}

fn settings() -> Result<periapt_pebble::PodSettings, PodError> {
    let refused = |error: getrandom::Error| PodError::Setup(io::Error::other(error.to_string()));
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(refused)?;
    let hex: String = random.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    // In the form of the kernel's own boot id.
    let boot_id = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
    let seed = random.iter().skip(16).fold(0, |seed: u64, byte| (seed << 8) | u64::from(*byte));
    Ok(periapt_pebble::PodSettings {
        version: VERSION.to_owned(),
        boot_id,
        seed,
        limits: PodLimits::default(),
    })
}

/// The socket's file, which goes with the pod.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens on a path. The socket of a pod that was killed is replaced, nothing else is.
async fn listen(path: &Path) -> Result<UnixListener, PodError> {
    let refused = |source| PodError::Listen { of: path.display().to_string(), source };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            if !is_socket {
                return Err(refused(error));
            }
            if UnixStream::connect(path).await.is_ok() {
                return Err(PodError::Taken(path.to_owned()));
            }
            std::fs::remove_file(path).map_err(refused)?;
            UnixListener::bind(path).map_err(refused)
        }
        bound => bound.map_err(refused),
    }
}
