//! A script that an operator runs in a hook context of the unit (`hook-model.md` C-9). No guest is needed for that: its
//! hook tools are asked directly, and what it leaves is what an action leaves.

use periapt_host_api::{RelationId, UnitName, event::RelationContext, exec::ExecRequest};

use crate::{HookContext, run::HookRun};

/// What a run is about that its event does not say.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    relation: RelationContext,
    remote_unit: Option<UnitName>,
}

/// Why nothing could be run at all: the one case in which nothing is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecFailure {
    /// The task says nothing that could be run.
    #[error(transparent)]
    Request(#[from] periapt_host_api::exec::ExecError),
    /// The context is no task's.
    #[error("not running an action")]
    NoTask,
    /// The relation is none of the unit's.
    #[error("unable to find relation id: {0}")]
    UnknownRelation(RelationId),
    /// The unit was told of no such unit in the relation.
    #[error("no remote unit found: {0}")]
    UnknownRemoteUnit(UnitName),
    /// Nobody says which unit is meant, and there are several.
    #[error("unable to determine remote-unit, please disambiguate: [{}]", list(.0))]
    AmbiguousRemoteUnit(Vec<UnitName>),
    /// Nobody says which unit is meant, and there is none.
    #[error("no remote unit found for relation id: {0}")]
    EmptyRelation(RelationId),
}

fn list(units: &[UnitName]) -> String {
    units.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl HookContext {
    /// The script that the context's task asks for; from here on the run is about the relation that it names. The
    /// script's exit code is a result and no error: what it asked for is committed all the same.
    ///
    /// # Errors
    /// [`ExecFailure`]
    pub fn begin_exec(&mut self) -> Result<ExecRequest, ExecFailure> {
        self.run.exec_request()
    }
}

impl HookRun {
    /// The relation that the run is about.
    pub(crate) fn hook_relation(&self) -> Option<&RelationContext> {
        self.subject.as_ref().map(|subject| &subject.relation).or_else(|| self.event.relation())
    }

    /// The remote unit that the run is about.
    pub(crate) fn hook_remote_unit(&self) -> Option<&UnitName> {
        match &self.subject {
            Some(subject) => subject.remote_unit.as_ref(),
            None => self.event.remote_unit(),
        }
    }

    fn exec_request(&mut self) -> Result<ExecRequest, ExecFailure> {
        let parameters = self.action_parameters().map_err(|_| ExecFailure::NoTask)?;
        let request = ExecRequest::of_parameters(parameters)?;
        if let Some(id) = request.relation {
            self.subject = Some(self.exec_subject(id, request.remote_unit.as_ref())?);
        }
        Ok(request)
    }

    fn exec_subject(&self, id: RelationId, named: Option<&UnitName>) -> Result<Subject, ExecFailure> {
        let relation = self.relation(id).map_err(|_| ExecFailure::UnknownRelation(id))?;
        let members: Vec<UnitName> = self.members(relation).into_iter().collect();
        let remote_unit = match (named, members.as_slice()) {
            (Some(unit), members) if members.contains(unit) => unit.clone(),
            (Some(unit), _) => return Err(ExecFailure::UnknownRemoteUnit(unit.clone())),
            (None, [only]) => only.clone(),
            (None, []) => return Err(ExecFailure::EmptyRelation(id)),
            (None, _) => return Err(ExecFailure::AmbiguousRemoteUnit(members)),
        };
        let relation = RelationContext {
            endpoint: relation.endpoint.clone(),
            relation: id,
            remote_application: relation.remote_application.clone(),
        };
        Ok(Subject { relation, remote_unit: Some(remote_unit) })
    }
}
