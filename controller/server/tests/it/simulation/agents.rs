//! Agents of a simulation: the product's own keeping of leases, each on a clock of its own, which may stand still, be cut
//! off, and end.

use std::{
    collections::{BTreeMap, btree_map},
    net::SocketAddr,
    ops::RangeInclusive,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use periapt_agent::LeaseKeeper;
use periapt_client::{Client, Identity, Options};
use periapt_hook::HeldLease;
use periapt_host_api::{AgentName, LeaderTerm, ModelUuid, UnitName};
use periapt_transport::Line;
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use super::{chance::Chance, world::World};

/// The names of the agents, by which the network knows their hosts, too.
pub(super) const AGENTS: [&str; 3] = ["agent-1", "agent-2", "agent-3"];

/// The number of faults of agents, one after the other.
const FAULTS: usize = 6;

/// The agents, with all that they believed.
pub(super) struct Agents {
    world: Arc<World>,
    model: ModelUuid,
    hosts: Vec<AgentHost>,
    beliefs: Arc<Mutex<Vec<Belief>>>,
}

struct AgentHost {
    name: &'static str,
    clock: AgentClock,
    chance: Mutex<Chance>,
    stands_still: watch::Sender<bool>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// A time in which an agent counts on the leadership of a unit. A unit may go on at another agent.
#[derive(Debug, Clone)]
pub(super) struct Belief {
    pub(super) agent: &'static str,
    pub(super) unit: UnitName,
    pub(super) term: LeaderTerm,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

/// A host's clock of leases. It shows any time when the simulation begins, and goes a little too fast or too slow.
#[derive(Debug, Clone, Copy)]
struct AgentClock {
    began: Instant,
    ahead_ms: u64,
    rate: f64,
}

impl AgentClock {
    fn boot_ms(self) -> u64 {
        self.ahead_ms + (self.began.elapsed().as_secs_f64() * 1_000.0 * self.rate) as u64
    }

    /// Returns the moment at which the clock shows a time.
    fn when(self, boot_ms: u64) -> Instant {
        let shown = boot_ms.saturating_sub(self.ahead_ms) as f64;
        self.began + Duration::from_secs_f64(shown / 1_000.0 / self.rate)
    }
}

/// A fault of an agent.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Its processes stand still. Its host answers for its connections.
    StandsStill,
    /// Its host stands still.
    HostStandsStill,
    /// All its lines are in this state.
    Lines(Line),
    /// It is killed, and starts again later.
    Killed,
}

impl Agents {
    /// Prepares agents, none of which runs. Their clocks go at these rates, in thousandths of the right one.
    pub(super) fn new(
        world: &Arc<World>,
        model: ModelUuid,
        rates: RangeInclusive<usize>,
        chance: &mut Chance,
    ) -> Self {
        let hosts = AGENTS.into_iter().map(|name| {
            // Up to an hour apart.
            let ahead_ms = chance.draw() % 3_600_000;
            let rate = rates.start() + chance.below(rates.end() - rates.start() + 1);
            AgentHost {
                name,
                clock: AgentClock { began: Instant::now(), ahead_ms, rate: rate as f64 / 1_000.0 },
                chance: Mutex::new(chance.part()),
                stands_still: watch::Sender::new(false),
                keeper: Mutex::default(),
            }
        });
        let hosts = hosts.collect();
        Self { world: Arc::clone(world), model, hosts, beliefs: Arc::default() }
    }

    /// Starts all agents.
    pub(super) fn start_all(&self) {
        self.hosts.iter().for_each(|host| self.start(host));
    }

    /// Starts an agent that does not run.
    fn start(&self, host: &AgentHost) {
        let mut running = host.keeper.lock();
        if running.is_some() {
            return;
        }
        let order = host.chance.lock().order(self.world.hosts.len());
        let addresses: Vec<SocketAddr> = order.iter().map(|index| self.world.hosts[*index].address).collect();
        let name: AgentName = host.name.parse().unwrap();
        let caller = self.world.network.caller(host.name);
        let client =
            Client::new(Options::in_memory(caller, &addresses, Identity::Agent(name.clone()))).unwrap();
        let clock = host.clock;
        let directory = self.world.directory(host.name);
        let keeper = LeaseKeeper::new(client, name, self.model, directory, move || clock.boot_ms());
        let beliefs = Arc::clone(&self.beliefs);
        let mut believed = Believed { agent: host.name, clock, beliefs, open: BTreeMap::new() };
        let stands_still = host.stands_still.subscribe();
        let work = keeper.run(move |leases| believed.changed(&leases));
        *running = Some(tokio::spawn(stoppable(work, stands_still)));
    }

    /// Ends an agent. With its process goes all that it believed.
    async fn kill(&self, host: &AgentHost) {
        let keeper = host.keeper.lock().take();
        if let Some(keeper) = keeper {
            keeper.abort();
            let _ = keeper.await;
        }
    }

    /// Ends all agents, and returns what they believed.
    pub(super) async fn stop(&self) -> Vec<Belief> {
        for host in &self.hosts {
            self.kill(host).await;
        }
        self.beliefs.lock().clone()
    }

    /// Makes faults of agents, one after the other. They hit agents that lead more often than others.
    pub(super) async fn faults(self: Arc<Self>, mut chance: Chance) {
        for _ in 0..FAULTS {
            tokio::time::sleep(chance.millis(1_000..20_000)).await;
            let leading = self.beliefs.lock().last().map(|belief| belief.agent);
            let leading = self.hosts.iter().find(|host| Some(host.name) == leading);
            let host = leading.filter(|_| chance.one_in(2)).unwrap_or_else(|| chance.pick(&self.hosts));
            // A lease lasts a minute.
            let range = if chance.one_in(3) { 500..30_000 } else { 50_000..100_000 };
            let lasts = chance.millis(range);
            let fault = match chance.below(6) {
                0 => Fault::StandsStill,
                1 => Fault::HostStandsStill,
                2 => Fault::Lines(Line::Cut),
                3 => Fault::Lines(Line::Silent),
                4 => Fault::Lines(Line::NoAnswers),
                _ => Fault::Killed,
            };
            self.world.note(format_args!("{}: {fault:?} for {} ms", host.name, lasts.as_millis()));
            match fault {
                Fault::StandsStill | Fault::HostStandsStill => {
                    host.stands_still.send_replace(true);
                    if matches!(fault, Fault::HostStandsStill) {
                        self.lines(host, Line::Silent);
                    }
                }
                Fault::Lines(line) => self.lines(host, line),
                Fault::Killed => self.kill(host).await,
            }
            tokio::time::sleep(lasts).await;
            self.lines(host, Line::Up);
            host.stands_still.send_replace(false);
            if matches!(fault, Fault::Killed) {
                self.start(host);
            }
            self.world.note(format_args!("{} is mended", host.name));
        }
    }

    fn lines(&self, host: &AgentHost, line: Line) {
        for controller in &self.world.hosts {
            self.world.network.set(host.name, controller.address, line);
        }
    }
}

/// The beliefs of one agent's process.
struct Believed {
    agent: &'static str,
    clock: AgentClock,
    beliefs: Arc<Mutex<Vec<Belief>>>,
    /// The index of each unit's present belief.
    open: BTreeMap<UnitName, usize>,
}

impl Believed {
    fn changed(&mut self, leases: &BTreeMap<UnitName, HeldLease>) {
        let (mut beliefs, now) = (self.beliefs.lock(), Instant::now());
        self.open.retain(|unit, index| {
            let goes_on = leases.contains_key(unit);
            if !goes_on {
                beliefs[*index].until = beliefs[*index].until.min(now);
            }
            goes_on
        });
        for (unit, lease) in leases {
            let until = self.clock.when(lease.valid_until_ms);
            let (agent, term) = (self.agent, lease.term);
            let belief = || Belief { agent, unit: unit.clone(), term, from: now, until };
            match self.open.entry(unit.clone()) {
                btree_map::Entry::Occupied(mut open) => {
                    let present = &mut beliefs[*open.get()];
                    if present.term == lease.term && present.until >= now {
                        present.until = until;
                    } else {
                        present.until = present.until.min(now);
                        open.insert(beliefs.len());
                        beliefs.push(belief());
                    }
                }
                btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(beliefs.len());
                    beliefs.push(belief());
                }
            }
        }
    }
}

impl Drop for Believed {
    fn drop(&mut self) {
        self.changed(&BTreeMap::new());
    }
}

/// Does work that makes no step while its process stands still.
async fn stoppable(work: impl Future<Output = ()>, mut stands_still: watch::Receiver<bool>) {
    let mut work = pin!(work);
    while stands_still.wait_for(|still| !still).await.is_ok() {
        tokio::select! {
            biased;
            stopped = stands_still.wait_for(|still| *still) => if stopped.is_err() { return },
            () = &mut work => return,
        }
    }
}

/// Checks that no two units of the application led at a time, none at two agents, and that each term is of one unit.
///
/// # Errors
/// H6
pub(super) fn one_at_a_time(beliefs: &[Belief]) -> Result<(), String> {
    let mut terms: BTreeMap<LeaderTerm, &UnitName> = BTreeMap::new();
    for (index, belief) in beliefs.iter().enumerate() {
        let of_term = *terms.entry(belief.term).or_insert(&belief.unit);
        if *of_term != belief.unit {
            return Err(format!("H6: {:?} is of {of_term} and of {}", belief.term, belief.unit));
        }
        let others = beliefs[..index].iter();
        let others = others.filter(|other| (other.agent, &other.unit) != (belief.agent, &belief.unit));
        for other in others {
            let (from, until) = (belief.from.max(other.from), belief.until.min(other.until));
            if from < until {
                let both = (until - from).as_millis();
                return Err(format!("H6: two lead for {both} ms: {belief:?} {other:?}"));
            }
        }
    }
    Ok(())
}
