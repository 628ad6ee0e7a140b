//! The entry point of all changes: a request reads a state and returns the writes, or a refusal.

use periapt_host_api::{
    ModelUuid, Refusal,
    command::{Answer, Caller, Command, ControllerCommand},
};

use crate::{
    access, action, agent, answer, application, audit, charm, commit, controller,
    input::{Environment, IdentityCommand, Input, Output, WorkerCommand},
    leadership, machine, migration, model, network, offer, relation, resource,
    root::{Root, changes::Changes},
    secret, storage,
    transaction::{Transaction, check_size},
    unit, user, work,
};

/// Evaluates one request against a state. The state does not change until [`Root::apply`] takes the returned changes.
///
/// # Errors
/// The refusal of the request; then no part of the request takes effect.
pub fn evaluate(
    root: &Root,
    caller: &Caller,
    input: &Input,
    env: &Environment,
) -> Result<(Changes, Output), Refusal> {
    access::request::admit(root, caller, input)?;
    controller::level::check(root, input)?;
    migration::freeze::check(root, input)?;
    match input {
        Input::Controller(command) => {
            let (changes, answer) = controller_command(root, caller, command, env)?;
            check_size(&changes)?;
            Ok((changes, Output::Answer(answer)))
        }
        Input::Model(model, command) => {
            let mut tx = Transaction::begin(root, env, *model)?;
            let answer = model_command(&mut tx, caller, command)?;
            application::quota::check(&tx, command)?;
            Ok((finish(tx)?, Output::Answer(answer)))
        }
        Input::Identity(command) => {
            let (changes, output) = identity_command(root, caller, command, env)?;
            check_size(&changes)?;
            Ok((changes, output))
        }
        Input::UploadCharm(charm) => {
            Ok((charm::upload::upload_charm(root, caller, charm, env)?, Output::Done))
        }
        Input::UploadResource(content) => {
            Ok((resource::content::upload(root, caller, content, env)?, Output::Done))
        }
        // Only the audit log tells of it.
        Input::Backup { .. } => Ok((Changes::default(), Output::Done)),
        Input::Register(name, register) => {
            Ok((agent::register::register(root, name, register, env)?, Output::Done))
        }
        Input::Join { agent, key, token } => {
            Ok((agent::enrolment::join(root, agent, *key, *token, env)?, Output::Done))
        }
        Input::Runner(model, call) => {
            let Caller::Runner { agent, .. } = caller else { return Err(access::check::denied()) };
            let mut tx = Transaction::begin_or_clear(root, env, *model)?;
            let answer = commit::runner_call(&mut tx, agent, call)?;
            Ok((finish(tx)?, Output::Runner(answer)))
        }
        Input::Audit(request) => Ok((audit::entry::audit(root, request.clone()), Output::Done)),
        Input::Worker(command) => Ok((worker_command(root, command, env)?, Output::Done)),
    }
}

fn finish(tx: Transaction<'_>) -> Result<Changes, Refusal> {
    tx.finish(secret::life::collect_garbage)
}

