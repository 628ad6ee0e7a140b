//! The unit of a hook.

use crate::bindings::periapt::charm::status as wit;
use crate::{
    Config, Context as _, Error, FromConfig, GoalState, HttpResponse, NetworkInfo, NewSecret, OpenedPorts,
    Owner, Pebble, Ports, Relation, Resource, Result, Secret, State, Status, Storage, Workload,
    WorkloadStream, host,
    http::{HttpRequest, exchange},
    secret,
};
use std::collections::BTreeSet;

/// The most bytes of a page of a workload.
const MAX_PAGE: usize = 4 << 20;

/// The unit of the hook: access to its data and to the host's calls.
#[derive(Debug)]
pub struct Unit {
    attempt: u32,
}

impl Unit {
    pub(crate) fn new(attempt: u32) -> Self {
        Self { attempt }
    }

    /// Returns the unit's name, `APPLICATION/NUMBER`.
    pub fn name(&self) -> String {
        host::identity::unit_name()
    }

    /// Returns the application's name.
    pub fn app(&self) -> String {
        host::identity::application_name()
    }

    /// Returns the model's name.
    pub fn model(&self) -> String {
        host::identity::model_name()
    }

    /// Returns the machine of the unit.
    pub fn machine(&self) -> String {
        host::identity::machine_id()
    }

    /// Returns the principal of a subordinate.
    pub fn principal(&self) -> Option<String> {
        host::identity::principal_unit()
    }

    /// Returns the number of the hook's attempt, from 1: exact for units with storage or outside grants, a lower
    /// bound for others.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the address at which other units reach this unit.
    ///
    /// # Errors
    ///
    /// When none is known yet.
    pub fn address(&self) -> Result<String> {
        host::identity::private_address().map_err(Error::refused)
    }

    /// Returns the address at which the outside world reaches this unit.
    ///
    /// # Errors
    ///
    /// When none is known yet.
    pub fn public_address(&self) -> Result<String> {
        host::identity::public_address().map_err(Error::refused)
    }

    /// Returns the settings, as the charm's own type.
    ///
    /// # Errors
    ///
    /// The error of [`FromConfig::from_config`].
    pub fn config<T: FromConfig>(&self) -> Result<T> {
        T::from_config(&Config::new())
    }

    /// Returns true if this unit leads its application. A `true` holds for at least 30 seconds.
    ///
    /// # Errors
    ///
    /// When leadership is unknown at the moment.
    pub fn is_leader(&self) -> Result<bool> {
        host::leadership::is_leader().map_err(Error::refused)
    }

    /// Returns the relations of an endpoint, by number.
    pub fn relations(&self, endpoint: &str) -> Vec<Relation> {
        host::relations::ids(endpoint).into_iter().map(|id| Relation::new(id, endpoint)).collect()
    }

    /// Returns the first relation of an endpoint: the only one of a peer endpoint, or of an endpoint with `limit: 1`.
    pub fn relation(&self, endpoint: &str) -> Option<Relation> {
        self.relations(endpoint).into_iter().next()
    }

    /// Returns the addresses of an endpoint or an extra binding, by the space that operators bound it to.
    ///
    /// # Errors
    ///
    /// When there is no such binding, or no address in its space.
    pub fn network(&self, binding: &str) -> Result<NetworkInfo> {
        host::network::get(binding, None).map_err(Error::refused)
    }

    /// Returns the goal state: the units that the operator wants, here and at the other ends of relations, with their
    /// statuses. A charm uses it to wait for all of them, or to stop waiting.
    pub fn goal_state(&self) -> GoalState {
        host::goal_state::get()
    }

    /// Returns the unit's stored state.
    pub fn state(&self) -> State {
        State::new()
    }

    /// Begins a new secret of the application: only its leader makes one, and all its units read it.
    pub fn app_secret(&self) -> NewSecret {
        NewSecret::new(Owner::Application)
    }

