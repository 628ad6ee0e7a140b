//! The listener for `GET /metrics`.

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener},
};

use periapt_telemetry::listen::serve_metrics;
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// A socket for metrics, which nobody reads yet.
#[derive(Debug)]
pub(crate) struct MetricsListener {
    /// The address that answers.
    pub(crate) address: SocketAddr,
    listener: TcpListener,
}

impl MetricsListener {
    /// Listens on an address.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Returns the work of answering, until `stop`.
    pub(crate) fn serve(self, stop: CancellationToken) -> io::Result<impl Future<Output = ()> + Send> {
        Ok(serve_metrics(tokio::net::TcpListener::from_std(self.listener)?, metrics::render, stop))
    }
}
