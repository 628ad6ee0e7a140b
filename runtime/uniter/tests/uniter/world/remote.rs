//! The other units. Their agents run them as far as a test allows.

use periapt_host_api::{
    RelationId, UnitName,
    command::{Answer, Command, Placement},
    relation::{BagKey, BagOwner},
    status::Life,
};
use periapt_lab::{Claims, Lab, LabError};

use super::{HOST, MAX_STEPS, World, charm, model::PEER};

/// The agent of the other applications' units. It claims leadership for them.
const FAR: &str = "far";

/// The other model and its agent.
const ABROAD: &str = "prod";
const ABROAD_AGENT: &str = "there";

impl World {
    /// Deploys an application for a relation to `a`.
    pub(crate) fn application_for(&mut self, name: &str) {
        let deployed = self.lab.state().unwrap().application(&name.parse().unwrap()).is_some();
        if deployed || self.abroad.contains_key(name) {
            return;
        }
        self.agent(FAR);
        self.change(|lab| lab.deploy_to(name, &charm::remote(), 0, FAR));
    }

    /// Deploys an application in another model, which offers it.
    #[track_caller]
    pub(crate) fn offer_from_abroad(&mut self, remote: &str) {
        let here = self.lab.model();
        let there = self.change(|lab| lab.add_model(ABROAD));
        self.abroad.insert(remote.to_owned(), there);
        self.agent(ABROAD_AGENT);
        self.change(|lab| {
            lab.deploy_to(remote, &charm::remote(), 0, ABROAD_AGENT)?;
            lab.offer(remote, &["remote"])?;
            lab.switch(here);
            lab.consume(&format!("{ABROAD}.{remote}"))
        });
    }

    /// Relates an endpoint of `a` to an application that another model offers.
    #[track_caller]
    pub(crate) fn relate_across(&mut self, own: &str, remote: &str) -> RelationId {
        self.offer_from_abroad(remote);
        self.relate(own, remote)
    }

    /// Suspends or resumes the relation in the offering model.
    #[track_caller]
    pub(crate) fn suspend(&mut self, remote: &str, suspended: bool) {
        self.within(remote, |lab| {
            let relation = last_relation(lab)?;
            lab.command(&match suspended {
                true => Command::SuspendRelation { relation, message: String::new() },
                false => Command::ResumeRelation { relation },
            })
        });
    }

    /// Relates two other applications. The first has its unit on the agent of `a/0`.
    #[track_caller]
    pub(crate) fn relate_others(&mut self) -> RelationId {
        self.change(|lab| lab.deploy_to("b", &charm::remote(), 1, HOST));
        self.application_for("c");
        self.ensure("c/0");
        let id = self.change(|lab| lab.integrate("b:provided", "c:remote"));
        for unit in ["b/0", "c/0"] {
            self.steps_of(unit, |world| world.has_member(id, unit));
        }
        id
    }

    /// Lets a unit enter the scope of the relation on an endpoint of `a`.
    #[track_caller]
    pub(crate) fn join(&mut self, endpoint: &str, unit: &str) {
        let id = self.id(endpoint);
        self.ensure(unit);
        self.steps_of(unit, |world| world.has_member(id, unit));
    }

    /// Lets a unit leave that scope, because the relation is ending or an operator removes the
    /// unit.
    #[track_caller]
    pub(crate) fn leave(&mut self, endpoint: &str, unit: &str) {
        let id = self.id(endpoint);
        if self.is_open(endpoint) {
            self.remove(unit);
        }
        self.steps_of(unit, |world| !world.has_member(id, unit));
    }

    /// Removes another unit as an operator, without running its agent.
    #[track_caller]
    pub(crate) fn remove(&mut self, unit: &str) {
        self.within(application_of(unit), |lab| lab.remove_unit(unit));
    }