fn controller_command(
    root: &Root,
    caller: &Caller,
    command: &ControllerCommand,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    let done = |changes: Changes| (changes, Answer::Done);
    match command {
        ControllerCommand::AddModel { name, config } => model::command::add(root, caller, name, config, env),
        ControllerCommand::SetModelDefaults { set, reset } => model::command::set_defaults(root, set, reset),
        ControllerCommand::DestroyModel { model, force, storage } => {
            let mut tx = Transaction::begin(root, env, *model)?;
            let answer = model::command::destroy(&mut tx, *force, *storage)?;
            Ok((finish(tx)?, answer))
        }
        ControllerCommand::Migrate { model, target } => migration::outgoing::begin(root, *model, target, env),
        ControllerCommand::AbortMigration { model, force: false } => {
            migration::outgoing::abort(root, model, env)
        }
        ControllerCommand::AbortMigration { model, force: true } => {
            migration::outgoing::abort_by_force(root, model, env)
        }
        ControllerCommand::ForgetMigration { model, force } => {
            if !force {
                migration::outgoing::check_agents_have_gone(root, model, env)?;
            }
            migration::outgoing::forget(root, model, env)
        }
        ControllerCommand::BeginImport { plan, check: true } => migration::import::check(root, plan, env),
        ControllerCommand::BeginImport { plan, check: false } => migration::import::begin(root, plan, env),
        ControllerCommand::ImportPage(page) => migration::import::page(root, page, env),
        ControllerCommand::HoldImport { model, id, entities } => {
            migration::import::hold(root, model, *id, *entities)
        }
        ControllerCommand::ActivateImport { model, id } => migration::import::activate(root, model, *id, env),
        ControllerCommand::AbortImport { model, id, unless_held: false } => {
            migration::import::abort(root, model, *id, env)
        }
        ControllerCommand::AbortImport { model, id, unless_held: true } => {
            migration::import::abort_part(root, model, *id, env)
        }
        ControllerCommand::Keep(change) => controller::clouds::change(root, change),
        ControllerCommand::AdmitAgent(admission) => agent::enrolment::admit(root, admission, env).map(done),
        ControllerCommand::AdmitPool(admission) => agent::pool::admit(root, admission, env).map(done),
        ControllerCommand::ClosePool { pool } => agent::pool::close(root, pool).map(done),
        ControllerCommand::RemoveAgent { agent, force } => {
            agent::enrolment::remove(root, agent, *force, env).map(done)
        }
        ControllerCommand::RemoveController { name } => controller::members::remove(root, name).map(done),
        ControllerCommand::SetProgram(offer) => controller::program::set(root, offer).map(done),
        ControllerCommand::RemoveUser { user } => user::account::remove(root, user).map(done),
        ControllerCommand::DisableUser { user } => user::account::disable(root, user).map(done),
        ControllerCommand::EnableUser { user } => user::account::enable(root, user).map(done),
        ControllerCommand::GrantController { user, access } => {
            user::grant::grant_controller(root, caller, (user, *access), env).map(done)
        }
        ControllerCommand::RevokeController { user, access } => {
            user::grant::revoke_controller(root, user, *access).map(done)
        }
        ControllerCommand::GrantOffer { offer, user, access } => {
            let tx = user::grant::grant_offer(root, env, caller, (offer, user, *access))?;
            Ok(done(finish(tx)?))
        }
        ControllerCommand::RevokeOffer { offer, user, access } => {
            let tx = user::grant::revoke_offer(root, env, caller, (offer, user, *access))?;
            Ok(done(finish(tx)?))
        }
        ControllerCommand::CloseSession { session } => Ok(done(user::session::close(root, session))),
    }
}

fn identity_command(
    root: &Root,
    caller: &Caller,
    command: &IdentityCommand,
    env: &Environment,
) -> Result<(Changes, Output), Refusal> {
    let done = |changes: Changes| (changes, Output::Done);
    match command {
        IdentityCommand::AddUser { name, display_name, registration } => {
            user::account::add(root, caller, name, display_name, registration, env).map(done)
        }
        IdentityCommand::ResetPassword { user, registration } => {
            user::account::reset_password(root, user, registration).map(done)
        }
        IdentityCommand::SetPassword { user, password, session } => {
            user::account::set_password(root, user, password, session.as_ref()).map(done)
        }
        IdentityCommand::Register { registration, password, session } => {
            let (changes, user) = user::session::register(root, registration, password, session, env)?;
            Ok((changes, Output::Session(user)))
        }
        IdentityCommand::LogIn { user, verified, session } => {
            let changes = user::session::log_in(root, user, verified, session, env)?;
            Ok((changes, Output::Session(user.clone())))
        }
        IdentityCommand::LogInAtIssuer { login, session } => {
            let changes = user::external::log_in(root, login, session, env)?;
            Ok((changes, Output::Session(login.user.clone())))
        }
        IdentityCommand::OpenSession { session } => {
            user::session::open_own(root, caller, session, env).map(done)
        }
    }
}

