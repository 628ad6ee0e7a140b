//! A pod with the driver `plain`, as `periapt agent pod` runs it: `pod DIRECTORY [HTTP-ADDRESS]`.

use std::{path::PathBuf, process::ExitCode};

use periapt_pod::{DriverKind, PodOptions, run};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let socket = PathBuf::from(arguments.next().ok_or("a directory")?).join(".pebble.socket");
    let http = arguments.next().map(|address| address.parse()).transpose()?;
    let (socket, driver) = (Some(socket), DriverKind::Plain);
    let options =
        PodOptions { socket, keeper: None, http, driver, accepts_no_isolation: true, certificates: None };
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        term.recv().await;
        stop.cancel();
        Ok::<_, std::io::Error>(())
    });
    let code = run(options, cancel, || tracing::info!("ready")).await?;
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
