//! The typed interface: the functions behind the sandbox's host functions, by the interfaces of the contract.

use periapt_host_api::{
    ApplicationName, EndpointName, EventId, RelationId, StorageId, StorageName, UnitName,
    action::Parameters,
    logs::LogLevel,
    network::NetworkInfo,
    pending::PendingEvent,
    ports::OpenedPorts,
    relation::Settings,
    settings::OptionValue,
    status::{StatusInfo, WorkloadStatus},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    ApplicationStatuses, BagSelector, CallAnswer, CallError, CallTime, CharmStatus, GoalState, HookContext,
    LaterEvent, MountedStorage, OwnBag, Ports, ResourceFile,
    lease::{Interruption, into_answer},
    pebble,
    run::HookRun,
};

mod secrets;

impl HookContext {
    fn call<A: Serialize, T: Serialize>(
        &mut self,
        function: &str,
        arguments: A,
        behaviour: impl FnOnce(&mut HookRun) -> T,
    ) -> T {
        let answer = behaviour(&mut self.run);
        self.recorder.record(function, &arguments, &answer);
        answer
    }

    /// Makes a call that may need leadership. It is recorded when it is answered, not when the host must repeat
    /// it.
    fn leader_call<A: Serialize, T: Serialize>(
        &mut self,
        function: &str,
        arguments: A,
        behaviour: impl FnOnce(&mut HookRun) -> Result<T, Interruption>,
    ) -> CallAnswer<Result<T, CallError>> {
        let answer = into_answer(behaviour(&mut self.run));
        if let CallAnswer::Ready(result) = &answer {
            self.recorder.record(function, &arguments, result);
        }
        answer
    }
}

/// `config`
impl HookContext {
    /// Returns one option's value. None if it is unset without a default, or unknown.
    pub fn config_get(&mut self, key: &str) -> Option<OptionValue> {
        self.call("config.get", (key,), |run| run.config_value(key).cloned())
    }

    /// Returns all options that have a value, sorted.
    pub fn config_get_all(&mut self) -> Vec<(String, OptionValue)> {
        self.call("config.get-all", (), |run| {
            let set = run.config_options().filter_map(|(key, value)| Some((key.to_owned(), value?.clone())));
            set.collect()
        })
    }
}

/// `relations`
impl HookContext {
    /// Returns the relations of an endpoint, by number. None for an unknown endpoint.
    pub fn relation_ids(&mut self, endpoint: &str) -> Vec<RelationId> {
        self.call("relations.ids", (endpoint,), |run| run.relation_ids(endpoint))
    }

    /// Returns the endpoint on this unit's side.
    pub fn relation_endpoint(&mut self, relation: RelationId) -> Result<EndpointName, CallError> {
        self.call("relations.endpoint", (relation,), |run| Ok(run.relation(relation)?.endpoint.clone()))
    }

    /// Returns the application at the other end; in a peer relation the unit's own.
    pub fn relation_remote_application(
        &mut self,
        relation: RelationId,
    ) -> Result<ApplicationName, CallError> {
        self.call("relations.remote-application", (relation,), |run| {
            Ok(run.relation(relation)?.remote_application.clone())
        })
    }

    /// Returns the remote units that this unit has been told of, sorted.
    pub fn relation_members(&mut self, relation: RelationId) -> Result<Vec<UnitName>, CallError> {
        self.call("relations.members", (relation,), |run| {
            Ok(run.members(run.relation(relation)?).into_iter().collect())
        })
    }

    /// Returns a whole bag.
    pub fn relation_get(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
    ) -> CallAnswer<Result<Settings, CallError>> {
        self.leader_call("relations.get", (relation, bag), |run| run.bag(now, relation, bag))
    }

    /// Returns one value of a bag.
    pub fn relation_get_value(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: &BagSelector,
        key: &str,
    ) -> CallAnswer<Result<Option<String>, CallError>> {
        self.leader_call("relations.get-value", (relation, bag, key), |run| {
            run.bag_value(now, relation, bag, key)
        })
    }

    /// Writes to an own bag, all or nothing. An empty value deletes its key. Of a key that is given twice the
    /// last value counts.
    pub fn relation_set(
        &mut self,
        now: CallTime,
        relation: RelationId,
        bag: OwnBag,
        changes: &[(String, String)],
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("relations.set", (relation, bag, changes), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.write_bag(now, relation, bag, changes.iter().cloned().collect())
        })
    }
}

/// `ports`
impl HookContext {
    /// Opens ports for some endpoints, or for all if none is named.
    pub fn open_ports(&mut self, ports: Ports, endpoints: &[String]) -> Result<(), CallError> {
        self.call("ports.open", (ports, endpoints), |run| run.open_ports(ports.range()?, endpoints))
    }

