//! The controllers of a simulation: the product's own code, on virtual time, over a network and a log in memory.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_controller::{Handle, Listen, LogBounds, Options, ReplicationOptions, RunError};
use periapt_host_api::{LEVEL, Level, Revision, StoreId, member::LogPlace};
use periapt_log::{Entry, MemoryLog, StoredEntry};
use periapt_store::{LoadedState, MemoryStore, Store as _};
use periapt_transport::{Line, MemoryAddress, MemoryNetwork};
use tempfile::TempDir;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    agents::AGENTS,
    chance::{Chance, Seeds},
    clock::HostClock,
    fold::Fold,
    laws,
    log::{Archive, LogAccess, LogDefect, LogWeather},
    programs::{self, Programs},
    sessions::CALLERS,
    witness::{Event, Witness},
};
use crate::fixture::{self, Faults};

pub(super) const LOG: StoreId = StoreId(uuid::Uuid::from_u128(80));

/// The names of the controllers.
pub(super) const NAMES: [&str; 3] = ["one", "two", "three"];

/// The longest wait for all controllers to have applied the log, once nothing disturbs them any more.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);

/// The errors of hosts' monotonic clocks.
#[derive(Debug, Clone, Copy)]
enum Drift {
    None,
    /// Up to 1 % too fast or too slow.
    Some,
}

/// The controllers, with what is between them.
pub(super) struct World {
    pub(super) network: MemoryNetwork,
    pub(super) archive: Archive,
    pub(super) hosts: Vec<Host>,
    /// The names of all callers that are no controllers.
    pub(super) callers: Vec<&'static str>,
    pub(super) witness: Witness,
    pub(super) bounds: LogBounds,
    programs: Programs,
    blobs: TempDir,
    began: Instant,
    story: Mutex<Vec<String>>,
}

/// A host with its controller, which may be down.
pub(super) struct Host {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) clock: HostClock,
    chance: Mutex<Chance>,
    controller: Mutex<Controller>,
    defect: LogDefect,
    /// The level that the host's program knows.
    level: Mutex<Level>,
}

/// The controller of a host.
struct Controller {
    /// The content of the host's disk.
    disk: Arc<MemoryStore>,
    faults: Faults,
    log: LogAccess,
    running: Option<Running>,
}

struct Running {
    handle: Handle,
    ended: JoinHandle<Result<(), RunError>>,
}

/// The way in which a controller ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is told to stop.
    Stop,
    /// Its process is killed.
    Kill,
    /// Its machine loses power, and with it what was not synced.
    PowerLoss,
}

impl World {
    /// Prepares three hosts, on which nothing runs yet.
    pub(super) fn new(chance: &mut Chance) -> Self {
        Self::of(chance, CALLERS.into(), Drift::None, (Programs::New, LogDefect::None))
    }

    /// Prepares three hosts whose programs may be old.
    pub(super) fn with_programs(chance: &mut Chance, programs: Programs, defect: LogDefect) -> Self {
        Self::of(chance, CALLERS.into(), Drift::None, (programs, defect))
    }

    /// Prepares three hosts with agents beside them. The hosts' clocks do not go at the same rate.
    pub(super) fn with_agents(chance: &mut Chance, defect: LogDefect) -> Self {
        let callers = CALLERS.into_iter().chain(AGENTS).collect();
        Self::of(chance, callers, Drift::Some, (Programs::New, defect))
    }

