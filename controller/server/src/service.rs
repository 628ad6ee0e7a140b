//! The life of a controller, from its options to its end.

use std::{future::Future, net::SocketAddr, sync::Arc};

use periapt_blobs::BlobError;
use periapt_host_api::{Refusal, command::Caller};
use periapt_model::{Input, WorkerCommand};
use periapt_store::StoreError;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    api,
    bounds::{Bounds, StreamLimits, Uploads},
    check::Checks,
    commands::Commands,
    login::Logins,
    options::Options,
    presence::Presence,
    published::{Publisher, Subscription},
    seal::SecretSealer,
    show::StatusSource,
    state::{BlobCollector, Charms, Contents, ControllerState, Durable, Intake, Resources, Sizes, Streams},
    store_slot::StoreSlot,
    upkeep::{Growth, Upkeep},
    watch::Watches,
    workers::Workers,
    writer::{self, Lane, Queue, Writer},
};

/// An error that prevents the start of a controller.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory of blobs cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
}

/// An error that ends a running controller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The first start could not be stored.
    #[error("the controller could not be initialised: {0}")]
    Initialize(Refusal),
    /// A part of the controller ended: a defect.
    #[error("a part of the controller ended unexpectedly")]
    PartEnded,
}

/// A controller that is built: its store is open, and its address is bound.
pub struct Service {
    listener: TcpListener,
    writer: Writer,
    state: ControllerState,
    growth: Growth,
    name: String,
    handle: Handle,
    serving: watch::Sender<bool>,
    timeouts: api::ConnectionTimeouts,
}

/// A handle to a running controller. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Handle {
    address: SocketAddr,
    stop: CancellationToken,
    serving: watch::Receiver<bool>,
}

impl Handle {
    /// Returns the address that the controller listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the controller's URL for clients on this machine.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the controller answers requests. Returns false if it ended before.
    pub async fn serving(&mut self) -> bool {
        self.serving.wait_for(|serving| *serving).await.is_ok()
    }

    /// Stops the controller; [`Service::run`] then ends.
    pub fn shutdown(&self) {
        self.stop.cancel();
    }
}

