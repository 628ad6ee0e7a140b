//! The thread of a driver. Orders about a process are carried out in their order.

use std::thread::{Builder, JoinHandle};

use periapt_pebble::{ProcessId, Signal, Spawn};
use tokio::sync::{mpsc, oneshot};

use super::{Driver, Streams};

/// An order to the driver.
#[derive(Debug)]
pub(crate) enum Order {
    /// Starts a process.
    Spawn(ProcessId, Box<Spawn>, Streams),
    /// Sends a signal.
    Signal(ProcessId, Signal),
    /// Sends a signal for a client, who sends the next order when this place is dropped.
    SignalFor(ProcessId, Signal, oneshot::Sender<()>),
    /// Reaps: a child has ended.
    Reap,
    /// Ends all processes, and the thread.
    End,
}

/// News from the driver.
#[derive(Debug)]
pub(crate) enum Report {
    /// The process runs.
    Spawned(ProcessId),
    /// The process could not be started.
    Failed(ProcessId, String),
    /// The process has ended with this code.
    Exited(ProcessId, i32),
    /// No process can run any more, for this reason.
    Lost(String),
}

/// The orders' sender.
pub(crate) type Orders = mpsc::UnboundedSender<Order>;

/// Starts the thread of a driver. Neither queue grows without bound: the core has at most some hundreds of processes
/// at a time, a few orders for each, and each order and each process makes one report.
pub(crate) fn start(
    mut driver: Box<dyn Driver>,
) -> std::io::Result<(Orders, mpsc::UnboundedReceiver<Report>, JoinHandle<()>)> {
    let (orders, mut inbox) = mpsc::unbounded_channel();
    let (reports, outbox) = mpsc::unbounded_channel();
    let waker = orders.clone();
    driver.wake_by(Box::new(move || {
        let _ = waker.send(Order::Reap);
    }));
    let thread = Builder::new().name("driver".to_owned()).spawn(move || {
        while let Some(order) = inbox.blocking_recv() {
            match order {
                Order::Spawn(process, spawn, streams) => {
                    let report = match driver.spawn(process, &spawn, streams) {
                        Ok(()) => Report::Spawned(process),
                        Err(message) => Report::Failed(process, message),
                    };
                    let _ = reports.send(report);
                }
                Order::Signal(process, signal) => driver.signal(process, signal),
                Order::SignalFor(process, signal, _done) => driver.signal(process, signal),
                Order::Reap => {}
                Order::End => break,
            }
            for (process, code) in driver.exits() {
                let _ = reports.send(Report::Exited(process, code));
            }
            if let Some(reason) = driver.lost() {
                let _ = reports.send(Report::Lost(reason));
                break;
            }
        }
        driver.kill();
    })?;
    Ok((orders, outbox, thread))
}