    /// Closes ports for some endpoints, or for all if none is named.
    pub fn close_ports(&mut self, ports: Ports, endpoints: &[String]) -> Result<(), CallError> {
        self.call("ports.close", (ports, endpoints), |run| run.close_ports(ports.range()?, endpoints))
    }

    /// Returns the unit's open ports, with this hook's requests.
    pub fn opened_ports(&mut self) -> Vec<OpenedPorts> {
        self.call("ports.opened", (), |run| run.opened_ports())
    }
}

/// `status`
impl HookContext {
    /// Sets the unit's status. It leaves the hook at once.
    pub fn status_set(&mut self, now: CallTime, status: CharmStatus, message: &str) -> Result<(), CallError> {
        self.call("status.set", (status, message), |run| run.set_unit_status(now, status, message))
    }

    /// Returns the unit's status.
    pub fn status_get(&mut self) -> StatusInfo<WorkloadStatus> {
        self.call("status.get", (), |run| run.unit_status())
    }

    /// Sets the application's status, which leaves the hook at once; leader only.
    pub fn status_set_application(
        &mut self,
        now: CallTime,
        status: CharmStatus,
        message: &str,
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("status.set-application", (status, message), |run| {
            run.set_application_status(now, status, message)
        })
    }

    /// Returns the status of the application and of each unit; leader only.
    pub fn status_get_application(
        &mut self,
        now: CallTime,
    ) -> CallAnswer<Result<ApplicationStatuses, CallError>> {
        self.leader_call("status.get-application", (), |run| run.application_status(now))
    }

    /// Sets the workload's version, which leaves the hook at once.
    pub fn set_application_version(&mut self, now: CallTime, version: &str) -> Result<(), CallError> {
        self.call("status.set-application-version", (version,), |run| {
            run.set_application_version(now, version)
        })
    }
}

/// `leadership`
impl HookContext {
    /// Returns true if the unit is leader, and stays so for 30 seconds from the answer.
    pub fn is_leader(&mut self, now: CallTime) -> CallAnswer<Result<bool, CallError>> {
        self.leader_call("leadership.is-leader", (), |run| run.is_leader(now))
    }

    /// Returns the leader settings.
    pub fn leader_get(&mut self) -> Settings {
        self.call("leadership.get-settings", (), |run| run.leader_settings())
    }

    /// Writes leader settings, all or nothing; leader only.
    pub fn leader_set(
        &mut self,
        now: CallTime,
        changes: &[(String, String)],
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("leadership.set-settings", (changes,), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.write_leader_settings(now, changes.iter().cloned().collect())
        })
    }
}

/// `state`
impl HookContext {
    /// Returns the value that the charm stored under a key.
    pub fn state_get(&mut self, key: &str) -> Option<String> {
        self.call("state.get", (key,), |run| run.state_value(key))
    }

    /// Returns all that the charm stored, sorted.
    pub fn state_get_all(&mut self) -> Settings {
        self.call("state.get-all", (), |run| run.state())
    }

    /// Stores values, all or none. Of a key that is given twice the last value counts.
    pub fn state_set(&mut self, changes: &[(String, String)]) -> Result<(), CallError> {
        self.call("state.set", (changes,), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.set_state(changes.iter().cloned().collect())
        })
    }

    /// Deletes a key, if it is present.
    pub fn state_delete(&mut self, key: &str) -> Result<(), CallError> {
        self.call("state.delete", (key,), |run| run.delete_state(key))
    }
}

/// `network`
impl HookContext {
    /// Returns the addresses of a binding.
    pub fn network_get(
        &mut self,
        binding: &str,
        relation: Option<RelationId>,
    ) -> Result<NetworkInfo, CallError> {
        self.call("network.get", (binding, relation), |run| run.network(binding, relation))
    }
}

/// `goal-state`
impl HookContext {
    /// Returns the units that the operator wants, here and at the other ends, with their statuses.
    pub fn goal_state(&mut self) -> GoalState {
        self.call("goal-state.get", (), |run| run.goal_state())
    }
}

/// `actions`
impl HookContext {
    /// Returns all parameters of the action.
    pub fn action_params(&mut self) -> Result<Parameters, CallError> {
        self.call("actions.params", (), |run| run.action_parameters().cloned())
    }

    /// Returns one parameter, or a part of it, by its path through objects.
    pub fn action_param(&mut self, path: &str) -> Result<Option<Value>, CallError> {
        self.call("actions.param", (path,), |run| run.action_parameter(path).map(Option::<&Value>::cloned))
    }

    /// Sets results, all or none. A key is a path through objects.
    pub fn action_set(&mut self, results: &[(String, String)]) -> Result<(), CallError> {
        self.call("actions.set-results", (results,), |run| run.set_action_results(results))
    }