impl Options {
    /// Opens the store, reads it, and binds the address. Serves nothing yet.
    ///
    /// # Errors
    /// [`BuildError`]; [`StoreError::InUse`] if another controller has the store.
    pub async fn build(self) -> Result<Service, BuildError> {
        guard_helpers();
        let (store, first) = writer::load(&*self.store, &*self.clock).await?;
        // The open store proves that no other controller uses this directory.
        self.blobs.sweep().await?;
        let listen = |source| BuildError::Listen { address: self.listen, source };
        let listener = TcpListener::bind(self.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (queue, publisher) = (Arc::new(Queue::default()), Publisher::new(first));
        let serving = watch::Sender::new(false);
        let handle = Handle { address, stop: CancellationToken::new(), serving: serving.subscribe() };
        let (store, growth) = (StoreSlot::new(store), Growth::default());
        let durable = Durable { state: publisher.subscribe(), store: store.clone() };
        let sealer = SecretSealer { key: self.seal, chance: Arc::clone(&self.chance) };
        let contents = |blobs, bounds| Contents {
            blobs,
            collector: BlobCollector::default(),
            uploads: Uploads::new(bounds),
            progress_within: self.upload_progress_within,
        };
        let resources = contents(self.blobs.namespace("resources"), Bounds::RESOURCES);
        let charms = contents(self.blobs, Bounds::CHARMS);
        let charms = Charms { contents: charms, checks: Arc::new(Checks::new(self.check_helper)) };
        let resources = Resources { contents: resources };
        let state = ControllerState {
            sizes: Sizes::new(durable.clone(), charms.clone(), resources.clone()),
            intake: Intake::new(Commands::new(Arc::clone(&queue)), sealer.clone(), durable.clone()),
            durable,
            charms,
            resources,
            streams: Streams {
                watches: Watches::default(),
                limits: StreamLimits::default(),
                presence: Presence::default(),
                stop: handle.stop.child_token(),
            },
            statuses: StatusSource { clock: Arc::clone(&self.clock), engine: self.engine.into() },
            sealer,
            clock: Arc::clone(&self.clock),
            logins: Logins::new(Arc::clone(&self.chance)),
        };
        let (opener, clock, chance) = (self.store, self.clock, self.chance);
        let writer = Writer { queue, store, opener, publisher, growth: growth.clone(), clock, chance };
        let timeouts = api::ConnectionTimeouts { drain: self.drain_within, stall: self.stall_within };
        Ok(Service { listener, writer, state, growth, name: self.name, handle, serving, timeouts })
    }
}

impl Service {
    /// Returns a handle, which works before the controller runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `stop` is cancelled or [`Handle::shutdown`] is called. Then streams end, requests in progress are
    /// finished, and the store is closed.
    ///
    /// # Errors
    /// [`RunError`] if the controller cannot go on.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let Self { listener, writer, state, growth, name, handle, serving, timeouts } = self;
        let stopping = handle.stop.clone();
        let mut parts = JoinSet::new();
        // Workers and connections end before the writer, which still answers their commands.
        let writer_stop = CancellationToken::new();
        let writing = tokio::spawn(writer.run(writer_stop.clone()));
        let result = match initialize(&state.intake.commands, name).await {
            Err(refusal) => Err(RunError::Initialize(refusal)),
            Ok(()) => {
                start_parts(&mut parts, &state, growth, &stopping);
                let guards = api::Guards::default();
                let watching = guards.clone().run(
                    state.durable.state.clone(),
                    Arc::clone(&state.clock),
                    stopping.clone(),
                );
                parts.spawn(watching);
                let router = api::router(state.clone(), guards);
                parts.spawn(api::serve(listener, router, stopping.clone(), timeouts));
                serving.send_replace(true);
                tokio::select! {
                    () = stop.cancelled() => Ok(()),
                    () = stopping.cancelled() => Ok(()),
                    // Parts end only on request.
                    _ = parts.join_next() => match stopping.is_cancelled() {
                        true => Ok(()),
                        false => Err(RunError::PartEnded),
                    },
                }
            }
        };
        stopping.cancel();
        while parts.join_next().await.is_some() {}
        writer_stop.cancel();
        let written = writing.await;
        state.durable.store.close();
        match written {
            Ok(()) => result,
            Err(_) => Err(RunError::PartEnded),
        }
    }
}

/// Keeps open files of this process from helpers, and logs the parts of helpers' isolation that this host lacks.
fn guard_helpers() {
    if let Err(error) = periapt_helper::keep_descriptors() {
        tracing::warn!(%error, "inherited descriptors pass on to helpers");
    }
    match periapt_helper::gaps() {
        Ok(gaps) => {
            for gap in gaps {
                let (part, reason) = (gap.part, gap.reason);
                tracing::warn!(part, reason, "charms are checked without a part of the system's sandbox");
            }
        }
        Err(error) => {
            tracing::warn!(%error, "cannot tell which parts of the system's sandbox this host offers")
        }
    }
}

fn start_parts(parts: &mut JoinSet<()>, state: &ControllerState, growth: Growth, stop: &CancellationToken) {
    let published = || -> Subscription { state.durable.state.clone() };
    let mut start = |part: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        parts.spawn(part);
    };
    let (commands, streams) = (state.intake.commands.clone(), state.streams.clone());
    start(Box::pin(streams.presence.run(commands.clone(), published(), stop.clone())));
    start(Box::pin(streams.watches.run(published(), stop.clone())));
    let workers = Workers { commands, state: published(), clock: Arc::clone(&state.clock) };
    start(Box::pin(workers.run(stop.clone())));
    start(Box::pin(Upkeep::new(state.clone(), growth).run(stop.clone())));
}

/// Gives a new controller its name and id. Changes nothing at later starts.
async fn initialize(commands: &Commands, name: String) -> Result<(), Refusal> {
    let input = Input::Worker(WorkerCommand::Initialize { name });
    commands.submit_one(Lane::Controller, &Caller::Worker, input, 0).await.map(|_| ())
}
