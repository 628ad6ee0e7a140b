//! Commands of operators, and scripts for charms.

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, Digest, RelationId, UnitName,
    command::{
        Answer, Caller, Command, ControllerCommand, Deploy, EndpointSelector, Placement, RefreshWith,
        RelationSelector, ResolveMode,
    },
    resource::ResourceUpload,
    storage::UnitStorage,
};
use periapt_model::{Input, Output, UploadedResource};

use super::Lab;
use crate::{Action, LabCharm, LabError, transport::transported};

impl Lab {
    /// Submits any command of an operator.
    ///
    /// # Errors
    /// The refusal.
    pub fn command(&mut self, command: &Command) -> Result<Answer, LabError> {
        let input = Input::Model(self.model, transported("a command", command)?);
        match self.controller.submit(self.clock, &Caller::User(self.owner.clone()), &input)? {
            Output::Answer(answer) => Ok(answer),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Submits a command about a whole model.
    ///
    /// # Errors
    /// The refusal.
    pub fn control(&mut self, command: &ControllerCommand) -> Result<Answer, LabError> {
        let input = Input::Controller(transported("a command", command)?);
        match self.controller.submit(self.clock, &Caller::User(self.owner.clone()), &input)? {
            Output::Answer(answer) => Ok(answer),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Offers endpoints of an application to other models, under its own name.
    ///
    /// # Errors
    /// The refusal.
    pub fn offer(&mut self, application: &str, endpoints: &[&str]) -> Result<(), LabError> {
        let endpoints = endpoints.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
        let application = application.parse()?;
        self.command(&Command::Offer { application, endpoints, name: None, description: None }).map(|_| ())
    }

    /// Consumes an offer, `[USER/]MODEL.OFFER`.
    ///
    /// # Errors
    /// The refusal.
    pub fn consume(&mut self, offer: &str) -> Result<(), LabError> {
        let offer = offer.parse().map_err(|error| LabError::OtherAnswer(format!("{error}")))?;
        self.command(&Command::Consume { offer, application: None }).map(|_| ())
    }

    /// Uploads a charm. A second upload replaces the code, also on agents.
    ///
    /// # Errors
    /// The refusal.
    pub fn upload(&mut self, charm: &LabCharm) -> Result<(), LabError> {
        let input = Input::UploadCharm(charm.uploaded());
        self.controller.submit(self.clock, &Caller::User(self.owner.clone()), &input)?;
        self.charms.insert(charm.digest(), charm.clone());
        Ok(())
    }

    /// Deploys a charm with some units.
    ///
    /// # Errors
    /// The refusal.
    pub fn deploy(&mut self, application: &str, charm: &LabCharm, units: u32) -> Result<(), LabError> {
        self.deploy_on(application, charm, units, None)
    }

    /// Deploys a charm with all units on one agent.
    ///
    /// # Errors
    /// The refusal.
    pub fn deploy_to(
        &mut self,
        application: &str,
        charm: &LabCharm,
        units: u32,
        agent: &str,
    ) -> Result<(), LabError> {
        self.deploy_on(application, charm, units, Some(agent.parse()?))
    }

    fn deploy_on(
        &mut self,
        application: &str,
        charm: &LabCharm,
        units: u32,
        agent: Option<AgentName>,
    ) -> Result<(), LabError> {
        self.upload(charm)?;
        let name = match application {
            "" => charm.application()?,
            name => name.parse()?,
        };
        let placement = agent.map(|agent| (0..units).map(|_| Placement::Agent(agent.clone())).collect());
        self.command(&Command::Deploy(Deploy {
            application: Some(name),
            placement: placement.unwrap_or_default(),
            ..Deploy::of(charm.digest(), units)
        }))?;
        Ok(())
    }

    /// Uploads content, attaches it to a resource, and returns its revision. A laboratory keeps the digest alone.
    ///
    /// # Errors
    /// The refusal.
    pub fn attach_resource(
        &mut self,
        application: &str,
        resource: &str,
        content: &[u8],
    ) -> Result<u64, LabError> {
        let digest = Digest::of(content);
        let uploaded = UploadedResource { digest, size: content.len() as u64, image: None, parts: None };
        let input = Input::UploadResource(uploaded);
        self.controller.submit(self.clock, &Caller::User(self.owner.clone()), &input)?;
        let upload = ResourceUpload { digest, filename: None, reference: None };
        let (application, resource) = (application.parse()?, resource.parse()?);
        match self.command(&Command::AttachResource { application, resource, upload })? {
            Answer::Resource { revision, .. } => Ok(revision),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Adds units.
    ///
    /// # Errors
    /// The refusal.
    pub fn add_units(&mut self, application: &str, count: u32) -> Result<Vec<UnitName>, LabError> {
        self.add_units_on(application, count, Vec::new())
    }

    /// Adds a unit on an agent, to which it stays bound.
    ///
    /// # Errors
    /// The refusal.
    pub fn add_unit_to(&mut self, application: &str, agent: &str) -> Result<Vec<UnitName>, LabError> {
        self.add_units_on(application, 1, vec![Placement::Agent(agent.parse()?)])
    }

    fn add_units_on(
        &mut self,
        application: &str,
        count: u32,
        placement: Vec<Placement>,
    ) -> Result<Vec<UnitName>, LabError> {
        let application = application.parse()?;
        match self.command(&Command::AddUnits { application, count, placement, attach_storage: vec![] })? {
            Answer::Units { units } => Ok(units),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Relates two ends, each `APPLICATION` or `APPLICATION:ENDPOINT`.
    ///
    /// # Errors
    /// The refusal.
    pub fn integrate(&mut self, first: &str, second: &str) -> Result<RelationId, LabError> {
        let (first, second) = (selector(first)?, selector(second)?);
        match self.command(&Command::Integrate { first, second, via: Vec::new() })? {
            Answer::Relation { id, .. } => Ok(id),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Removes a relation.
    ///
    /// # Errors
    /// The refusal.
    pub fn remove_relation(&mut self, relation: RelationId) -> Result<(), LabError> {
        let relation = RelationSelector::Id(relation);
        self.command(&Command::RemoveRelation { relation, force: None }).map(|_| ())
    }

    /// Removes a unit.
    ///
    /// # Errors
    /// The refusal.
    pub fn remove_unit(&mut self, unit: &str) -> Result<(), LabError> {
        self.command(&Command::RemoveUnit { unit: unit.parse()?, force: None, storage: UnitStorage::Detach })
            .map(|_| ())
    }

    /// Removes an application.
    ///
    /// # Errors
    /// The refusal.
    pub fn remove_application(&mut self, application: &str) -> Result<(), LabError> {
        let application = application.parse()?;
        self.command(&Command::RemoveApplication { application, force: None, storage: UnitStorage::Detach })
            .map(|_| ())
    }

    /// Changes the configuration of an application.
    ///
    /// # Errors
    /// The refusal.
    pub fn configure(&mut self, application: &str, settings: &[(&str, &str)]) -> Result<(), LabError> {
        let (application, set) = (application.parse()?, texts(settings));
        self.command(&Command::SetConfig { application, set, reset: Vec::new() }).map(|_| ())
    }

    /// Changes the model's configuration.
    ///
    /// # Errors
    /// The refusal.
    pub fn configure_model(&mut self, settings: &[(&str, &str)]) -> Result<(), LabError> {
        self.command(&Command::SetModelConfig { set: texts(settings), reset: Vec::new() }).map(|_| ())
    }

    /// Resolves a hook error.
    ///
    /// # Errors
    /// The refusal.
    pub fn resolve(&mut self, unit: &str, mode: ResolveMode) -> Result<(), LabError> {
        self.command(&Command::Resolve { unit: unit.parse()?, mode }).map(|_| ())
    }

    /// Refreshes an application to another charm.
    ///
    /// # Errors
    /// The refusal.
    pub fn refresh(&mut self, application: &str, charm: &LabCharm) -> Result<(), LabError> {
        self.upload(charm)?;
        let (application, with) = (application.parse()?, RefreshWith::default());
        self.command(&Command::Refresh { application, charm: charm.digest(), force: false, with }).map(|_| ())
    }

    /// Refreshes an application to another charm, even during a hook error (U-35).
    ///
    /// # Errors
    /// The refusal.
    pub fn force_refresh(&mut self, application: &str, charm: &LabCharm) -> Result<(), LabError> {
        self.upload(charm)?;
        let (application, with) = (application.parse()?, RefreshWith::default());
        self.command(&Command::Refresh { application, charm: charm.digest(), force: true, with }).map(|_| ())
    }

    /// Replaces the charm's code for one hook of one unit from now on.
    ///
    /// # Errors
    /// An invalid unit name.
    pub fn script(&mut self, unit: &str, hook: &str, actions: Vec<Action>) -> Result<(), LabError> {
        self.scripts.insert((unit.parse()?, hook.to_owned()), actions);
        Ok(())
    }

    /// Restores the charm's code for one hook of one unit, as if a failure's cause were fixed.
    ///
    /// # Errors
    /// An invalid unit name.
    pub fn unscript(&mut self, unit: &str, hook: &str) -> Result<(), LabError> {
        self.scripts.remove(&(unit.parse()?, hook.to_owned()));
        Ok(())
    }

    /// Removes all scripts.
    pub fn unscript_all(&mut self) {
        self.scripts.clear();
    }
}

fn selector(text: &str) -> Result<EndpointSelector, LabError> {
    Ok(match text.split_once(':') {
        Some((application, endpoint)) => {
            EndpointSelector { application: application.parse()?, endpoint: Some(endpoint.parse()?) }
        }
        None => EndpointSelector { application: text.parse()?, endpoint: None },
    })
}

fn texts(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