    /// Sends a message to the operators that follow the action. It leaves the hook at once.
    pub fn action_log(&mut self, now: CallTime, message: &str) -> Result<(), CallError> {
        self.call("actions.log", (message,), |run| run.log_action(now, message))
    }

    /// Marks the action as failed. The last message counts.
    pub fn action_fail(&mut self, message: Option<&str>) -> Result<(), CallError> {
        self.call("actions.fail", (message,), |run| run.fail_action(message))
    }
}

/// `storage`
impl HookContext {
    /// Returns the unit's instances, of one storage or of all.
    pub fn storage_list(&mut self, name: Option<&str>) -> Vec<StorageId> {
        self.call("storage.list", (name,), |run| run.storage_ids(name))
    }

    /// Returns one instance, by its id.
    pub fn storage_get(&mut self, id: &str) -> Result<MountedStorage, CallError> {
        self.call("storage.get", (id,), |run| run.storage_info(run.find_storage(id)?))
    }

    /// Requests more instances of a storage.
    pub fn storage_add(&mut self, name: &str, count: u32) -> Result<(), CallError> {
        self.call("storage.add", (name, count), |run| {
            let name = StorageName::new(name).map_err(|error| CallError::invalid(error.to_string()))?;
            run.add_storage(&[(name, count)])
        })
    }
}

/// `resources`
impl HookContext {
    /// Returns the file of a resource.
    pub fn resource_get(&mut self, name: &str) -> CallAnswer<Result<ResourceFile, CallError>> {
        self.leader_call("resources.get", (name,), |run| run.resource(name))
    }
}

/// `pebble`
impl HookContext {
    /// Refuses the connection: no container has a running Pebble.
    pub fn pebble_connect(&mut self, container: &str) -> Result<(), CallError> {
        self.call("pebble.connect", (container,), |_| Err(pebble::nobody_listens(container)))
    }

    /// Returns the error that answers a request to the Pebble of a container.
    pub fn pebble_exchange(&mut self, container: &str, method: &str, target: &str) -> CallError {
        self.call("pebble.exchange", (container, method, target), |_| pebble::nobody_listens(container))
    }
}

/// `events`
impl HookContext {
    /// Requests a later event, and returns its number.
    pub fn emit_later(
        &mut self,
        now: CallTime,
        later: &LaterEvent,
    ) -> CallAnswer<Result<EventId, CallError>> {
        self.leader_call("events.emit-later", (later,), |run| {
            run.check_call(later.name.len() + later.data.as_ref().map_or(0, String::len))?;
            run.emit_later(now, later)
        })
    }

    /// Cancels a later event.
    pub fn cancel_event(&mut self, id: EventId) -> Result<(), CallError> {
        self.call("events.cancel", (id,), |run| run.cancel_event(id))
    }

    /// Returns the unit's pending events, by number.
    pub fn pending_events(&mut self) -> Vec<(EventId, PendingEvent)> {
        self.call("events.pending", (), |run| {
            run.pending_events().into_iter().map(|(id, event)| (id, event.clone())).collect()
        })
    }
}

/// `identity` and `log`
impl HookContext {
    /// Returns a subordinate's principal.
    pub fn principal_unit(&mut self) -> Option<UnitName> {
        self.call("identity.principal-unit", (), |run| run.snapshot.own().principal.clone())
    }

    /// Returns the model's name.
    pub fn model_name(&mut self) -> String {
        self.call("identity.model-name", (), |run| run.snapshot.model().name.to_string())
    }

    /// Returns the model's UUID.
    pub fn model_uuid(&mut self) -> String {
        self.call("identity.model-uuid", (), |run| run.snapshot.model().uuid.to_string())
    }

    /// Returns the machine's number.
    pub fn machine_id(&mut self) -> String {
        self.call("identity.machine-id", (), |run| run.snapshot.machine().id.to_string())
    }

    /// Returns the machine's zone; may be empty.
    pub fn availability_zone(&mut self) -> String {
        self.call("identity.availability-zone", (), |run| run.snapshot.machine().availability_zone.clone())
    }

    /// Returns Periapt's version.
    pub fn version(&mut self) -> &'static str {
        self.call("identity.version", (), |_| env!("CARGO_PKG_VERSION"))
    }

    /// Returns the unit's address in its network.
    pub fn private_address(&mut self) -> Result<String, CallError> {
        self.call("identity.private-address", (), |run| Ok(run.private_address()?.to_owned()))
    }

    /// Returns the unit's public address.
    pub fn public_address(&mut self) -> Result<String, CallError> {
        self.call("identity.public-address", (), |run| Ok(run.public_address()?.to_owned()))
    }

    /// Writes one line to the unit's log, at once.
    pub fn log(&mut self, now: CallTime, level: LogLevel, message: &str) {
        self.call("log.write", (level, message), |run| run.log(now, level, message));
    }
}
