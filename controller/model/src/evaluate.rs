//! The one door for changes: a request reads a state and answers with writes, or with a refusal.

use periapt_host_api::{
    ModelUuid, Refusal,
    command::{Answer, Caller, Command, ControllerCommand},
};

use crate::{
    access, agent,
    changes::Changes,
    charms, command, commit, cross,
    input::{Environment, Input, Output, WorkerCommand},
    life, resource,
    root::Root,
    start,
    transaction::{Transaction, check_size},
    worker,
};

/// Evaluates one request against a state. Nothing happens but what [`Root::apply`] does with the changes.
///
/// # Errors
/// A refusal: nothing of the request happens.
pub fn evaluate(
    root: &Root,
    caller: &Caller,
    input: &Input,
    env: &Environment,
) -> Result<(Changes, Output), Refusal> {
    access::check(caller, input)?;
    match input {
        Input::Controller(ControllerCommand::AddModel { name, config }) => {
            let (changes, answer) = command::model::add(root, caller, name, config, env)?;
            check_size(&changes)?;
            Ok((changes, Output::Answer(answer)))
        }
        Input::Controller(ControllerCommand::SetModelDefaults { set, reset }) => {
            let (changes, answer) = command::model::set_defaults(root, set, reset)?;
            check_size(&changes)?;
            Ok((changes, Output::Answer(answer)))
        }
        Input::Controller(ControllerCommand::DestroyModel { model, force, storage }) => {
            let mut tx = Transaction::begin(root, env, *model)?;
            let answer = command::model::destroy(&mut tx, *force, *storage)?;
            Ok((finish(tx)?, Output::Answer(answer)))
        }
        Input::Controller(ControllerCommand::Keep(keep)) => {
            let (changes, answer) = command::kept::keep(root, keep)?;
            check_size(&changes)?;
            Ok((changes, Output::Answer(answer)))
        }
        Input::Model(model, command) => {
            let mut tx = Transaction::begin(root, env, *model)?;
            let answer = model_command(&mut tx, caller, command)?;
            Ok((finish(tx)?, Output::Answer(answer)))
        }
        Input::UploadCharm(charm) => Ok((charms::upload_charm(root, charm, env)?, Output::Done)),
        Input::UploadResource(content) => Ok((resource::upload(root, content, env), Output::Done)),
        Input::Register(name, register) => Ok((agent::register(root, name, register, env)?, Output::Done)),
        Input::Runner(model, call) => {
            let Caller::Runner { agent, .. } = caller else { return Err(access::denied()) };
            let mut tx = Transaction::begin_or_clear(root, env, *model)?;
            let answer = commit::runner_call(&mut tx, agent, call)?;
            Ok((finish(tx)?, Output::Runner(answer)))
        }
        Input::Worker(command) => Ok((worker_command(root, command, env)?, Output::Done)),
    }
}

fn finish(tx: Transaction<'_>) -> Result<Changes, Refusal> {
    tx.finish(life::secret::tidy)
}

