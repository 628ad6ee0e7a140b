//! The unit that a hook runs in.

use crate::bindings::periapt::charm::status as wit;
use crate::{
    Config, Error, FromConfig, GoalState, NetworkInfo, NewSecret, OpenedPorts, Owner, Ports, Relation,
    Resource, Result, Secret, State, Status, Storage, Workload, host, secret,
};
use std::collections::BTreeSet;

/// The unit that the hook runs in: what it knows, and what it may ask for.
#[derive(Debug)]
pub struct Unit {
    attempt: u32,
}

impl Unit {
    pub(crate) fn new(attempt: u32) -> Self {
        Self { attempt }
    }

    /// `APPLICATION/NUMBER`.
    pub fn name(&self) -> String {
        host::identity::unit_name()
    }

    /// The application's name.
    pub fn app(&self) -> String {
        host::identity::application_name()
    }

    /// The model's name.
    pub fn model(&self) -> String {
        host::identity::model_name()
    }

    /// The machine that the unit runs on.
    pub fn machine(&self) -> String {
        host::identity::machine_id()
    }

    /// A subordinate's principal.
    pub fn principal(&self) -> Option<String> {
        host::identity::principal_unit()
    }

    /// 1 for a hook's first attempt; a lower bound where nothing outside the model depends on it.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The address by which other units reach this one.
    ///
    /// # Errors
    ///
    /// When none is known yet.
    pub fn address(&self) -> Result<String> {
        host::identity::private_address().map_err(Error::refused)
    }

    /// The address by which the world reaches this unit.
    ///
    /// # Errors
    ///
    /// When none is known yet.
    pub fn public_address(&self) -> Result<String> {
        host::identity::public_address().map_err(Error::refused)
    }

    /// The settings, as the charm's own type.
    ///
    /// # Errors
    ///
    /// What [`FromConfig::from_config`] returns.
    pub fn config<T: FromConfig>(&self) -> Result<T> {
        T::from_config(&Config::new())
    }

    /// Whether this unit leads its application; a `true` holds for at least 30 seconds.
    ///
    /// # Errors
    ///
    /// When it cannot be told now.
    pub fn is_leader(&self) -> Result<bool> {
        host::leadership::is_leader().map_err(Error::refused)
    }

    /// The relations of an endpoint, by number.
    pub fn relations(&self, endpoint: &str) -> Vec<Relation> {
        host::relations::ids(endpoint).into_iter().map(|id| Relation::new(id, endpoint)).collect()
    }

    /// The first relation of an endpoint: the only one of a peer endpoint or of one with `limit: 1`.
    pub fn relation(&self, endpoint: &str) -> Option<Relation> {
        self.relations(endpoint).into_iter().next()
    }

    /// The addresses of an endpoint or an extra binding, as operators bound it to a space.
    ///
    /// # Errors
    ///
    /// When there is no such binding, or no address in its space.
    pub fn network(&self, binding: &str) -> Result<NetworkInfo> {
        host::network::get(binding, None).map_err(Error::refused)
    }

    /// Which units the operator wants, here and at the other ends of relations, and how they are: to wait for all of
    /// them, or for none that will not come.
    pub fn goal_state(&self) -> GoalState {
        host::goal_state::get()
    }

    /// What the charm keeps for this unit from one hook to the next.
    pub fn state(&self) -> State {
        State::new()
    }

    /// Begins a secret of the application's: only its leader makes one, and all its units read it.
    pub fn app_secret(&self) -> NewSecret {
        NewSecret::new(Owner::Application)
    }

    /// Begins a secret of this unit's own.
    pub fn own_secret(&self) -> NewSecret {
        NewSecret::new(Owner::Unit)
    }

