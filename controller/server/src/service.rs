//! The life of a controller, from its options to its end.

mod bind;
mod error;
mod moved;
mod parts;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc};

use periapt_blobs::BlobError;
use periapt_host_api::{ErrorCode, LEVEL, Refusal, Revision, StoreId, Timestamp};
use periapt_log::{Announcement, Term};
use periapt_model::Root;
use periapt_program::Programs;
use periapt_transport::{CertificateError, ServerCertificate};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use self::error::{BuildError, RunError};
use self::{
    bind::{Bound, bind},
    parts::{guard_secrets, replacement, start_parts},
};
use crate::{
    api,
    backup::BackupSource,
    bounds::{Bounds, StreamLimits, Uploads},
    check::Checks,
    clock::Clock,
    enrolled::Enrolled,
    listen::{CertificateSource, Given, Listen, renew},
    login::Logins,
    oidc::IssuerLogins,
    options::Options,
    presence::Presence,
    pruning::SequenceGrowth,
    published::{Origin, Publisher},
    refusals::Refusals,
    replication::{
        self, DurablePosition, Freshness, Joins, LinkCertificate, LinkIdentity, Links, LogBounds, Members,
        OwnMember, PassedOn, RecentEntries, Replica, ReplicationOptions, Reporter, Role, SharedKeys,
        Snapshots, SteadyClock,
    },
    seal::{SealKey, SecretSealer},
    show::StatusSource,
    state::{
        BlobCollector, BlobKind, Charms, Contents, ControllerParts, ControllerState, Copies, Durable, Kept,
        Resources, Sizes, Streams, Submission,
    },
    store_slot::StoreSlot,
    supervision::WorkerHealth,
    watch::Watches,
    workload_orders::WorkloadOrders,
    writer::{self, Commands, Journal, LoadedStore, Queue, Writer},
};

/// A controller that is built: its store is open, and its address is bound.
pub struct Service {
    listeners: Vec<api::Listener>,
    certificate: Option<(CertificateSource, ServerCertificate, Timestamp)>,
    given: Option<Given>,
    writer: Writing,
    role: watch::Sender<Role>,
    state: ControllerState,
    growth: SequenceGrowth,
    name: String,
    handle: Handle,
    serving: watch::Sender<bool>,
    timeouts: api::ConnectionTimeouts,
    programs: Option<Programs>,
}

/// A handle to a running controller. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Handle {
    address: SocketAddr,
    url: String,
    stop: CancellationToken,
    serving: watch::Receiver<bool>,
}

