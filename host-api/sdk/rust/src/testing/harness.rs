//! The harness: a unit that a test sets up, sends events to, and inspects.

use super::container::{Container, Serve, WorkloadRequest};
use super::declared::{Declared, Names};
use super::possible::{application_of, inconsistent};
use super::state::{Action, Attached, RelationState, State, apply, with};
use crate::bindings::periapt::charm::hook_tools;
use crate::{
    ActionEvent, Charm, Event, Failure, GoalState, HttpResponse, Level, OpenedPorts, Output, Relation,
    RelationBroken, RelationChanged, RelationDeparted, RelationJoined, Secret, SecretContent, Status, Value,
    charm,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::rc::Rc;

/// The outcome of a hook.
pub type Outcome = Result<crate::Outcome, Failure>;

/// A unit in memory that runs the hooks of the charm `C`.
pub struct Harness<C> {
    state: Option<State>,
    next_relation: u32,
    charm: PhantomData<C>,
}

impl<C: Charm> Harness<C> {
    /// Creates a unit by its name, without relations or settings. The unit does not lead.
    ///
    /// # Panics
    ///
    /// When the text is no unit's name. Every impossible state fails a test: a remote unit of another application,
    /// the unit itself among its peers, a change of a unit that has not joined.
    pub fn new(unit: &str) -> Self {
        application_of(unit);
        Self { state: Some(State::new(unit)), next_relation: 0, charm: PhantomData }
    }

    /// Sets the charm's metadata, the text of its `charmcraft.yaml` (`include_str!`). From then on, a test panics if
    /// it sets up an option, a relation, storage, a resource or an action that the charm does not declare.
    pub fn declares(&mut self, charmcraft: &str) -> &mut Self {
        self.state_mut().declared = Declared::read(charmcraft);
        self
    }

    /// Makes the unit its application's leader, or not.
    pub fn leader(&mut self, leads: bool) -> &mut Self {
        self.state_mut().leader = leads;
        self
    }

    /// Makes the unit a subordinate beside this principal.
    pub fn principal(&mut self, unit: &str) -> &mut Self {
        self.state().check_principal(unit);
        self.state_mut().principal = Some(unit.to_owned());
        self
    }

    /// Sets the unit's private address. `None` means unknown.
    pub fn address(&mut self, address: Option<&str>) -> &mut Self {
        self.state_mut().address = address.map(str::to_owned);
        self
    }

    /// Sets an option, without an event.
    pub fn config(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        declared_option(key, &self.state().declared.options);
        self.state_mut().config.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the function that answers hook tools.
    pub fn tools(&mut self, mut answer: impl FnMut(&str, &[String]) -> Output + 'static) -> &mut Self {
        self.state_mut().tools = Some(Box::new(move |name, args| {
            let output = answer(name, args);
            hook_tools::Output {
                exit_code: output.code,
                stdout: output.stdout.into_bytes(),
                stderr: output.stderr.into_bytes(),
            }
        }));
        self
    }

    /// Starts a container, without an event: hooks reach its Pebble from now on. A second call leads to the same container.
    pub fn container(&mut self, name: &str) -> Container {
        self.state_mut().workloads.containers.entry(name.to_owned()).or_default().clone()
    }

    /// Starts a workload that answers requests on a port. Where it answers none, its stream ends.
    pub fn serve(
        &mut self,
        port: u16,
        answer: impl FnMut(&WorkloadRequest) -> Option<HttpResponse> + 'static,
    ) -> &mut Self {
        let serve: Serve = Box::new(answer);
        self.state_mut().workloads.ports.insert(port, Rc::new(RefCell::new(serve)));
        self
    }

    /// Adds a relation, without an event. A relation with the unit's own application is a peer relation.
    pub fn relate(&mut self, endpoint: &str, remote: &str) -> Relation {
        declared("endpoint", endpoint, &self.state().declared.endpoints);
        self.state().check_peers(self.next_relation, endpoint, remote);
        let id = self.next_relation;
        self.next_relation += 1;
        let state = RelationState {
            endpoint: endpoint.to_owned(),
            remote: remote.to_owned(),
            members: BTreeSet::new(),
            broken: false,
            units: BTreeMap::new(),
            applications: BTreeMap::new(),
        };
        self.state_mut().durable.relations.insert(id, state);
        Relation::new(id, endpoint)
    }

    /// Sets the address that the host wrote into the unit's own bag at the start of the relation. `None` means that
    /// there is none.
    pub fn relation_address(&mut self, relation: &Relation, address: Option<&str>) -> &mut Self {
        let own = self.state().unit.clone();
        self.write_unit(relation, &own, &[("ingress-address", address.unwrap_or_default())]);
        self
    }

    /// Attaches storage, such as `data/0` in a directory of the test's own, without an event.
    pub fn storage(&mut self, id: &str, location: &std::path::Path) -> &mut Self {
        declared("storage", id.split('/').next().unwrap_or(id), &self.state().declared.storage);
        self.state().check_storage(id);
        self.state_mut().storage.insert(id.to_owned(), location.display().to_string());
        self
    }

    /// Attaches a file of the test's own as the content of a resource, without an event. Each call makes a new
    /// revision. The harness does not compute the SHA-256.
    pub fn resource(&mut self, name: &str, file: &std::path::Path, sha256: &str) -> &mut Self {
        declared("resource", name, &self.state().declared.resources);
        let resources = &mut self.state_mut().resources;
        let revision = resources.get(name).map_or(1, |before| before.revision + 1);
        let attached = Attached { path: file.to_owned(), revision, sha256: sha256.to_owned() };
        resources.insert(name.to_owned(), attached);
        self
    }

    /// Returns the number of instances of a storage that the charm added.
    pub fn added_storage(&self, name: &str) -> u32 {
        self.state().durable.added_storage.get(name).copied().unwrap_or(0)
    }

    /// Grants the unit a secret of another application, without an event.
    pub fn grant_secret(&mut self, content: &[(&str, &str)]) -> Secret {
        Secret::new(self.state_mut().durable.secrets.grant(bytes(content)))
    }

    /// Adds a revision to a secret of another application, without an event.
    pub fn revise_secret(&mut self, secret: &Secret, content: &[(&str, &str)]) {
        self.state_mut().durable.secrets.revise(secret.uri(), bytes(content));
    }

    /// Revokes the unit's access to a secret of another application.
    pub fn revoke_secret(&mut self, secret: &Secret) {
        self.state_mut().durable.secrets.revoke(secret.uri());
    }

    /// Returns a secret's latest revision and its content, or `None` if the secret does not exist.
    pub fn secret(&self, secret: &Secret) -> Option<(u32, SecretContent)> {
        let kept = self.state().durable.secrets.of(secret.uri())?;
        Some((kept.latest(), kept.revisions.get(&kept.latest())?.clone().into()))
    }

    /// Returns the readers of a secret: applications and units.
    pub fn secret_readers(&self, secret: &Secret) -> Vec<String> {
        let kept = self.state().durable.secrets.of(secret.uri());
        kept.map(|kept| kept.access.keys().cloned().collect()).unwrap_or_default()
    }

    /// Runs one hook, first attempt.
    ///
    /// # Errors
    ///
    /// The charm's failure. The hook's effects are then undone, except statuses and log.
    ///
    /// # Panics
    ///
    /// When the event's relation, storage or secret does not exist: no such event would come.
    pub fn run(&mut self, event: Event) -> Outcome {
        self.state().check_event(&event);
        let before = self.state().durable.clone();
        let acts = matches!(event, Event::Action(_));
        let state = self.state_mut();
        state.ports_before = before.ports.clone();
        if let Some(action) = &mut state.action {
            action.running = acts;
        }
        let outcome = with(&mut self.state, || charm::run::<C>(&event, 1));
        match outcome {
            Ok(_) => self.state_mut().durable.secrets.commit(),
            Err(_) => self.state_mut().durable = before,
        }
        outcome
    }

    /// Brings a remote unit with its bag into view: runs `joined`, then `changed`.
    ///
    /// # Errors
    ///
    /// The failure of either hook.
    pub fn join(&mut self, relation: &Relation, unit: &str, bag: &[(&str, &str)]) -> Outcome {
        self.state().check_relation(relation);
        self.state().check_remote_unit(relation, unit);
        let app = self.remote(relation);
        let state = self.relation_mut(relation);
        state.members.insert(unit.to_owned());
        state.units.insert(unit.to_owned(), BTreeMap::new());
        self.write_unit(relation, unit, bag);
        self.run(Event::RelationJoined(RelationJoined {
            relation: relation.clone(),
            app,
            unit: unit.to_owned(),
        }))?;
        self.changed(relation, Some(unit))
    }

    /// Changes a remote unit's bag, and runs `changed`.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    pub fn change(&mut self, relation: &Relation, unit: &str, bag: &[(&str, &str)]) -> Outcome {
        self.state().check_member(relation, unit);
        self.write_unit(relation, unit, bag);
        self.changed(relation, Some(unit))
    }

    /// Changes the remote application's bag, and runs `changed`.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    pub fn change_app(&mut self, relation: &Relation, bag: &[(&str, &str)]) -> Outcome {
        self.state().check_relation(relation);
        let remote = self.remote(relation);
        let changes = owned(bag);
        apply(self.relation_mut(relation).applications.entry(remote).or_default(), &changes);
        self.changed(relation, None)
    }

    /// Takes a remote unit out of view, and runs `departed`.
    ///
    /// # Errors
    ///
    /// The hook's failure.
    pub fn depart(&mut self, relation: &Relation, unit: &str) -> Outcome {
        self.state().check_member(relation, unit);
        let app = self.remote(relation);
        self.relation_mut(relation).members.remove(unit);
        self.run(Event::RelationDeparted(RelationDeparted {
            relation: relation.clone(),
            app,
            unit: unit.to_owned(),
            departing: unit.to_owned(),
        }))
    }

    /// Ends the relation: runs `departed` for each member, then `broken`.
    ///
    /// # Errors
    ///
    /// The failure of the first hook that fails.
    pub fn end(&mut self, relation: &Relation) -> Outcome {
        self.state().check_relation(relation);
        for unit in self.relation_mut(relation).members.clone() {
            self.depart(relation, &unit)?;
        }
        let app = self.remote(relation);
        self.relation_mut(relation).broken = true;
        self.run(Event::RelationBroken(RelationBroken { relation: relation.clone(), app }))
    }

    /// Sets the goal state: the units that the operator wants. There are none by default.
    pub fn goal_state(&mut self, goal: GoalState) -> &mut Self {
        self.state_mut().goal = goal;
        self
    }

    /// Runs an action with these parameters, each as JSON text under its path (`target.dir`).
    ///
    /// # Errors
    ///
    /// The handler's failure.
    pub fn action(&mut self, name: &str, params: &[(&str, &str)]) -> Outcome {
        declared("action", name, &self.state().declared.actions);
        let params = owned(params).into_iter().collect();
        self.state_mut().action = Some(Action { params, ..Action::default() });
        self.run(Event::Action(ActionEvent { name: name.to_owned(), id: "1".to_owned() }))
    }

    /// Returns the results of the last action, by key.
    pub fn action_results(&self) -> BTreeMap<String, String> {
        self.state().action.as_ref().map(|action| action.results.clone()).unwrap_or_default()
    }

    /// Returns the progress messages of the last action.
    pub fn action_log(&self) -> &[String] {
        self.state().action.as_ref().map(|action| action.log.as_slice()).unwrap_or_default()
    }

    /// Returns the message of the last action's failure, if the charm marked it as failed.
    pub fn action_failure(&self) -> Option<&str> {
        self.state().action.as_ref()?.failed.as_deref()
    }

    /// Returns the unit's last workload status.
    pub fn status(&self) -> Option<Status> {
        self.state().status.clone()
    }

    /// Returns the application's last status.
    pub fn app_status(&self) -> Option<Status> {
        self.state().application_status.clone()
    }

    /// Returns the workload's version.
    pub fn version(&self) -> Option<String> {
        self.state().version.clone()
    }

    /// Returns the open ports.
    pub fn opened_ports(&self) -> Vec<OpenedPorts> {
        self.state().durable.ports.clone()
    }

    /// Returns the unit's stored state.
    pub fn stored(&self) -> BTreeMap<String, String> {
        self.state().durable.state.clone()
    }

    /// Returns the lines logged so far.
    pub fn log(&self) -> &[(Level, String)] {
        &self.state().log
    }

    /// Returns the unit's own bag in a relation.
    pub fn unit_bag(&self, relation: &Relation) -> BTreeMap<String, String> {
        let state = self.state();
        let relation = state.durable.relations.get(&relation.id());
        relation.and_then(|relation| relation.units.get(&state.unit)).cloned().unwrap_or_default()
    }

    /// Returns its application's bag in a relation.
    pub fn app_bag(&self, relation: &Relation) -> BTreeMap<String, String> {
        let state = self.state();
        let relation = state.durable.relations.get(&relation.id());
        relation
            .and_then(|relation| relation.applications.get(state.application()))
            .cloned()
            .unwrap_or_default()
    }

    fn changed(&mut self, relation: &Relation, unit: Option<&str>) -> Outcome {
        let app = self.remote(relation);
        self.run(Event::RelationChanged(RelationChanged {
            relation: relation.clone(),
            app,
            unit: unit.map(str::to_owned),
        }))
    }

    fn write_unit(&mut self, relation: &Relation, unit: &str, bag: &[(&str, &str)]) {
        let changes = owned(bag);
        apply(self.relation_mut(relation).units.entry(unit.to_owned()).or_default(), &changes);
    }

    pub(super) fn remote(&mut self, relation: &Relation) -> String {
        self.relation_mut(relation).remote.clone()
    }

    #[expect(clippy::expect_used, reason = "a relation comes from `relate`, and is never forgotten")]
    pub(super) fn relation_mut(&mut self, relation: &Relation) -> &mut RelationState {
        self.state_mut().durable.relations.get_mut(&relation.id()).expect("a relation of this harness")
    }

    #[expect(clippy::expect_used, reason = "the state is away only while a hook runs")]
    pub(super) fn state(&self) -> &State {
        self.state.as_ref().expect("the state is here between hooks")
    }

    #[expect(clippy::expect_used, reason = "the state is away only while a hook runs")]
    pub(super) fn state_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("the state is here between hooks")
    }
}

/// Fails the test if the charm does not declare a name, as far as its names are known.
fn declared(what: &str, name: &str, names: &Names) {
    if !Declared::has(names, name) {
        inconsistent(&format!("the charm has no {what} {name:?}"));
    }
}

fn declared_option(name: &str, names: &Names) {
    let Some(options) = names.as_ref().filter(|names| !names.contains(name)) else { return };
    let known: Vec<&str> = options.iter().map(String::as_str).collect();
    let known = match known.as_slice() {
        [] => "the charm has no options".to_owned(),
        known => format!("known are {}", known.join(", ")),
    };
    inconsistent(&format!("config: unknown option {name:?}; {known}"));
}

fn bytes(content: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    content.iter().map(|&(key, value)| (key.to_owned(), value.as_bytes().to_vec())).collect()
}

pub(super) fn owned(bag: &[(&str, &str)]) -> Vec<(String, String)> {
    bag.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}
