//! The life of a controller among several: it follows until it leads, and leads until it is deposed.

mod beginning;
mod error;
mod history;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use periapt_client::Backoff;
use periapt_host_api::{ErrorCode, Refusal, StoreId, command::Caller};
use periapt_log::{Announcement, Content, EntryError, Leadership, Log, LogError, LogHead};
use periapt_model::{Input, WorkerCommand};
use periapt_store::StoreError;
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use self::error::ReplicaError;
use super::{
    AnswerObserver, DurablePosition, KnownPresence, Links, Members, RecentEntries, Reporter, Role,
    SnapshotFailure,
    apply::{apply, check_blobs, check_keys},
    clocks::SteadyClock,
    forward::{answer_all, known_to_all},
    passed_on::{PassedOn, next_group},
    snapshot,
    trimming::Trimming,
};
use crate::{
    metrics::metrics,
    published::{Published, Subscription, Weight},
    service::RunError,
    writer::{self, Commands, Journal, LogJournal, QueueKey, WriteError, Writer},
};

/// The bytes of entries that a controller reads at a time while it catches up.
const READ_BYTES: usize = 4 << 20;

/// The longest wait for a controller that leads, whose state is taken.
const LEADER_WITHIN: Duration = Duration::from_secs(5);

/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// The pause before a history is compared again that the log did not tell.
const COMPARE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A controller among several.
pub(crate) struct Replica {
    pub(crate) writer: Writer,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) announcement: Announcement,
    pub(crate) links: Links,
    pub(crate) role: watch::Sender<Role>,
    /// The end of the log that the store has applied.
    pub(crate) head: LogHead,
    /// The name that the first leader gives to a new set of controllers.
    pub(crate) name: String,
    /// Tells whether the controller has applied once what the log had: before, it serves nothing.
    pub(crate) caught_up: watch::Sender<bool>,
    /// The reports of the agents that are connected to this controller.
    pub(crate) reporter: Reporter,
    /// The writer's clock.
    pub(crate) clock: Arc<SteadyClock>,
    /// True once the clock was compared with that of a controller that leads.
    pub(crate) is_clock_checked: bool,
    /// The known controllers of the log.
    pub(crate) members: Members,
    /// The newest entries, which stay in the log.
    pub(crate) recent: RecentEntries,
    /// The part of the log that is durable here.
    pub(crate) durable: DurablePosition,
    /// The commands that were passed on to the controller that leads.
    pub(crate) passed_on: PassedOn,
    /// The observer of the writer's answers.
    pub(crate) observer: Option<Arc<dyn AnswerObserver>>,
}

impl Replica {
    /// Returns the trimming of the log, which runs while this controller leads.
    pub(crate) fn trimming(&self) -> Trimming {
        Trimming {
            log: Arc::clone(&self.log),
            recent: self.recent.clone(),
            durable: self.durable.clone(),
            presence: self.reporter.presence.clone(),
            members: self.members.clone(),
            clock: Arc::clone(&self.writer.clock),
        }
    }