impl Handle {
    /// Returns the address that the controller listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the controller's URL.
    pub fn url(&self) -> String {
        self.url.clone()
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
    /// [`BuildError`]; [`StoreError::InUse`](periapt_store::StoreError::InUse) if another controller has the store.
    pub async fn build(mut self) -> Result<Service, BuildError> {
        guard_secrets();
        let steady = Arc::new(SteadyClock::new(Arc::clone(&self.clock)));
        if self.replication.is_some() {
            self.clock = Arc::clone(&steady) as _;
        }
        let fresh = match &self.replication {
            Some(replication) => replication.log.id(),
            None => StoreId(uuid::Builder::from_random_bytes(self.random.seed()).into_uuid()),
        };
        let LoadedStore { store, published: first, note } =
            writer::load(&*self.store, &*self.clock, fresh).await?;
        let head = match &self.replication {
            Some(replication)
                if first.store != fresh || (note.is_none() && first.revision() > Revision(0)) =>
            {
                let place = replication.place.url.clone();
                return Err(BuildError::OtherLog { store: first.store, log: fresh, place });
            }
            None if note.is_some() => return Err(BuildError::WithoutLog),
            _ => replication::head_of(note.as_deref(), fresh)?,
        };
        let known = self.replication.as_ref().map_or(LEVEL, |replication| replication.level);
        if first.root.level() > known {
            return Err(BuildError::TooNew { found: first.root.level(), known });
        }
        keep_key(&self.seal, &first.root)?;
        // The open store proves that no other controller uses this directory.
        self.blobs.sweep().await?;
        moved::settle(&self.blobs, self.directory.as_deref(), first.store, &first.root).await?;
        let blobs_place = self.blobs.place();
        let backups = BackupSource::new(self.directory.clone()).map_err(|source| {
            let directory = self.directory.unwrap_or_default().display().to_string();
            BlobError::Directory { directory, source }
        })?;
        let issuer_logins = IssuerLogins::new(self.oidc, Arc::clone(&self.clock), Arc::clone(&self.random))
            .map_err(BuildError::Issuer)?;
        let Bound { address, url, listeners, certificate, given, issuer } =
            bind(&self.listen, self.clock.now()).await?;
        let origin = if self.replication.is_some() { Origin::Log } else { Origin::Writer };
        let (queue, publisher) = (Arc::new(Queue::default()), Publisher::new(first, origin));
        let role = watch::Sender::new(match &self.replication {
            Some(_) => Role::Following(None),
            None => Role::Leading(Term(0)),
        });
        let serving = watch::Sender::new(false);
        let handle = Handle { address, url, stop: CancellationToken::new(), serving: serving.subscribe() };
        let (store, growth) = (StoreSlot::new(store), SequenceGrowth::default());
        let durable = Durable { state: publisher.subscribe(), store: store.clone() };
        let sealer = SecretSealer { key: self.seal.clone(), random: Arc::clone(&self.random) };
        let presence = Presence::default();
        let own = self.replication.as_ref().map(|replication| OwnMember {
            name: replication.member.clone(),
            url: handle.url(),
            level: known,
        });
        let bounds =
            self.replication.as_ref().map_or_else(LogBounds::default, |replication| replication.bounds);
        let recent = RecentEntries::new(bounds);
        let freshness = match &self.replication {
            Some(_) => Freshness::of_several(),
            None => Freshness::of_one(),
        };
        let workers = WorkerHealth::default();
        let members = Members::new(
            own,
            (freshness.clone(), role.subscribe()),
            presence.clone(),
            durable.state.clone(),
            self.programs.clone(),
            recent.clone(),
            workers.clone(),
        );
        let links = match &self.replication {
            None => None,
            Some(replication) => {
                Some(Links::new(link_identity(&self.listen, &replication.member, &self.clock)?))
            }
        };
        let copies = match (&self.replication, &links) {
            (Some(replication), Some(links)) => {
                let log = Arc::clone(&replication.log);
                let kept = if blobs_place.is_some() { Kept::InSharedStore } else { Kept::ByEach };
                Copies::among(kept, log, links.clone(), members.clone(), durable.state.clone())
            }
            _ => Copies::default(),
        };
        let contents = |kind, blobs, bounds| Contents {
            kind,
            blobs,
            copies: copies.clone(),
            collector: BlobCollector::default(),
            uploads: Uploads::new(bounds),
            progress_within: self.upload_progress_within,
        };
        let [charms, resources] = BlobKind::ALL.map(|kind| kind.among(&self.blobs));
        let resources = contents(BlobKind::Resource, resources, Bounds::RESOURCES);
        let charms = contents(BlobKind::Charm, charms, Bounds::CHARMS);
        let checks = Arc::new(Checks::new(self.check_helper));
        let charms = Charms { contents: charms, checks: Arc::clone(&checks) };
        let resources = Resources { contents: resources, checks };
        let joins = match (&self.replication, &self.listen) {
            (Some(replication), Listen::Tls(tls)) => Joins::new(Some(SharedKeys {
                authority: Arc::clone(&tls.authority),
                seal: self.seal.clone(),
                log: replication.place.clone(),
                blobs: replication.blobs.clone(),
            })),
            _ => Joins::default(),
        };
        let state = ControllerState::new(ControllerParts {
            sizes: Sizes::new(durable.clone(), charms.clone(), resources.clone()),
            submission: Submission::new(Commands::new(Arc::clone(&queue)), sealer.clone(), durable.clone()),
            durable,
            charms,
            resources,
            streams: Streams {
                watches: Watches::default(),
                limits: StreamLimits::default(),
                presence,
                stop: handle.stop.child_token(),
            },
            statuses: StatusSource {
                clock: Arc::clone(&self.clock),
                engine: self.engine.into(),
                addresses: [handle.url()].into(),
                blobs: blobs_place.clone(),
                workers,
                members: members.clone(),
            },
            sealer,
            clock: Arc::clone(&self.clock),
            logins: Logins::new(Arc::clone(&self.random)),
            issuer_logins,
            refusals: Refusals::default(),
            role: role.subscribe(),
            members,
            freshness,
            joins,
            snapshots: Snapshots::default(),
            log_position: DurablePosition::default(),
            backups,
            issuer,
            workload_orders: WorkloadOrders::new(Arc::clone(&self.random)),
        });
        let (opener, clock, random) = (self.store, Arc::clone(&self.clock), self.random);
        let (growth_of, refusals) = (growth.clone(), state.refusals.clone());
        let journal = Journal::Store;
        let writer =
            Writer { queue, store, opener, publisher, journal, growth: growth_of, clock, random, refusals };
        let writer = match self.replication.zip(links) {
            None => Writing::Alone(Box::new(writer)),
            Some((
                ReplicationOptions { log, member, level, observer, place: _, blobs: _, bounds: _ },
                links,
            )) => {
                let authority = match &self.listen {
                    Listen::InProcess(_) | Listen::Memory(_) => "",
                    Listen::Tls(tls) => tls.authority.certificate(),
                };
                let keys = Some(self.seal.fingerprint(authority));
                let blobs = Some(blobs_place.as_deref().unwrap_or_default().to_owned());
                let announcement = Announcement { member, url: handle.url(), level, keys, blobs };
                let passed_on = PassedOn::default();
                let caught_up = watch::Sender::new(false);
                let reporter = Reporter {
                    freshness: state.freshness.clone(),
                    links: links.clone(),
                    role: role.subscribe(),
                    presence: state.streams.presence.clone(),
                    state: state.durable.state.clone(),
                    durable: state.log_position.clone(),
                    members: state.members.clone(),
                    member: announcement.member.clone(),
                    url: announcement.url.clone(),
                };
                let (name, role) = (self.name.clone(), role.clone());
                Writing::Replica(Box::new(Replica {
                    writer,
                    log,
                    announcement,
                    links,
                    role,
                    head,
                    name,
                    reporter,
                    clock: steady,
                    is_clock_checked: false,
                    members: state.members.clone(),
                    recent,
                    durable: state.log_position.clone(),
                    passed_on,
                    caught_up,
                    observer,
                }))
            }
        };
        let timeouts = api::ConnectionTimeouts { drain: self.drain_within, stall: self.stall_within };
        Ok(Service {
            listeners,
            certificate,
            given,
            writer,
            role,
            state,
            growth,
            name: self.name,
            handle,
            serving,
            timeouts,
            programs: self.programs,
        })
    }
}

/// Returns the identity that a controller proves to others.
fn link_identity(
    listen: &Listen,
    member: &str,
    clock: &Arc<dyn Clock>,
) -> Result<LinkIdentity, CertificateError> {
    match listen {
        Listen::InProcess(_) => Ok(LinkIdentity::InProcess(None)),
        Listen::Memory(memory) => Ok(LinkIdentity::InProcess(Some(memory.caller.clone()))),
        Listen::Tls(tls) => {
            let (authority, clock) = (Arc::clone(&tls.authority), Arc::clone(clock));
            Ok(LinkIdentity::Certificate(LinkCertificate::issue(authority, member.to_owned(), clock)?))
        }
    }
}

/// Writes a new key of secrets into its file, unless the store has secrets already: they were sealed under another key.
fn keep_key(seal: &SealKey, root: &Root) -> Result<(), BuildError> {
    let Some(path) = seal.new_file() else { return Ok(()) };
    if root.models_and_remains().any(|(_, state)| state.secrets().next().is_some()) {
        return Err(BuildError::SealKey(path.to_owned()));
    }
    let unusable = |source| BlobError::Directory { directory: path.display().to_string(), source };
    Ok(seal.keep().map_err(unusable)?)
}

impl Service {
    /// Returns a handle, which works before the controller runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `stop` is cancelled, [`Handle::shutdown`] is called, or another program is chosen. Then streams end, requests in progress are
    /// finished, and the store is closed.
    ///
    /// # Errors
    /// [`RunError`] if the controller cannot go on.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let Self {
            listeners,
            certificate,
            given,
            writer,
            role,
            state,
            growth,
            name,
            handle,
            serving,
            timeouts,
            programs,
        } = self;
        let stopping = handle.stop.clone();
        let mut parts = JoinSet::new();
        // Workers and connections end before the writer, which still answers their commands.
        let writer_stop = CancellationToken::new();
        let (initialized, log, trimming) = match &writer {
            Writing::Alone(_) => (Initialized::Here(name), None, None),
            Writing::Replica(replica) => (
                Initialized::ByLeader(replica.caught_up.subscribe()),
                Some(Arc::clone(&replica.log)),
                Some(replica.trimming()),
            ),
        };
        let (until, stops) = (writer_stop.clone(), stopping.clone());
        let writing = tokio::spawn(async move {
            match writer {
                Writing::Alone(writer) => {
                    writer.run(until).await;
                    Ok(())
                }
                // One that cannot be fed from its log ends the controller.
                Writing::Replica(replica) => replica.run(until).await.inspect_err(|_| stops.cancel()),
            }
        });
        let initialized = tokio::select! {
            initialized = initialized.wait(&state) => initialized,
            () = stop.cancelled() => Ok(()),
            () = stopping.cancelled() => Ok(()),
        };
        let result = match initialized {
            Err(refusal) => Err(RunError::Initialize(refusal)),
            // It ends before it has served anything.
            Ok(()) if stopping.is_cancelled() => Ok(()),
            Ok(()) => {
                // Before the level of what is stored may rise: from then on a program on trial is taken.
                if let Some(programs) = &programs {
                    programs.came_up();
                }
                start_parts(&mut parts, &state, growth, trimming, &stopping);
                if let Some(programs) = programs {
                    parts.spawn(replacement(programs, &state, stopping.clone()).run());
                }
                if let Some(log) = log {
                    let state_of = state.durable.state.clone();
                    parts.spawn(state.freshness.clone().keep(log, state_of, stopping.clone()));
                }
                let guards = api::Guards::default();
                let watching = guards.clone().run(
                    state.durable.state.clone(),
                    Arc::clone(&state.clock),
                    stopping.clone(),
                );
                parts.spawn(watching);
                let router = api::router(state.clone(), guards);
                let (enrolled, follow) = Enrolled::of(state.durable.state.clone());
                parts.spawn(follow.run(stopping.clone()));
                parts.spawn(api::serve(listeners, router, enrolled, stopping.clone(), timeouts));
                if let Some((source, shown, issued)) = certificate {
                    parts.spawn(renew(source, shown, issued, Arc::clone(&state.clock), stopping.clone()));
                }
                if let Some(given) = given {
                    parts.spawn(given.follow(Arc::clone(&state.clock), stopping.clone()));
                }
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
        // A part may wait for the answer to a command while the log does not answer. Then the writer ends first, and says
        // that the outcome is not known.
        let ended = async { while parts.join_next().await.is_some() {} };
        if tokio::time::timeout(2 * timeouts.drain, ended).await.is_err() {
            tracing::warn!("stopping without answers of the log");
        }
        writer_stop.cancel();
        while parts.join_next().await.is_some() {}
        let written = writing.await;
        state.durable.store.close();
        drop(role);
        match written {
            Ok(Ok(())) => result,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(RunError::PartEnded),
        }
    }
}

/// The part that carries out commands.
enum Writing {
    /// The writer of a controller that is alone.
    Alone(Box<Writer>),
    /// A controller among several.
    Replica(Box<Replica>),
}

/// The initialization of a new controller, or of a new set of controllers.
enum Initialized {
    /// This controller gives itself its name and id. Changes nothing at later starts.
    Here(String),
    /// The controller that leads does it. This one first applies what the log has.
    ByLeader(watch::Receiver<bool>),
}

impl Initialized {
    /// Waits until the controller has its name and id.
    async fn wait(self, state: &ControllerState) -> Result<(), Refusal> {
        match self {
            Self::Here(name) => replication::initialize(&state.submission.commands, name).await,
            Self::ByLeader(mut caught_up) => {
                let ends = || Refusal::new(ErrorCode::TryAgain, "the controller is shutting down");
                caught_up.wait_for(|caught_up| *caught_up).await.map_err(|_| ends())?;
                let mut state = state.durable.state.clone();
                while state.seen().root.controller().is_none() {
                    if !state.changed().await {
                        return Err(ends());
                    }
                }
                Ok(())
            }
        }
    }
}
