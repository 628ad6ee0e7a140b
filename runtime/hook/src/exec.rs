//! A hook tool that an operator runs in a hook context of the unit (`hook-model.md` C-9). No guest is needed for that:
//! the tool is asked directly, and what it leaves is what an action leaves.

use periapt_host_api::{RelationId, UnitName, event::RelationContext, exec::ExecRequest};

use crate::{Answer, CallTime, HookContext, OutputStream, ToolOutput, run::HookRun, tools};

/// What a shell exits with that finds no such command.
const NOT_FOUND: u8 = 127;

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
    /// Runs the tool that the context's task asks for. Its exit code is a result and no error: what it asked for is
    /// committed all the same, and what it printed is kept as an action's output is.
    pub fn exec(&mut self, now: CallTime) -> Answer<Result<u8, ExecFailure>> {
        let request = match self.run.exec_request() {
            Ok(request) => request,
            Err(failure) => return Answer::Ready(Err(failure)),
        };
        let Some((tool, arguments)) = request.command.split_first() else {
            return Answer::Ready(Err(ExecFailure::NoTask));
        };
        if !tools::is_hook_tool(tool) {
            let stderr = format!("ERROR there is no shell in a sandbox: {tool:?} is no hook tool\n");
            return Answer::Ready(Ok(self.captured(ToolOutput {
                exit_code: NOT_FOUND,
                stdout: String::new(),
                stderr,
            })));
        }
        match self.run_tool(now, tool, arguments, None) {
            Answer::Ready(output) => Answer::Ready(Ok(self.captured(output))),
            other => other.map(|output| Ok(output.exit_code)),
        }
    }

    fn captured(&mut self, output: ToolOutput) -> u8 {
        self.capture_output(OutputStream::Stdout, output.stdout.as_bytes());
        self.capture_output(OutputStream::Stderr, output.stderr.as_bytes());
        output.exit_code
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

    /// What the task asks for; from here on the run is about its relation.
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