    fn of(
        chance: &mut Chance,
        callers: Vec<&'static str>,
        drift: Drift,
        (programs, defect): (Programs, LogDefect),
    ) -> Self {
        let witness = Witness::default();
        let archive = Archive::of(MemoryLog::new(LOG), witness.clone());
        // Of half of all seeds, everything that may be trimmed is, and few entries stay for controllers that are away.
        let bounds = match chance.one_in(2) {
            true => LogBounds { kept: 0, most: 4 << 10 },
            false => LogBounds::default(),
        };
        let host = |(number, name): (usize, &'static str)| {
            let port = 17_071 + u16::try_from(number).unwrap();
            let clock = HostClock::new(match drift {
                Drift::None => 0,
                Drift::Some => chance.below(20_001) as i64 - 10_000,
            });
            let log = LogAccess::new(archive.clone(), (name, clock.clone()), defect, chance.part());
            let controller = Controller {
                disk: Arc::new(MemoryStore::new(LOG)),
                faults: Faults::default(),
                log,
                running: None,
            };
            let level = programs.first_level();
            witness.note(Event::Program { host: name, level });
            Host {
                name,
                address: SocketAddr::from(([127, 0, 0, 1], port)),
                clock,
                chance: Mutex::new(chance.part()),
                controller: Mutex::new(controller),
                defect,
                level: Mutex::new(level),
            }
        };
        let hosts = NAMES.into_iter().enumerate().map(host).collect();
        Self {
            network: MemoryNetwork::default(),
            archive,
            hosts,
            callers,
            witness,
            bounds,
            programs,
            blobs: TempDir::new().unwrap(),
            began: Instant::now(),
            story: Mutex::default(),
        }
    }

    /// Notes something for the reader of a failure.
    pub(super) fn note(&self, text: impl std::fmt::Display) {
        self.story.lock().push(format!("{:>8} ms  {text}", self.began.elapsed().as_millis()));
    }

    /// Returns the directory of one caller.
    pub(super) fn directory(&self, name: &str) -> PathBuf {
        self.blobs.path().join(name)
    }

    /// Returns what was noted.
    pub(super) fn story(&self) -> String {
        self.story.lock().join("\n")
    }

    /// Starts the controller of a host on what is on its disk.
    pub(super) async fn start(&self, host: &Host) {
        let (disk, faults, log) = {
            let mut controller = host.controller.lock();
            controller.faults = Faults::that_keep_what_is_synced(&controller.disk);
            controller.log.set(LogWeather::default());
            (Arc::clone(&controller.disk), controller.faults.clone(), controller.log.clone())
        };
        self.witness.take_disk(host.name, faults.clone());
        let caller = self.network.caller(host.name);
        let options = Options {
            listen: Listen::Memory(MemoryAddress { caller, address: host.address }),
            replication: Some(ReplicationOptions {
                log: Arc::new(log),
                member: host.name.into(),
                blobs: None,
                place: LogPlace { url: "memory:".into(), authority: None, identity: None },
                bounds: self.bounds,
                level: self.programs.told(*host.level.lock()),
                observer: Some(self.witness.observer(host.name)),
            }),
            clock: Arc::new(host.clock.clone()),
            random: Arc::new(Seeds::new(host.chance.lock().part())),
            ..fixture::options(disk, faults, &self.directory(host.name))
        };
        let service = options.build().await.unwrap();
        let handle = service.handle();
        let ended = tokio::spawn(service.run(CancellationToken::new()));
        host.controller.lock().running = Some(Running { handle, ended });
    }

    /// Ends the controller of a host, and leaves on its disk what is then there.
    pub(super) async fn end(&self, host: &Host, end: End) {
        let running = {
            let mut controller = host.controller.lock();
            let disk = match end {
                End::Stop => Arc::clone(&controller.disk),
                End::Kill => Arc::new(controller.disk.copy()),
                End::PowerLoss => controller.faults.synced().unwrap(),
            };
            if end != End::Stop {
                // What still runs of it reaches nobody: neither the log, nor its callers, nor its disk.
                let clock = (host.name, host.clock.clone());
                let log = LogAccess::new(self.archive.clone(), clock, host.defect, host.chance.lock().part());
                let old = std::mem::replace(&mut controller.log, log);
                old.set(LogWeather::default());
                old.cut_off();
            }
            controller.disk = disk;
            controller.running.take()
        };
        let Some(Running { handle, ended }) = running else { return };
        if end != End::Stop {
            self.reach(host, Line::Cut);
        }
        handle.shutdown();
        ended.await.unwrap().unwrap();
        self.reach(host, Line::Up);
    }

    /// Sets all lines to and from a host.
    pub(super) fn reach(&self, host: &Host, line: Line) {
        for caller in NAMES.into_iter().chain(self.callers.iter().copied()) {
            self.network.set(caller, host.address, line);
        }
        for other in &self.hosts {
            self.network.set(host.name, other.address, line);
        }
    }