    /// Begins a new secret of this unit.
    pub fn own_secret(&self) -> NewSecret {
        NewSecret::new(Owner::Unit)
    }

    /// Returns the secret with this label of the unit, or of the application that it leads.
    ///
    /// # Errors
    ///
    /// When there is no such secret.
    pub fn secret_labelled(&self, label: &str) -> Result<Secret> {
        let details = host::secrets::info(None, Some(label)).map_err(Error::refused)?;
        Ok(Secret::new(details.uri))
    }

    /// Returns the secrets that this unit manages: its own, and as leader its application's.
    ///
    /// # Errors
    ///
    /// When leadership is unknown at the moment.
    pub fn secrets(&self) -> Result<Vec<Secret>> {
        secret::all()
    }

    /// Returns the attached instances of a storage, by id. Instances that are being attached or detached are left
    /// out.
    pub fn storage(&self, name: &str) -> Vec<Storage> {
        let ids = host::storage::list(Some(name));
        ids.iter().filter_map(|id| Storage::find(id).ok()).collect()
    }

    /// Adds instances of a storage. Each comes with a storage-attached event.
    ///
    /// # Errors
    ///
    /// When the charm declares no such storage. Too many instances fail the hook at its commit.
    pub fn add_storage(&self, name: &str, count: u32) -> Result {
        host::storage::add(name, count).map_err(Error::refused)
    }

    /// Returns the file of a resource that the charm declares. The agent fetches it first, if necessary.
    ///
    /// # Errors
    ///
    /// When the charm declares no such file, nothing was attached yet, or the agent cannot fetch it now.
    pub fn resource(&self, name: &str) -> Result<Resource> {
        Resource::find(name)
    }

    /// Returns the Pebble of a container or of a WebAssembly workload, which runs its services and writes its files.
    pub fn pebble(&self, container: &str) -> Pebble {
        Pebble::new(container)
    }

    /// Asks a workload of this unit for a page by HTTP: `GET` with a path, such as `/health?full`. The answer has any status,
    /// and a body of at most 4 MiB.
    ///
    /// # Errors
    ///
    /// When nobody listens, or the answer is no HTTP/1.1 or too large.
    pub fn workload_page(&self, port: u16, path: &str) -> Result<HttpResponse> {
        let mut stream = self.workload_port(port)?;
        let (_, page) =
            exchange(&mut stream, &HttpRequest::get(path), MAX_PAGE).context(format_args!("port {port}"))?;
        Ok(page)
    }

    /// Opens a stream to a TCP port that a workload of this unit listens on.
    ///
    /// # Errors
    ///
    /// When nobody listens.
    pub fn workload_port(&self, port: u16) -> Result<WorkloadStream> {
        WorkloadStream::to_port(port)
    }

    /// Sets the workload's status. It is visible at once, and stays if the hook fails.
    ///
    /// # Errors
    ///
    /// When the host refuses it.
    pub fn set_status(&self, status: &Status) -> Result {
        host::status::set(status.workload, &status.message).map_err(Error::refused)
    }

    /// Returns the unit's last workload status, or `None` if it never set one.
    ///
    /// # Errors
    ///
    /// When the status is unknown at the moment.
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

    /// Sets the status of the application; leader only.
    ///
    /// # Errors
    ///
    /// When this unit does not lead.
    pub fn set_app_status(&self, status: &Status) -> Result {
        host::status::set_application(status.workload, &status.message).map_err(Error::refused)
    }

    /// Sets the workload's version.
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

    /// Returns the open ports, this hook's requests included.
    pub fn opened_ports(&self) -> Vec<OpenedPorts> {
        host::ports::opened()
            .into_iter()
            .map(|opened| OpenedPorts { ports: Ports::from_wit(&opened.ports), endpoints: opened.endpoints })
            .collect()
    }

    /// Closes unwanted ports that are open for all endpoints, then opens wanted ports.
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
