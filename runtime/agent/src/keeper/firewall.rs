//! Rules of the host's firewall for the ports that units on this host have open. The kernel drops what the model's rules
//! do not admit; ports that no unit has open are none of the agent's business.
//!
//! The agent has one table of nf_tables, of which it writes what a change needs. The table stays while the agent is stopped,
//! and is made anew from the first views after a start. It goes with the last open port, and with the agent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use periapt_client::Backoff;
use periapt_host_api::{
    ModelUuid,
    ports::{PortRange, Transport},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::directories::{Directories, DirectoryError};
use crate::{metrics::FirewallState, options::Options};

mod error;
mod note;
mod ports;
mod rules;
mod table;
#[cfg(test)]
mod tests;

pub use error::FirewallError;
pub(crate) use ports::{MachinePorts, WantedPorts};
use rules::FirewallRules;
pub use rules::TooManyRules;
use table::HostTable;
pub use table::try_firewall;

/// The ports that stay as they are, whatever units open: SSH, by which operators come, and the clients of DHCP, whose
/// answers the kernel does not count to what they asked.
const UNTOUCHED: [(Transport, u16); 3] = [(Transport::Tcp, 22), (Transport::Udp, 68), (Transport::Udp, 546)];

/// The time for the first view of each model after a start. Until then the rules of the agent before stay.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);

/// The pause after a change, so that changes that come together are one transaction.
const SETTLES: Duration = Duration::from_millis(100);

/// The time after which the agent looks whether the table is as it was written. Other programs may delete all tables of a
/// host.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(30);

/// The shortest and the longest pause before the next attempt to write the rules.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The machines of each model on this host, once the model's first view has come.
type KnownModels = BTreeMap<ModelUuid, Option<Arc<Vec<MachinePorts>>>>;

/// The agent's part of the host's firewall.
#[derive(Debug)]
pub(crate) struct Firewall {
    untouched: BTreeSet<PortRange>,
    /// The models of this agent; none until the controller has told them.
    models: watch::Sender<Option<KnownModels>>,
    /// The reason why the table lacks the newest rules; none if it has them, and before the first attempt.
    problem: watch::Sender<Option<String>>,
    table: Mutex<HostTable>,
}

impl Firewall {
    /// Creates the firewall of an agent, if its options want one. It knows its table again by a note in the agent's
    /// directory. Without a firewall, what an agent before wrote with this directory is deleted.
    ///
    /// # Errors
    /// The note cannot be read or written.
    pub(crate) fn new(
        options: &Options,
        peer_port: Option<u16>,
        directories: &Directories,
    ) -> Result<Option<Arc<Self>>, DirectoryError> {
        let Some(wanted) = &options.firewall else {
            Self::remove_former(directories);
            return Ok(None);
        };
        let table = HostTable::new(note::name_of_table(&directories.firewall_note(), &options.name)?);
        let port = |server: String| server.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let own = options.controllers.servers().filter_map(port).chain(peer_port);
        let own = own.map(|port| (Transport::Tcp, port)).chain(UNTOUCHED);
        let own = own.filter_map(|(transport, port)| PortRange::new(transport, port, port).ok());
        let untouched = own.chain(wanted.untouched.iter().copied()).collect();
        Ok(Some(Arc::new(Self::with(untouched, table))))
    }

    fn with(untouched: BTreeSet<PortRange>, table: HostTable) -> Self {
        let (models, problem) = (watch::Sender::default(), watch::Sender::default());
        Self { untouched, models, problem, table: Mutex::new(table) }
    }

    fn remove_former(directories: &Directories) {
        let path = directories.firewall_note();
        let Some(name) = note::known(&path) else { return };
        match HostTable::new(name.clone()).remove() {
            Ok(()) => note::forget(&path),
            Err(error) => tracing::warn!(
                %error,
                table = name,
                "rules of the host's firewall are left that the agent wrote before: `nft delete table inet {name}` deletes \
                 them"
            ),
        }
    }

    /// Records the models of this agent. The ports of others are forgotten.
    pub(crate) fn assign(&self, models: &BTreeSet<ModelUuid>) {
        self.models.send_if_modified(|known| {
            let mut before = known.take();
            let was_there = before.is_some();
            let mut of =
                |model: &ModelUuid| before.as_mut().and_then(|before| before.remove(model)).flatten();
            let now: KnownModels = models.iter().map(|model| (*model, of(model))).collect();
            let is_new = !was_there
                || before.is_some_and(|gone| !gone.is_empty())
                || now.values().any(Option::is_none);
            *known = Some(now);
            is_new
        });
    }

    /// Records the machines of a model on this host.
    pub(crate) fn observe(&self, model: ModelUuid, machines: Vec<MachinePorts>) {
        self.models.send_if_modified(|known| {
            // The keeper of a model that is not this agent's any more may have had a last frame.
            let Some(place) = known.as_mut().and_then(|known| known.get_mut(&model)) else { return false };
            *place = Some(Arc::new(machines));
            true
        });
    }

    /// Returns a receiver of the reason why the host's firewall lacks the newest rules, as one line for `status`; none if
    /// it has them.
    pub(crate) fn problem(&self) -> watch::Receiver<Option<String>> {
        self.problem.subscribe()
    }

    fn set_problem(&self, now: Option<String>) {
        self.problem.send_if_modified(|problem| {
            let differs = *problem != now;
            *problem = now;
            differs
        });
    }

    /// Keeps the table as the model's rules have it, for as long as it runs.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut models = self.models.subscribe();
        if models.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let all_known = |known: &Option<KnownModels>| {
            known.as_ref().is_some_and(|known| known.values().all(Option::is_some))
        };
        if timeout(KNOWN_WITHIN, models.wait_for(all_known)).await.is_err() {
            tracing::warn!("the firewall's rules are written without those of models that have not come yet");
        }
        let (mut state, mut pauses) = (FirewallState::default(), Backoff::new(PAUSES.0, PAUSES.1));
        let mut told = None;
        loop {
            let known = models.borrow_and_update().clone().unwrap_or_default();
            let firewall = Arc::clone(&self);
            let written = tokio::task::spawn_blocking(move || firewall.write(&known)).await;
            let pause = match written {
                Ok(Ok(())) => {
                    pauses.succeeded();
                    state.written();
                    told = None;
                    self.set_problem(None);
                    LOOKED_FOR_EVERY
                }
                Ok(Err(error)) => {
                    state.failed();
                    self.set_problem(Some(error.for_status()));
                    let reason = error.to_string();
                    // Each reason is told once: attempts go on for as long as it holds.
                    if told.as_ref() != Some(&reason) {
                        tracing::error!(reason, "the rules of the host's firewall stay as they were");
                        told = Some(reason);
                    }
                    pauses.failed()
                }
                Err(error) => {
                    state.failed();
                    self.set_problem(Some(error::unfinished_for_status()));
                    tracing::error!(%error, "the rules of the host's firewall were not written");
                    pauses.failed()
                }
            };
            tokio::select! {
                changed = models.changed() => match changed {
                    Ok(()) => sleep(SETTLES).await,
                    Err(_) => return,
                },
                () = sleep(pause) => {}
            }
        }
    }

    /// Deletes the table for good. Nothing is written after it.
    pub(crate) async fn remove(self: Arc<Self>, directories: &Directories) {
        let path = directories.firewall_note();
        let removed = tokio::task::spawn_blocking(move || self.table.lock().remove()).await;
        match removed {
            Ok(Ok(())) => note::forget(&path),
            Ok(Err(error)) => tracing::error!(%error, "the agent's rules are left in the host's firewall"),
            Err(error) => tracing::error!(%error, "the agent's rules are left in the host's firewall"),
        }
    }

    fn write(&self, known: &KnownModels) -> Result<(), FirewallError> {
        let machines: Vec<&MachinePorts> =
            known.values().flatten().flat_map(|machines| machines.iter()).collect();
        let rules = FirewallRules::new(&machines, &self.untouched)?;
        self.table.lock().hold(&rules).map(drop)
    }
}
