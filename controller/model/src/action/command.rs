//! Requests to run and to cancel actions (`docs/hook-model.md` 1.13, 6.3).

use std::{borrow::Cow, collections::BTreeMap};

use periapt_host_api::{
    ActionOperationId, Digest, Refusal, TaskId, UnitName,
    action::{
        ActionReceiver, EnqueueOperation, EnqueuedOperation, EnqueuedTask, MAX_PARAMETER_BYTES,
        MAX_RECEIVERS, Parameters, TaskStatus,
    },
    charm::{ActionMeta, ParametersError},
    command::{Answer, CommandResult},
    exec::{self, ExecRequest},
    name::MAX_NAME_LENGTH,
    problem::ErrorCode,
    schema::ValidationBudget,
    size,
    status::Life,
};

use crate::{
    entity::{ActionOperation, SequenceKey, Task},
    transaction::Transaction,
    unit::workloads::status::check_container,
};

/// The most open tasks of one unit. The agent holds all of them in memory.
const MAX_OPEN_TASKS: usize = 1_000;

/// The message of a cancelled task.
const CANCELLED: &str = "cancelled by an operator";

/// Enqueues one task for each receiver that can run the action. Any other receiver gets an error of its own and does
/// not stop the rest. Parameters are completed and checked first (M-12).
pub(crate) fn enqueue(tx: &mut Transaction<'_>, request: &EnqueueOperation) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    check_request(request)?;
    let id = ActionOperationId(next_number(tx));
    let mut tasks = Vec::new();
    let mut results = Vec::new();
    let mut completed = Completed::default();
    for receiver in &request.receivers {
        let task = new_task(tx, id, receiver, request, &mut completed);
        if let Ok(task) = &task {
            tasks.push((task.id, task.unit.clone()));
            tx.put(task.clone());
        }
        let task = task.map(|task| (task.id, task.unit));
        results.push(EnqueuedTask { receiver: receiver.clone(), task: CommandResult::from(task) });
    }
    if !tasks.is_empty() {
        let fail: Vec<&str> = results
            .iter()
            .filter_map(|result| match &result.task {
                CommandResult::Ok(_) => None,
                CommandResult::Error(refusal) => Some(refusal.message.as_str()),
            })
            .collect();
        tx.put(ActionOperation {
            id,
            summary: summary(&request.action, tasks.iter().map(|(_, unit)| unit)),
            fail: fail.join("\n"),
            enqueued: tx.now(),
            tasks: tasks.into_iter().map(|(id, _)| id).collect(),
        });
    }
    Ok(Answer::Operation(EnqueuedOperation { id, tasks: results }))
}

/// The parameters of one request, completed and checked once for each charm, however many units run it.
#[derive(Default)]
struct Completed {
    budget: ValidationBudget,
    of: BTreeMap<Option<Digest>, Result<Parameters, ParametersError>>,
}

impl Completed {
    fn parameters(
        &mut self,
        charm: Option<Digest>,
        meta: &ActionMeta,
        given: &Parameters,
    ) -> Result<Parameters, Refusal> {
        let Self { budget, of } = self;
        let completed = of.entry(charm).or_insert_with(|| meta.complete(given, budget));
        completed.clone().map_err(|error| Refusal::bad_request(error.to_string()))
    }
}

fn check_request(request: &EnqueueOperation) -> Result<(), Refusal> {
    let quota = |text: String| Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    let count = request.receivers.len();
    if count == 0 {
        return Err(Refusal::bad_request("an action needs a unit to run on"));
    }
    if count > MAX_RECEIVERS {
        return quota(format!("{count} units at once are too many, at most {MAX_RECEIVERS} are allowed"));
    }
    if let Some(group) = &request.turns.execution_group
        && (group.is_empty() || group.len() > MAX_NAME_LENGTH)
    {
        let bytes = group.len();
        return Err(Refusal::bad_request(format!(
            "the name of an execution group takes 1 to {MAX_NAME_LENGTH} bytes, not {bytes}"
        )));
    }
    let bytes = size::of_json(&request.parameters);
    if bytes > MAX_PARAMETER_BYTES {
        return quota(format!(
            "the parameters are {bytes} bytes long, at most {MAX_PARAMETER_BYTES} are allowed"
        ));
    }
    Ok(())
}

/// Returns the next number. Operations and tasks are numbered together, from 1.
fn next_number(tx: &mut Transaction<'_>) -> u64 {
    let number = tx.state.next(&SequenceKey::Task).max(1);
    tx.put(crate::entity::Sequence { key: SequenceKey::Task, next: number.saturating_add(1) });
    number
}