fn model_command(tx: &mut Transaction<'_>, caller: &Caller, command: &Command) -> Result<Answer, Refusal> {
    match command {
        Command::Deploy(deploy) => application::deploy::deploy(tx, caller, deploy),
        Command::SetConfig { application, set, reset } => {
            application::command::set_config(tx, application, set, reset)
        }
        Command::SetTrust { application, trust } => application::command::set_trust(tx, application, *trust),
        Command::SetConstraints { application, constraints } => {
            application::constraints::set(tx, application, constraints)
        }
        Command::SetModelConstraints { constraints } => application::constraints::set_model(tx, constraints),
        Command::RetryProvisioning { unit } => application::constraints::retry(tx, unit),
        Command::AddUnits { application, count, placement, attach_storage } => {
            unit::command::add(tx, application, *count, placement, attach_storage)
        }
        Command::RemoveUnit { unit, force, storage } => unit::command::remove(tx, unit, *force, *storage),
        Command::RemoveApplication { application, force, storage } => {
            application::command::remove(tx, application, *force, *storage)
        }
        Command::Integrate { first, second, via } => relation::command::integrate(tx, first, second, via),
        Command::RemoveRelation { relation, force } => {
            relation::command::remove_relation(tx, relation, *force)
        }
        Command::SuspendRelation { relation, message } => offer::command::suspend(tx, relation, message),
        Command::ResumeRelation { relation } => offer::command::resume(tx, relation),
        Command::Offer { application, endpoints, name, description } => {
            let (name, description) = (name.as_ref(), description.as_deref());
            offer::command::offer(tx, &offer::command::NewOffer { application, endpoints, name, description })
        }
        Command::RemoveOffer { offer, force } => offer::command::remove_offer(tx, offer, *force),
        Command::Consume { offer, application } => {
            offer::command::consume(tx, caller, offer, application.as_ref())
        }
        Command::RemoveSaas { application, force } => offer::command::remove_saas(tx, application, *force),
        Command::RemoveMachine { machine, force } => machine::command::remove(tx, *machine, *force),
        Command::Expose { application, endpoints } => network::command::expose(tx, application, endpoints),
        Command::Unexpose { application, endpoints } => {
            network::command::unexpose(tx, application, endpoints)
        }
        Command::AddSpace { name, subnets } => network::command::add_space(tx, name, subnets),
        Command::MoveToSpace { space, subnets } => network::command::move_to_space(tx, space, subnets),
        Command::RenameSpace { name, to } => network::command::rename_space(tx, name, to),
        Command::RemoveSpace { name } => network::command::remove_space(tx, name),
        Command::Bind { application, bindings } => network::command::bind(tx, application, bindings),
        Command::Refresh { application, charm, force, with } => application::refresh::refresh(
            tx,
            caller,
            application,
            charm,
            application::deploy::Checks::of_force(*force),
            with,
        ),
        Command::AttachResource { application, resource, upload } => {
            resource::command::attach(tx, caller, application, resource, upload)
        }
        Command::AddStorage { unit, storage } => storage::command::add(tx, unit, storage),
        Command::AttachStorage { unit, storage } => storage::command::attach(tx, unit, storage),
        Command::DetachStorage { storage, force } => storage::command::detach(tx, storage, *force),
        Command::RemoveStorage { storage, end, force } => storage::command::remove(tx, storage, *end, *force),
        Command::Resolve { unit, mode } => unit::command::resolve(tx, unit, *mode),
        Command::EnqueueOperation(request) => action::command::enqueue(tx, request),
        Command::CancelTask { task } => action::command::cancel(tx, *task),
        Command::CancelEvent { unit, event } => unit::command::cancel_event(tx, unit, *event),
        Command::AddSecret { id, name, content, description } => {
            secret::command::add(tx, *id, name, content, description)
        }
        Command::UpdateSecret { secret, content, name, description, auto_prune } => {
            let change = secret::command::Change {
                content: content.as_ref(),
                name: name.as_deref(),
                description: description.as_deref(),
                auto_prune: *auto_prune,
            };
            secret::command::update(tx, secret, &change)
        }
        Command::GrantSecret { secret, applications } => secret::command::grant(tx, secret, applications),
        Command::RevokeSecret { secret, applications } => secret::command::revoke(tx, secret, applications),
        Command::RemoveSecret { secret, revision } => secret::command::remove(tx, secret, *revision),
        Command::AddSshKeys { keys } => controller::clouds::add_keys(tx, keys),
        Command::RemoveSshKeys { keys } => controller::clouds::remove_keys(tx, keys),
        Command::SetModelConfig { set, reset } => model::command::set_config(tx, caller, set, reset),
        Command::GrantModel { user, access } => user::grant::grant_model(tx, user, *access),
        Command::RevokeModel { user, access } => user::grant::revoke_model(tx, user, *access),
    }
}