    /// Follows and leads until the controller stops.
    ///
    /// # Errors
    /// [`RunError::NotOfThisLog`], [`RunError::Removed`]
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), RunError> {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        while !stop.is_cancelled() {
            let ended = match self.follow(&stop).await {
                Ok(Some(leadership)) => self.lead(leadership, &stop).await,
                Ok(None) => break,
                Err(failure) => Err(failure),
            };
            self.role.send_replace(Role::Following(None));
            match ended {
                Ok(()) => backoff.succeeded(),
                Err(failure @ ReplicaError::Removed(_)) => {
                    self.writer.queue.close();
                    return Err(RunError::Removed(failure.to_string()));
                }
                Err(failure) if failure.is_final() => {
                    self.writer.queue.close();
                    return Err(RunError::NotOfThisLog(failure.to_string()));
                }
                Err(failure) => self.recover(failure, &mut backoff, &stop).await,
            }
        }
        self.writer.queue.close();
        Ok(())
    }

    /// Applies what others append and passes commands on, until this controller may lead. Returns none when the
    /// controller stops.
    async fn follow(&mut self, stop: &CancellationToken) -> Result<Option<Leadership>, ReplicaError> {
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            // A log that was set back has no entries for this controller, which would count as caught up.
            checked = self.check_history() => checked?,
        }
        if !*self.caught_up.borrow() {
            tokio::select! {
                () = stop.cancelled() => return Ok(None),
                checked = self.check_beginning() => checked?,
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            // A controller that is far behind is no candidate: all others would wait for it.
            caught_up = self.catch_up() => caught_up?,
        }
        self.check_listed()?;
        self.caught_up.send_replace(true);
        let mut entries = self.log.follow(self.head.position);
        let mut leaders = self.log.leaders();
        let mut known_presence = self.reporter.clone().answers();
        let mut leadership = self.log.acquire(self.announcement.clone());
        let freshness = self.reporter.freshness.clone();
        let (mut has_leaders, mut compare_at) = (false, None);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(None),
                entry = entries.next() => {
                    let entry = entry.ok_or(ReplicaError::Ended)??;
                    self.head = apply(&self.writer, &self.announcement, &self.head, &self.recent, entry).await?;
                    self.passed_on.answered.release(self.head.position);
                    self.check_listed()?;
                }
                leader = leaders.next() => {
                    let leader = leader.ok_or(ReplicaError::Ended)??;
                    // Another controller may lead since the log was set back, and write it beyond this one's end again.
                    if std::mem::replace(&mut has_leaders, true) {
                        compare_at = Some(Instant::now());
                    }
                    if let Some(leader) = &leader {
                        check_keys(&self.announcement, &leader.announcement)?;
                        check_blobs(&self.announcement, &leader.announcement)?;
                    }
                    self.role.send_replace(Role::Following(leader));
                }
                won = &mut leadership => {
                    let won = won?;
                    tokio::select! {
                        () = stop.cancelled() => return Ok(None),
                        checked = self.check_history() => checked?,
                    }
                    self.catch_up().await?;
                    self.check_listed()?;
                    return Ok(Some(won));
                }
                () = freshness.set_back() => compare_at = Some(Instant::now()),
                () = at(compare_at) => {
                    let compared = tokio::select! {
                        () = stop.cancelled() => return Ok(None),
                        compared = self.check_history() => compared,
                    };
                    compare_at = match compared {
                        Err(ReplicaError::Log(failure)) if failure.is_temporary() => {
                            Some(Instant::now() + COMPARE_AGAIN_AFTER)
                        }
                        compared => {
                            compared?;
                            None
                        }
                    };
                }
                Some(known) = known_presence.next() => self.take_presence(known)?,
                answered = self.passed_on.groups.came_back() => {
                    self.passed_on.answered.extend(answered);
                    self.passed_on.answered.release(self.head.position);
                    self.writer.give_back(self.passed_on.answered.take_untaken());
                }
                (jobs, bytes) = next_group(&self.passed_on.turns, &self.writer),
                    if self.passed_on.groups.have_room() =>
                {
                    let jobs = known_to_all(&self.writer.publisher.current().root, jobs);
                    if !jobs.is_empty() {
                        let (links, role) = (self.links.clone(), self.role.subscribe());
                        self.passed_on.pass_on(links, role, (jobs, bytes));
                    }
                }
            }
        }
    }

    /// Ends a controller that an operator has removed.
    fn check_listed(&self) -> Result<(), ReplicaError> {
        let name = &self.announcement.member;
        match self.writer.publisher.current().root.is_removed_member(name) {
            true => Err(ReplicaError::Removed(name.clone())),
            false => Ok(()),
        }
    }

    /// Takes over what the leading controller knows of agents' connections.
    fn take_presence(&mut self, mut known: KnownPresence) -> Result<(), ReplicaError> {
        if let Some(theirs) = known.now {
            self.compare_clock(theirs)?;
        }
        self.members.take(std::mem::take(&mut known.members));
        self.members.take_log(known.log);
        self.members.take_order(known.replace);
        let before = self.writer.publisher.current();
        if let Some(changes) = known.changes(&before.root, self.writer.clock.monotonic_ms()) {
            let root = before.root.apply(&changes, before.revision());
            let published = Published { root, ..Published::clone(&before) };
            self.writer.publisher.publish(published, Weight::default());
        }
        Ok(())
    }

    /// Applies all entries that the log has now.
    async fn catch_up(&mut self) -> Result<(), ReplicaError> {
        loop {
            let entries = self.log.read(self.head.position, READ_BYTES).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in entries {
                self.head = apply(&self.writer, &self.announcement, &self.head, &self.recent, entry).await?;
            }
        }
    }

    /// Leads until the leadership is lost, or the controller stops.
    async fn lead(&mut self, leadership: Leadership, stop: &CancellationToken) -> Result<(), ReplicaError> {
        let term = leadership.term();
        let journal = LogJournal {
            log: Arc::clone(&self.log),
            term,
            head: Mutex::new(self.head.clone()),
            recent: self.recent.clone(),
            random: Arc::clone(&self.writer.random),
            observer: self.observer.clone(),
            stop: stop.clone(),
        };
        match self.begin(&journal).await {
            // Another controller took the lead while this one caught up.
            Err(ReplicaError::Write(WriteError::Deposed(_) | WriteError::Overtaken(_))) => return Ok(()),
            begun => begun?,
        }
        self.writer.journal = Journal::Log(journal);
        tracing::info!(%term, "this controller leads");
        metrics().takeovers.inc(&[]);
        self.role.send_replace(Role::Leading(term));
        self.passed_on.finish(&self.writer.queue).await;

        let until = stop.child_token();
        let commands = Commands::new(Arc::clone(&self.writer.queue));
        let name = self.name.clone();
        let freshness = self.reporter.freshness.clone();
        let ended = {
            let serving = self.writer.serve(&until);
            let lost = async {
                let initializing = async {
                    if let Err(refusal) = initialize(&commands, name).await {
                        tracing::warn!(%refusal, "the controllers could not be initialised");
                    }
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = initializing => {}
                    () = leadership.lost() => {}
                    // The history is compared before this controller follows.
                    () = freshness.set_back() => {}
                    () = removed(self.reporter.state.clone(), &self.announcement.member) => {}
                }
                until.cancel();
            };
            tokio::pin!(serving);
            tokio::select! {
                ended = &mut serving => ended,
                () = lost => serving.await,
            }
        };
        tracing::warn!(%term, "this controller does not lead any more");
        if let Journal::Log(journal) = std::mem::replace(&mut self.writer.journal, Journal::Store) {
            self.head = journal.head.into_inner();
        }
        self.role.send_replace(Role::Following(None));
        drop(leadership);
        match ended {
            // What was not written was refused, and has no effect, or its callers were told that nobody knows.
            Ok(()) | Err(WriteError::Deposed(_) | WriteError::Overtaken(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Begins a term: from its first entry on, no earlier writer can append. Each stored leadership of a unit has a full
    /// lease from now on, because nobody knows how long its holder still counts on it.
    async fn begin(&self, journal: &LogJournal) -> Result<(), ReplicaError> {
        let store = self.writer.store.get().ok_or_else(|| StoreError::Failed("it is closed".into()));
        let store = store.map_err(WriteError::from)?;
        let content = Content::Term(self.announcement.clone());
        let now = self.writer.clock.now();
        let revision = journal.append(&*store, content, self.head.level, &self.head, now).await?;
        let before = self.writer.publisher.current();
        let root = before.root.replay(&Default::default(), revision);
        let root = root.restart(journal.head.lock().at, self.writer.clock.monotonic_ms());
        let since = Instant::now();
        let published = Published { root, problem: None, since, ..Published::clone(&before) };
        self.writer.publisher.publish(published, Weight::default());
        Ok(())
    }

    /// Waits a while after a failure, and opens the store again if it failed.
    async fn recover(&mut self, failure: ReplicaError, backoff: &mut Backoff, stop: &CancellationToken) {
        let failure = match failure {
            ReplicaError::Log(LogError::Trimmed(_)) => {
                let taken = self.take_snapshot().await;
                metrics().snapshots.inc(&[if taken.is_ok() { "taken" } else { "failed" }]);
                match taken {
                    Ok(()) => return,
                    Err(failure) => failure,
                }
            }
            failure => failure,
        };
        tracing::error!(error = %failure, "this controller neither leads nor follows for a moment");
        if let Some(failure) = failure.of_store() {
            if !self.writer.reopen(failure, stop).await {
                return;
            }
            match self.stored_head().await {
                Ok(head) => self.head = head,
                Err(error) => tracing::error!(%error, "the end of the log is not known"),
            }
            return;
        }
        self.writer.say(format!("this controller neither leads nor follows: {failure}"));
        let refusal =
            Refusal::new(ErrorCode::TryAgain, format!("{failure}; the request had no effect, send it again"));
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(backoff.failed()) => {}
            () = async { loop { answer_all(self.writer.take().await, &refusal) } } => {}
        }
    }

    /// Takes the state of the controller that leads, in the place of entries that the log does not have any more.
    async fn take_snapshot(&mut self) -> Result<(), ReplicaError> {
        let mut leaders = self.log.leaders();
        let leader = async {
            loop {
                if let Some(leader) = leaders.next().await.ok_or(ReplicaError::Ended)?? {
                    return Ok::<_, ReplicaError>(leader);
                }
            }
        };
        let leader =
            tokio::time::timeout(LEADER_WITHIN, leader).await.map_err(|_| ReplicaError::NoSource)??;
        let url = leader.announcement.url;
        tracing::warn!(after = %self.head.position, %url, "the log has no entries from here on: taking the state of the controller that leads");
        let _taking = self.members.taking_state();
        let client = self.links.to(&url).map_err(SnapshotFailure::from)?;
        let store = self.writer.store.get().ok_or(ReplicaError::Ended)?;
        let head = snapshot::take(&client, &*store, &self.head).await?;
        let read = writer::read(store, &*self.writer.clock).await.map_err(SnapshotFailure::from)?;
        self.writer.publisher.publish(read.published, Weight::default());
        tracing::info!(revision = %head.position, "the state was taken");
        self.head = head;
        Ok(())
    }

    /// Reads the end of the log that the store has applied.
    async fn stored_head(&self) -> Result<LogHead, ReplicaError> {
        let store = self.writer.store.get().ok_or(ReplicaError::Ended)?;
        let note = store.load().await.map_err(WriteError::from)?.note;
        head_of(note.as_deref(), self.log.id()).map_err(ReplicaError::Note)
    }
}

/// Waits until a time; for ever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns the end of the log that a store has applied.
pub(crate) fn head_of(note: Option<&[u8]>, log: StoreId) -> Result<LogHead, EntryError> {
    note.map_or_else(|| Ok(LogHead::empty(log)), LogHead::decode)
}

/// Gives a new controller, or a new set of controllers, its name and id. Changes nothing later.
pub(crate) async fn initialize(commands: &Commands, name: String) -> Result<(), Refusal> {
    let input = Input::Worker(WorkerCommand::Initialize { name });
    commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await.map(|_| ())
}

/// Waits until an operator has removed the controller of this name.
async fn removed(mut state: Subscription, name: &str) {
    while !state.seen().root.is_removed_member(name) {
        if !state.changed().await {
            std::future::pending::<()>().await;
        }
    }
}