fn model_command(tx: &mut Transaction<'_>, caller: &Caller, command: &Command) -> Result<Answer, Refusal> {
    match command {
        Command::Deploy(deploy) => command::deploy::deploy(tx, caller, deploy),
        Command::SetConfig { application, set, reset } => {
            command::application::set_config(tx, application, set, reset)
        }
        Command::SetTrust { application, trust } => command::application::set_trust(tx, application, *trust),
        Command::SetConstraints { application, constraints } => {
            command::constraints::set(tx, application, constraints)
        }
        Command::SetModelConstraints { constraints } => command::constraints::set_model(tx, constraints),
        Command::RetryProvisioning { unit } => command::constraints::retry(tx, unit),
        Command::AddUnits { application, count, placement, attach_storage } => {
            command::unit::add(tx, application, *count, placement, attach_storage)
        }
        Command::RemoveUnit { unit, force, storage } => command::unit::remove(tx, unit, *force, *storage),
        Command::RemoveApplication { application, force, storage } => {
            command::application::remove(tx, application, *force, *storage)
        }
        Command::Integrate { first, second, via } => command::integrate::integrate(tx, first, second, via),
        Command::RemoveRelation { relation, force } => {
            command::integrate::remove_relation(tx, relation, *force)
        }
        Command::SuspendRelation { relation, message } => command::offer::suspend(tx, relation, message),
        Command::ResumeRelation { relation } => command::offer::resume(tx, relation),
        Command::Offer { application, endpoints, name, description } => {
            let (name, description) = (name.as_ref(), description.as_deref());
            command::offer::offer(tx, &command::offer::Wanted { application, endpoints, name, description })
        }
        Command::RemoveOffer { offer, force } => command::offer::remove_offer(tx, offer, *force),
        Command::Consume { offer, application } => {
            command::offer::consume(tx, caller, offer, application.as_ref())
        }
        Command::RemoveSaas { application, force } => command::offer::remove_saas(tx, application, *force),
        Command::RemoveMachine { machine, force } => command::machine::remove(tx, *machine, *force),
        Command::Expose { application, endpoints } => command::network::expose(tx, application, endpoints),
        Command::Unexpose { application, endpoints } => {
            command::network::unexpose(tx, application, endpoints)
        }
        Command::AddSpace { name, subnets } => command::network::add_space(tx, name, subnets),
        Command::MoveToSpace { space, subnets } => command::network::move_to_space(tx, space, subnets),
        Command::RenameSpace { name, to } => command::network::rename_space(tx, name, to),
        Command::RemoveSpace { name } => command::network::remove_space(tx, name),
        Command::Bind { application, bindings } => command::network::bind(tx, application, bindings),
        Command::Refresh { application, charm, force, with } => {
            command::refresh::refresh(tx, caller, application, charm, *force, with)
        }
        Command::AttachResource { application, resource, upload } => {
            command::resource::attach(tx, caller, application, resource, upload)
        }
        Command::AddStorage { unit, storage } => command::storage::add(tx, unit, storage),
        Command::AttachStorage { unit, storage } => command::storage::attach(tx, unit, storage),
        Command::DetachStorage { storage, force } => command::storage::detach(tx, storage, *force),
        Command::RemoveStorage { storage, end, force } => command::storage::remove(tx, storage, *end, *force),
        Command::Resolve { unit, mode } => command::unit::resolve(tx, unit, *mode),
        Command::EnqueueOperation(request) => command::action::enqueue(tx, request),
        Command::CancelTask { task } => command::action::cancel(tx, *task),
        Command::CancelEvent { unit, event } => command::unit::cancel_event(tx, unit, *event),
        Command::AddSecret { id, name, content, description } => {
            command::secret::add(tx, *id, name, content, description)
        }
        Command::UpdateSecret { secret, content, name, description, auto_prune } => {
            let change = command::secret::Change {
                content: content.as_ref(),
                name: name.as_deref(),
                description: description.as_deref(),
                auto_prune: *auto_prune,
            };
            command::secret::update(tx, secret, &change)
        }
        Command::GrantSecret { secret, applications } => command::secret::grant(tx, secret, applications),
        Command::RevokeSecret { secret, applications } => command::secret::revoke(tx, secret, applications),
        Command::RemoveSecret { secret, revision } => command::secret::remove(tx, secret, *revision),
        Command::AddSshKeys { keys } => command::kept::add_keys(tx, keys),
        Command::RemoveSshKeys { keys } => command::kept::remove_keys(tx, keys),
        Command::SetModelConfig { set, reset } => command::model::set_config(tx, set, reset),
    }
}

fn worker_command(root: &Root, command: &WorkerCommand, env: &Environment) -> Result<Changes, Refusal> {
    let begin = |model: &ModelUuid| Transaction::begin_or_clear(root, env, *model);
    let mut tx = match command {
        WorkerCommand::Initialize { name } => return Ok(start::initialize(root, name, env)),
        WorkerCommand::AgentConnected(agent) => return Ok(agent::presence(agent, true, env)),
        WorkerCommand::AgentDisconnected(agent) => return Ok(agent::presence(agent, false, env)),
        WorkerCommand::ForgetCharm(digest) => return Ok(charms::forget_charm(root, digest)),
        WorkerCommand::ForgetResource(digest) => return Ok(resource::forget(root, digest)),
        WorkerCommand::AssignUnits(model)
        | WorkerCommand::RunWork(model, _)
        | WorkerCommand::PruneTasks(model)
        | WorkerCommand::CopyFromOthers(model)
        | WorkerCommand::WindUpModel(model)
        | WorkerCommand::RingSecrets(model)
        | WorkerCommand::ExpireLease(model, _) => begin(model)?,
    };
    match command {
        WorkerCommand::AssignUnits(_) => worker::assign::assign_units(&mut tx)?,
        WorkerCommand::RunWork(_, id) => worker::work::run(&mut tx, *id),
        WorkerCommand::PruneTasks(_) => worker::tasks::prune(&mut tx),
        WorkerCommand::CopyFromOthers(_) => cross::copy::run(&mut tx),
        WorkerCommand::WindUpModel(_) => worker::windup::wind_up(&mut tx),
        WorkerCommand::RingSecrets(_) => worker::secret::ring(&mut tx),
        WorkerCommand::ExpireLease(_, application) => worker::lease::expire(&mut tx, application),
        WorkerCommand::Initialize { .. }
        | WorkerCommand::AgentConnected(_)
        | WorkerCommand::AgentDisconnected(_)
        | WorkerCommand::ForgetCharm(_)
        | WorkerCommand::ForgetResource(_) => {}
    }
    finish(tx)
}
