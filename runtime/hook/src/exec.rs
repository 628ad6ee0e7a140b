//! A script that an operator runs in a hook context of the unit (`docs/hook-model.md` C-9). It needs no guest: the
//! interpreter calls hook tools directly, and the script's outcome is an action's.

mod relation;

pub(crate) use relation::ExecRelation;

use periapt_host_api::{RelationId, UnitName, event::RelationContext, exec::ExecRequest};

use crate::{HookContext, context::HookRun};

/// The reason why a script could not start: the one case in which nothing is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecFailure {
    /// The task's parameters are no valid request.
    #[error(transparent)]
    Request(#[from] periapt_host_api::exec::ExecError),
    /// The context belongs to no task.
    #[error("not running an action")]
    NoTask,
    /// The unit has no such relation.
    #[error("unable to find relation id: {0}")]
    UnknownRelation(RelationId),
    /// The unit was told of no such unit in the relation.
    #[error("no remote unit found: {0}")]
    UnknownRemoteUnit(UnitName),
    /// The request names no remote unit, and the relation has several.
    #[error("unable to determine remote-unit, please disambiguate: [{}]", list(.0))]
    AmbiguousRemoteUnit(Vec<UnitName>),
    /// The request names no remote unit, and the relation has none.
    #[error("no remote unit found for relation id: {0}")]
    EmptyRelation(RelationId),
}

fn list(units: &[UnitName]) -> String {
    units.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

impl HookContext {
    /// Returns the script of the context's task, and makes the relation that it names the run's. The script's exit code
    /// is a result and no error: its effects are committed all the same.
    ///
    /// # Errors
    /// [`ExecFailure`]
    pub fn begin_exec(&mut self) -> Result<ExecRequest, ExecFailure> {
        self.run.exec_request()
    }
}

impl HookRun {
    /// Returns the relation of the run.
    pub(crate) fn hook_relation(&self) -> Option<&RelationContext> {
        self.exec_relation.as_ref().map(|found| &found.relation).or_else(|| self.event.relation())
    }

    /// Returns the remote unit of the run.
    pub(crate) fn hook_remote_unit(&self) -> Option<&UnitName> {
        match &self.exec_relation {
            Some(found) => found.remote_unit.as_ref(),
            None => self.event.remote_unit(),
        }
    }

    fn exec_request(&mut self) -> Result<ExecRequest, ExecFailure> {
        let parameters = self.action_parameters().map_err(|_| ExecFailure::NoTask)?;
        let request = ExecRequest::of_parameters(parameters)?;
        if let Some(id) = request.relation {
            self.exec_relation = Some(self.find_exec_relation(id, request.remote_unit.as_ref())?);
        }
        Ok(request)
    }

    fn find_exec_relation(
        &self,
        id: RelationId,
        named: Option<&UnitName>,
    ) -> Result<ExecRelation, ExecFailure> {
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
        Ok(ExecRelation { relation, remote_unit: Some(remote_unit) })
    }
}