fn new_task(
    tx: &mut Transaction<'_>,
    operation: ActionOperationId,
    receiver: &ActionReceiver,
    request: &EnqueueOperation,
    completed: &mut Completed,
) -> Result<Task, Refusal> {
    let unit = receiving_unit(tx, receiver)?;
    let (charm, meta) = action_of(tx, &unit, request)?;
    let parameters = completed.parameters(charm, &meta, &request.parameters)?;
    let group = meta.group(&request.turns);
    if tx.state.open_task_count(&unit) >= MAX_OPEN_TASKS {
        return Err(Refusal::new(
            ErrorCode::QuotaExceeded,
            format!("{MAX_OPEN_TASKS} tasks wait for unit {unit:?} already"),
        ));
    }
    Ok(Task {
        id: TaskId(next_number(tx)),
        operation,
        unit,
        action: request.action.clone(),
        parameters,
        group,
        status: TaskStatus::Pending,
        message: String::new(),
        enqueued: tx.now(),
        started: None,
        completed: None,
        messages: 0,
        message_bytes: 0,
        result_bytes: 0,
    })
}

fn receiving_unit(tx: &Transaction<'_>, receiver: &ActionReceiver) -> Result<UnitName, Refusal> {
    let unit = match receiver {
        ActionReceiver::Unit(unit) => unit.clone(),
        ActionReceiver::Leader(name) => match &tx.application(name)?.leader {
            Some(leader) => leader.unit.clone(),
            None => {
                let text = format!("could not determine leader for {:?}", name.as_str());
                return Err(Refusal::not_found(text));
            }
        },
    };
    match tx.unit(&unit)?.life {
        Life::Dead => Err(Refusal::not_alive(format!("unit {unit:?} is dead"))),
        Life::Alive | Life::Dying => Ok(unit),
    }
}

/// Returns the declaration of an action by the charm that a unit runs or will run first, and that charm's digest. All
/// units can run `exec`, whatever their charm.
fn action_of<'a>(
    tx: &Transaction<'a>,
    unit: &UnitName,
    request: &EnqueueOperation,
) -> Result<(Option<Digest>, Cow<'a, ActionMeta>), Refusal> {
    let action = request.action.as_str();
    if action == exec::ACTION {
        let asked = ExecRequest::of_parameters(&request.parameters)
            .map_err(|error| Refusal::bad_request(error.to_string()))?;
        if let Some(container) = &asked.container {
            let found = tx.unit(unit)?;
            check_container(tx.root, &tx.state, &found, container)?;
        }
        return Ok((None, Cow::Owned(exec::meta())));
    }
    let digest = charm_of(tx, unit)?;
    let meta = tx.root.charm(&digest).and_then(|charm| charm.meta.actions.get(action));
    let meta =
        meta.ok_or_else(|| Refusal::not_found(format!("action {action:?} not defined on unit {unit:?}")))?;
    Ok((Some(digest), Cow::Borrowed(meta)))
}

/// Returns the charm that a unit runs or will run first.
fn charm_of(tx: &Transaction<'_>, unit: &UnitName) -> Result<Digest, Refusal> {
    Ok(match tx.unit(unit)?.record.charm {
        Some(charm) => charm.digest,
        None => tx.application(unit.application())?.charm.digest,
    })
}

fn summary<'a>(action: &str, units: impl Iterator<Item = &'a UnitName>) -> String {
    let tags: Vec<String> =
        units.map(|unit| format!("unit-{}-{}", unit.application(), unit.number())).collect();
    format!("{action} run on {}", tags.join(","))
}

/// Cancels a task that waits, and tells the agent of one that runs to stop it.
pub(crate) fn cancel(tx: &mut Transaction<'_>, id: TaskId) -> Result<Answer, Refusal> {
    let about = format!("task {id}");
    let Some(task) = tx.state.task(&id).cloned() else {
        return Err(Refusal::not_found(format!("task \"{id}\" not found")).about(about));
    };
    let status = match task.status {
        TaskStatus::Pending => {
            end(tx, Task::clone(&task), TaskStatus::Cancelled, CANCELLED);
            TaskStatus::Cancelled
        }
        TaskStatus::Running | TaskStatus::Aborting => {
            tx.put(Task { status: TaskStatus::Aborting, ..Task::clone(&task) });
            TaskStatus::Aborting
        }
        ended => {
            return Err(Refusal::conflict(format!("task \"{id}\" is {ended} already")).about(about));
        }
    };
    Ok(Answer::Task { id, status })
}

/// Ends a task. What a command in a container read is forgotten.
pub(crate) fn end(tx: &mut Transaction<'_>, mut task: Task, status: TaskStatus, message: &str) {
    if task.action == exec::ACTION {
        exec::forget_stdin(&mut task.parameters);
    }
    let completed = Some(tx.now());
    tx.put(Task { status, message: message.to_owned(), completed, ..task });
}