fn worker_command(root: &Root, command: &WorkerCommand, env: &Environment) -> Result<Changes, Refusal> {
    if migration::freeze::holds_back(root, command) {
        return Ok(Changes::default());
    }
    let begin = |model: &ModelUuid| Transaction::begin_or_clear(root, env, *model);
    let mut tx = match command {
        WorkerCommand::Initialize { name } => return controller::start::initialize(root, name, env),
        WorkerCommand::RaiseLevel(level) => return Ok(controller::level::raise(root, *level)),
        WorkerCommand::AdmitController { name, level } => {
            return controller::members::admit(root, name, *level);
        }
        WorkerCommand::NoteController { name, url, level } => {
            return controller::members::note(root, name, url, *level);
        }
        WorkerCommand::ReleaseProgram(number) => return Ok(controller::program::release(root, *number)),
        WorkerCommand::ForgetAnswers => return Ok(answer::due::forget(root, env)),
        WorkerCommand::ForgetSessions => return Ok(user::session::forget_expired(root, env)),
        WorkerCommand::AgentConnected(agent) => return Ok(agent::register::connected(agent, env)),
        WorkerCommand::AgentDisconnected(agent) => return Ok(agent::register::disconnected(agent, env)),
        WorkerCommand::ForgetCharm(digest) => return Ok(charm::upload::forget_charm(root, digest)),
        WorkerCommand::ForgetResource(digest) => return Ok(resource::content::forget(root, digest)),
        WorkerCommand::HandOverModel(model, id) => {
            return migration::outgoing::hand_over(root, model, *id, env);
        }
        WorkerCommand::NoteMoved(model, id) => return migration::outgoing::moved(root, model, *id, env),
        WorkerCommand::NoteMigrationFailed { model, id, reason } => {
            return Ok(migration::outgoing::failed(root, model, *id, reason, env));
        }
        WorkerCommand::NoteAbortTold(model, id) => {
            return Ok(migration::outgoing::abort_told(root, model, *id));
        }
        WorkerCommand::EndMigration(model) => return Ok(migration::clean_up::step(root, model, env)),
        WorkerCommand::AssignUnits(model)
        | WorkerCommand::MoveMachines(model, _)
        | WorkerCommand::RunWork(model, _)
        | WorkerCommand::PruneTasks(model)
        | WorkerCommand::CopyFromOthers(model)
        | WorkerCommand::CleanUpModel(model)
        | WorkerCommand::MarkSecretsDue(model)
        | WorkerCommand::ExpireLease(model, _) => begin(model)?,
    };
    match command {
        WorkerCommand::AssignUnits(_) => machine::assign::assign_units(&mut tx)?,
        WorkerCommand::MoveMachines(_, agent) => machine::failover::move_machines(&mut tx, agent),
        WorkerCommand::RunWork(_, id) => work::run::run(&mut tx, *id),
        WorkerCommand::PruneTasks(_) => action::due::prune(&mut tx),
        WorkerCommand::CopyFromOthers(_) => offer::copy::run(&mut tx),
        WorkerCommand::CleanUpModel(_) => model::cleanup::clean_up(&mut tx),
        WorkerCommand::MarkSecretsDue(_) => secret::due::mark_due(&mut tx),
        WorkerCommand::ExpireLease(_, application) => leadership::expire::expire(&mut tx, application),
        WorkerCommand::Initialize { .. }
        | WorkerCommand::RaiseLevel(_)
        | WorkerCommand::AdmitController { .. }
        | WorkerCommand::NoteController { .. }
        | WorkerCommand::ReleaseProgram(_)
        | WorkerCommand::ForgetSessions
        | WorkerCommand::ForgetAnswers
        | WorkerCommand::AgentConnected(_)
        | WorkerCommand::AgentDisconnected(_)
        | WorkerCommand::ForgetCharm(_)
        | WorkerCommand::ForgetResource(_)
        | WorkerCommand::HandOverModel(..)
        | WorkerCommand::NoteMoved(..)
        | WorkerCommand::NoteMigrationFailed { .. }
        | WorkerCommand::NoteAbortTold(..)
        | WorkerCommand::EndMigration(_) => {}
    }
    finish(tx)
}