    /// The secret that this unit, or the application that it leads, names so.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn secret_labelled(&self, label: &str) -> Result<Secret> {
        let details = host::secrets::info(None, Some(label)).map_err(Error::refused)?;
        Ok(Secret::new(details.uri))
    }

    /// The secrets that this unit looks after: its own, and as leader its application's.
    ///
    /// # Errors
    ///
    /// When it cannot be told now.
    pub fn secrets(&self) -> Result<Vec<Secret>> {
        secret::all()
    }

    /// The storage of a name that can be used now, by id; what is not there yet, or about to go, is left out.
    pub fn storage(&self, name: &str) -> Vec<Storage> {
        let ids = host::storage::list(Some(name));
        ids.iter().filter_map(|id| Storage::find(id).ok()).collect()
    }

    /// Asks for more instances of a storage; each comes with a storage-attached event.
    ///
    /// # Errors
    ///
    /// When the charm declares no such storage. That there are too many is told when the hook is committed.
    pub fn add_storage(&self, name: &str, count: u32) -> Result {
        host::storage::add(name, count).map_err(Error::refused)
    }

    /// The file of a resource that the charm declares; it is fetched first if it is not at hand.
    ///
    /// # Errors
    ///
    /// When the charm declares no such file, nothing was attached yet, or it cannot be fetched now.
    pub fn resource(&self, name: &str) -> Result<Resource> {
        Resource::find(name)
    }

    /// Says how the workload is. Seen at once, and stays if the hook fails.
    ///
    /// # Errors
    ///
    /// When the host refuses it.
    pub fn set_status(&self, status: &Status) -> Result {
        host::status::set(status.workload, &status.message).map_err(Error::refused)
    }

    /// What this unit last said of its workload; `None` if it never did.
    ///
    /// # Errors
    ///
    /// When it cannot be told now.
    pub fn status(&self) -> Result<Option<Status>> {
        let info = host::status::get().map_err(Error::refused)?;
        let workload = match info.status {
            wit::Status::Maintenance => Workload::Maintenance,
            wit::Status::Blocked => Workload::Blocked,
            wit::Status::Waiting => Workload::Waiting,
            wit::Status::Active => Workload::Active,
            wit::Status::Unknown | wit::Status::Terminated | wit::Status::Error => return Ok(None),
        };
        Ok(Some(Status { workload, message: info.message }))
    }

    /// Says how the application as a whole is; leader only.
    ///
    /// # Errors
    ///
    /// When this unit does not lead.
    pub fn set_app_status(&self, status: &Status) -> Result {
        host::status::set_application(status.workload, &status.message).map_err(Error::refused)
    }

    /// Tells operators the workload's version.
    ///
    /// # Errors
    ///
    /// When the host refuses it.
    pub fn set_version(&self, version: &str) -> Result {
        host::status::set_application_version(version).map_err(Error::refused)
    }

    /// Opens ports for all endpoints.
    ///
    /// # Errors
    ///
    /// When they overlap with others on this machine.
    pub fn open(&self, ports: impl Into<Ports>) -> Result {
        self.open_for(ports, &[])
    }

    /// Opens ports for some endpoints, or for all if none is named.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and when an endpoint is unknown.
    pub fn open_for(&self, ports: impl Into<Ports>, endpoints: &[&str]) -> Result {
        let endpoints: Vec<String> = endpoints.iter().map(|&endpoint| endpoint.to_owned()).collect();
        host::ports::open(ports.into().to_wit(), &endpoints).map_err(Error::refused)
    }

    /// Closes ports that were opened for all endpoints.
    ///
    /// # Errors
    ///
    /// When they are a part of a wider open range.
    pub fn close(&self, ports: impl Into<Ports>) -> Result {
        host::ports::close(ports.into().to_wit(), &[]).map_err(Error::refused)
    }

    /// What is open, this hook's requests included.
    pub fn opened_ports(&self) -> Vec<OpenedPorts> {
        host::ports::opened()
            .into_iter()
            .map(|opened| OpenedPorts { ports: Ports::from_wit(&opened.ports), endpoints: opened.endpoints })
            .collect()
    }

    /// Closes what is open for all endpoints and not wanted, then opens what is wanted and not open.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) and [`close`](Self::close).
    pub fn set_ports(&self, wanted: impl IntoIterator<Item = Ports>) -> Result {
        let wanted: BTreeSet<Ports> = wanted.into_iter().collect();
        let open: BTreeSet<Ports> = self
            .opened_ports()
            .into_iter()
            .filter(|opened| opened.endpoints.is_empty())
            .map(|opened| opened.ports)
            .collect();
        for ports in open.difference(&wanted) {
            self.close(ports.clone())?;
        }
        for ports in wanted.difference(&open) {
            self.open(ports.clone())?;
        }
        Ok(())
    }
}