    /// Mends everything, and starts every controller.
    pub(super) async fn heal(&self) {
        for host in &self.hosts {
            self.reach(host, Line::Up);
            host.set_log(LogWeather::default());
            if !host.is_running() {
                self.start(host).await;
            }
        }
    }

    /// Waits until each controller has applied the whole log, and returns what is on their disks.
    ///
    /// # Errors
    /// It takes too long, which is told by what each has.
    pub(super) async fn settled(&self) -> Result<Vec<LoadedState>, String> {
        let until = Instant::now() + SETTLED_WITHIN;
        loop {
            let at: Vec<_> = self.hosts.iter().map(|host| host.disk().revision()).collect();
            let end = self.archive.end();
            if end > Revision(0) && at.iter().all(|revision| *revision == end) {
                let mut states = Vec::new();
                for host in &self.hosts {
                    states.push(host.disk().load().await.unwrap().whole().await.unwrap());
                }
                return Ok(states);
            }
            if Instant::now() > until {
                return Err(format!(
                    "the controllers do not catch up: they are at {at:?}, the log ends at {end}"
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Stops all controllers.
    pub(super) async fn stop(&self) {
        for host in &self.hosts {
            self.end(host, End::Stop).await;
        }
    }

    /// Begins the log, as the oldest program does, before any controller starts.
    pub(super) async fn begin(&self) {
        if self.programs.first_level() < LEVEL {
            let (term, position) = programs::begin(&self.archive).await;
            self.witness.note(Event::Appended { host: "the first one", term, position });
        }
    }

    /// Takes the newest program for a host whose controller does not run.
    pub(super) fn upgrade(&self, host: &Host) {
        *host.level.lock() = LEVEL;
        self.witness.note(Event::Program { host: host.name, level: LEVEL });
    }

    /// Upgrades the controllers with old programs one by one, and waits until the level has risen.
    ///
    /// # Errors
    /// It does not rise.
    pub(super) async fn upgrade_all(&self) -> Result<(), String> {
        let old: Vec<_> = self.hosts.iter().filter(|host| *host.level.lock() < LEVEL).collect();
        for host in &old {
            // A controller that leads for as long would have raised the level, but for this host.
            tokio::time::sleep(Duration::from_secs(35)).await;
            self.note(format_args!("{} is upgraded", host.name));
            self.end(host, End::Stop).await;
            self.upgrade(host);
            self.start(host).await;
        }
        let until = Instant::now() + SETTLED_WITHIN;
        while self.level() < LEVEL {
            if Instant::now() > until {
                return Err(format!("the level stays {}, though all programs know {LEVEL}", self.level()));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    /// Returns the level of the last entry.
    fn level(&self) -> Level {
        let last = self.archive.entries().pop();
        last.map_or(Level::FIRST, |StoredEntry { position, bytes }| {
            Entry::decode(position, &bytes).unwrap().level
        })
    }

    /// Lets some time pass on all hosts, in which nothing happens.
    pub(super) fn skip(&self, by: Duration) {
        self.note(format_args!("{} min pass", by.as_secs() / 60));
        self.hosts.iter().for_each(|host| host.clock.skip(by));
    }

    /// Lets the witness see which blobs the hosts have.
    pub(super) fn see_blobs(&self) {
        self.witness.see_blobs(self.archive.end(), self.hosts.iter().map(|host| self.directory(host.name)));
    }

    /// Checks the laws that are judged by what the witness saw.
    ///
    /// # Errors
    /// The first law that does not hold.
    pub(super) fn judge(&self) -> Result<(), String> {
        let fold = Fold::of(&self.archive.entries())?;
        laws::of_events(&self.witness.events(), &fold, self.bounds)
    }
}

impl Host {
    /// Changes the line between the controller and the log.
    pub(super) fn set_log(&self, weather: LogWeather) {
        self.controller.lock().log.set(weather);
    }

    /// Cuts the controller off from the log.
    pub(super) fn cut_log(&self) {
        self.controller.lock().log.cut_off();
    }

    pub(super) fn is_running(&self) -> bool {
        self.controller.lock().running.is_some()
    }

    pub(super) fn disk(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.controller.lock().disk)
    }
}