    /// Runs another unit until it has no due work.
    #[track_caller]
    pub(crate) fn run_to_rest(&mut self, unit: &str) {
        for _ in 0..MAX_STEPS {
            if !self.within(application_of(unit), |lab| lab.step(unit)) {
                return;
            }
        }
        panic!("{unit} never rests");
    }

    /// Writes a new value to the bag of a unit, or by the leader to that of an application.
    #[track_caller]
    pub(crate) fn write(&mut self, endpoint: &str, owner: &str) {
        self.writes += 1;
        let value = self.writes.to_string();
        self.write_key(endpoint, owner, "n", &value);
    }

    #[track_caller]
    pub(crate) fn write_key(&mut self, endpoint: &str, owner: &str, key: &str, value: &str) {
        let id = self.id_for(endpoint, application_of(owner));
        let unit = match owner.contains('/') {
            true => owner.to_owned(),
            false => self.leader_of(owner).unwrap().to_string(),
        };
        self.within(application_of(owner), |lab| {
            let mut hand = lab.manual_unit(&unit)?;
            match owner.contains('/') {
                true => hand.write(id, &[(key, value)]),
                false => hand.write_application(id, &[(key, value)]),
            }
            .map(|_| ())
        });
    }

    /// Returns the leader of an application.
    pub(crate) fn leader_of(&mut self, application: &str) -> Option<UnitName> {
        self.looking_at(application, |lab| {
            let found = lab.state().unwrap().application(&application.parse().unwrap());
            found.and_then(|found| found.leader.as_ref()).map(|leader| leader.unit.clone())
        })
    }

    /// Writes to the application's leader settings as the leader.
    #[track_caller]
    pub(crate) fn write_leader_settings(&mut self) {
        self.writes += 1;
        let value = self.writes.to_string();
        let leader = self.application().leader.clone().unwrap();
        let unit = leader.unit.to_string();
        if leader.unit != self.unit {
            self.run_to_rest(&unit);
        }
        self.change(|lab| {
            lab.manual_unit(&unit)?
                .commit(|commit| {
                    commit.effects.leader_settings.insert("n".to_owned(), value);
                    commit.leader_term = Some(leader.term);
                })
                .map(|_| ())
        });
    }

    /// Restores a unit's bag to an earlier version, like a backup of the controller's database.
    #[track_caller]
    pub(crate) fn restore_bag(&mut self, endpoint: &str, unit: &str, version: u64) {
        let key = BagKey { relation: self.id(endpoint), owner: BagOwner::Unit(unit.parse().unwrap()) };
        self.change(|lab| lab.alter_bag(&key, |bag| bag.version = version));
    }

    /// Returns the version of a unit's bag.
    #[track_caller]
    pub(crate) fn version(&self, endpoint: &str, unit: &str) -> u64 {
        let key = BagKey { relation: self.id(endpoint), owner: BagOwner::Unit(unit.parse().unwrap()) };
        self.view.bags[&key].version
    }

    /// Adds units until this one exists.
    #[track_caller]
    pub(super) fn ensure(&mut self, unit: &str) {
        let application = application_of(unit);
        while !self.exists(unit) {
            let added = self.add_unit(application);
            assert!(added.number() <= number_of(unit), "{unit} was removed");
        }
    }

    /// Returns another living unit of the application, added if needed.
    pub(crate) fn another(&mut self) -> UnitName {
        let unit = self.unit.clone();
        self.another_than(&unit)
    }

    /// Returns a living unit of `a` other than this one, added if needed.
    pub(super) fn another_than(&mut self, unit: &UnitName) -> UnitName {
        let application = self.unit.application().clone();
        let found = {
            let mut units = self.lab.state().unwrap().units_of(&application);
            let another = units.find(|found| found.name != *unit && found.life == Life::Alive);
            another.map(|found| found.name.clone())
        };
        match found {
            Some(found) => found,
            None => self.add_unit(application.as_str()),
        }
    }

