//! Listeners and connections.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use periapt_helper::Stalling;
use periapt_pebble::PodCaller;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
    time::sleep,
};

/// The connections at a time: three websockets for each command of `exec`, and as many again for all else.
pub(crate) const MAX_CONNECTIONS: usize = 400;

/// The time in which a client sends the head of a request, and for which an idle connection stays.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of a head, and of what is read ahead.
const MAX_BUFFER: usize = 64 << 10;

/// The pause after a connection that could not be accepted, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The callers of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Users that the kernel names.
    Named,
    /// The owner of the socket, who has this number on the host. The kernel has no names for users of the host in a
    /// container, and lets nobody else open the socket.
    Owner(u32),
}

/// Serves the API on a socket.
pub(crate) async fn serve_unix(listener: UnixListener, router: Router, callers: Callers) {
    let own = rustix::process::geteuid().as_raw();
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let caller = match callers {
                    Callers::Owner(user) => PodCaller { user_id: Some(user), is_owner: true },
                    Callers::Named => {
                        let user_id = stream.peer_cred().ok().map(|peer| peer.uid());
                        let is_owner = user_id.is_some_and(|user| user == 0 || user == own);
                        PodCaller { user_id, is_owner }
                    }
                };
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router, caller).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves what is open to all.
pub(crate) async fn serve_tcp(listener: TcpListener, router: Router) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router, PodCaller { user_id: None, is_owner: false }).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    router: Router,
    caller: PodCaller,
) {
    let stream = Stalling::new(stream);
    let router = router.layer(Extension(caller)).layer(Extension(stream.may_pause()));
    let (service, stream) = (TowerToHyperService::new(router), TokioIo::new(stream));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(stream, service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!("a connection ended: {error}");
    }
}