    /// Adds a unit on the agent of its application, or for `a` on another agent than that of the
    /// test's unit.
    #[track_caller]
    pub(crate) fn add_unit(&mut self, application: &str) -> UnitName {
        let agent = match (application, self.abroad.contains_key(application)) {
            (_, true) => ABROAD_AGENT,
            ("a", _) => PEER,
            _ => FAR,
        };
        self.add_unit_on(application, agent)
    }

    /// Adds a unit of `a` on the agent of the test's unit.
    #[track_caller]
    pub(crate) fn add_beside(&mut self) -> UnitName {
        self.add_unit_on("a", HOST)
    }

    #[track_caller]
    fn add_unit_on(&mut self, application: &str, agent: &str) -> UnitName {
        self.agent(agent);
        let add = Command::AddUnits {
            application: application.parse().unwrap(),
            count: 1,
            placement: vec![Placement::Agent(agent.parse().unwrap())],
            attach_storage: Vec::new(),
        };
        match self.within(application, |lab| lab.command(&add)) {
            Answer::Units { units } => units[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns true if the test's model has a unit.
    pub(crate) fn has_unit(&self, unit: &str) -> bool {
        self.lab.unit(unit).is_ok()
    }

    /// Returns true if the model of a unit's application has the unit.
    fn exists(&mut self, unit: &str) -> bool {
        self.looking_at(application_of(unit), |lab| lab.unit(unit).is_ok())
    }

    /// Starts an agent if needed. An agent with units of `a` makes no claims by itself.
    fn agent(&mut self, name: &str) {
        if self.lab.mirror(name).is_ok() {
            return;
        }
        self.change(|lab| lab.add_agent(name));
        if name == PEER {
            self.change(|lab| lab.set_claims(name, Claims::Unsent));
        }
    }

    pub(crate) fn has_member(&self, relation: RelationId, unit: &str) -> bool {
        let state = self.lab.state().unwrap();
        state.membership(&relation, &unit.parse().unwrap()).is_some()
    }

    /// Runs another unit until a condition holds.
    #[track_caller]
    pub(crate) fn steps_of(&mut self, unit: &str, wanted: impl Fn(&Self) -> bool) {
        for _ in 0..MAX_STEPS {
            if wanted(self) {
                return;
            }
            let acted = self.within(application_of(unit), |lab| lab.step(unit));
            assert!(acted || wanted(self), "{unit} rests before that");
        }
        panic!("{unit} never comes to that");
    }

    /// Returns the relation's id in the model of an application.
    #[track_caller]
    fn id_for(&mut self, endpoint: &str, application: &str) -> RelationId {
        match self.abroad.contains_key(application) {
            true => self.looking_at(application, last_relation).unwrap(),
            false => self.id(endpoint),
        }
    }

    /// Calls a function in the model of an application.
    #[track_caller]
    fn within<T>(&mut self, application: &str, act: impl FnOnce(&mut Lab) -> Result<T, LabError>) -> T {
        let here = self.lab.model();
        let model = self.abroad.get(application).copied().unwrap_or(here);
        self.change(|lab| {
            lab.switch(model);
            let done = act(lab);
            lab.switch(here);
            done
        })
    }

    /// Does the same without a change.
    fn looking_at<T>(&mut self, application: &str, look: impl FnOnce(&Lab) -> T) -> T {
        let here = self.lab.model();
        self.lab.switch(self.abroad.get(application).copied().unwrap_or(here));
        let seen = look(&self.lab);
        self.lab.switch(here);
        seen
    }
}

/// Returns the newest relation of the current model.
fn last_relation(lab: &Lab) -> Result<RelationId, LabError> {
    let ids = lab.state()?.relations().map(|relation| relation.id);
    Ok(ids.max().unwrap())
}

fn number_of(unit: &str) -> u32 {
    unit.parse::<UnitName>().unwrap().number()
}

fn application_of(owner: &str) -> &str {
    owner.split_once('/').map_or(owner, |(application, _)| application)
}
