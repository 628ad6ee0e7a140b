//! Callers that use the product's own client for what is not theirs.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use periapt_client::ClientError;
use periapt_host_api::{
    ErrorCode,
    api::ModelSelector,
    command::{Answer, Command, CommandResult, ControllerCommand},
    logs::LogQuery,
    password::Password,
    user::PasswordLogin,
};

use super::{row::StoppedBy, target::AttackedController};

/// The most passwords that a guesser tries before it must wait for longer than the attack lasts.
const MAX_GUESSES: usize = 20;
/// The most entries of one user's refused commands in the audit log (`docs/security.md`).
const MAX_ENTRIES: usize = 64;

/// The refusals of calls, all of which must have been refused.
#[derive(Default)]
pub(super) struct Refusals {
    count: usize,
    /// The calls that were answered otherwise.
    others: Vec<String>,
}

impl Refusals {
    /// Counts a call that was refused as expected, and notes any other.
    pub(super) fn expect<T>(&mut self, call: &str, expected: ErrorCode, answered: Result<T, ClientError>) {
        self.expect_one_of(call, &[expected], answered);
    }

    /// Counts a call that was refused for one of some reasons, and notes any other.
    pub(super) fn expect_one_of<T>(
        &mut self,
        call: &str,
        expected: &[ErrorCode],
        answered: Result<T, ClientError>,
    ) {
        match answered {
            Ok(_) => self.others.push(format!("{call} was granted")),
            Err(error) if error.refusal().is_some_and(|refusal| expected.contains(&refusal.code)) => {
                self.count += 1;
            }
            Err(error) => self.others.push(format!("{call}: {error}")),
        }
    }

    pub(super) fn stopped(self) -> StoppedBy {
        match self.others.is_empty() {
            true => StoppedBy::Refusals(self.count),
            false => StoppedBy::Nobody(self.others.join("; ")),
        }
    }
}

/// A user with a model of their own, who asks for another one's.
pub(super) async fn other_tenant(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let (client, mut refusals) = (target.client(&target.hostile)?, Refusals::default());
    let none = ErrorCode::NotFound;
    for model in [
        ModelSelector::Uuid(target.honest_model),
        ModelSelector::Name("honest".parse()?),
        ModelSelector::Owned("admin".parse()?, "honest".parse()?),
    ] {
        let following = LogQuery { follow: true, ..LogQuery::default() };
        let set = BTreeMap::from([("update-status-hook-interval".to_owned(), "1m".to_owned())]);
        let write = Command::SetModelConfig { set, reset: Vec::new() };
        refusals.expect("the model", none, client.model(&model).await);
        refusals.expect("its status", none, client.status(&model).await);
        refusals.expect("its status as a stream", none, client.watch_status(&model).await);
        refusals.expect("its logs", none, client.logs(&model, &following).await);
        refusals.expect("its journal", none, client.journal(&model, None).await);
        refusals.expect("its secrets", none, client.secrets(&model).await);
        refusals.expect("its machines", none, client.machines(&model).await);
        refusals.expect("its configuration", none, client.model_config(&model).await);
        refusals.expect("its users", none, client.model_users(&model).await);
        refusals.expect("a write to it", none, client.command(&model, write).await);
    }
    let denied = ErrorCode::PermissionDenied;
    let add = ControllerCommand::add_model("mine".parse()?);
    refusals.expect("the audit log", denied, client.audit(None).await);
    refusals.expect("another model", denied, client.controller_command(add).await);
    refusals.expect("another user", ErrorCode::NotFound, client.user(&"honest".parse()?).await);
    Ok(refusals.stopped())
}

/// A session that ends while it follows a stream, and is used afterwards.
pub(super) async fn revoked_session(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let token = target.another_session().await?;
    let (client, mut refusals) = (target.client(&token)?, Refusals::default());
    let model = ModelSelector::Uuid(target.hostile_model);
    let mut watch = client.watch_status(&model).await?;
    let first = watch.next().await;
    anyhow::ensure!(matches!(first, Some(Ok(_))), "the stream begins: {first:?}");
    target.client(&token)?.log_out().await?;
    while let Some(Ok(_)) = watch.next().await {}
    let ended = ErrorCode::NotLoggedIn;
    for client in [client, target.client(&token)?] {
        refusals.expect("itself", ended, client.whoami().await);
        refusals.expect("a stream", ended, client.watch_status(&model).await);
        refusals.expect("a session", ended, client.open_session().await);
    }
    Ok(refusals.stopped())
}

/// A caller that guesses another user's password.
pub(super) async fn guessed_passwords(
    target: &AttackedController,
    count: usize,
) -> anyhow::Result<StoppedBy> {
    let client = target.impatient()?;
    let (mut refusals, mut tried) = (Refusals::default(), 0);
    for number in 0..count {
        let password = Password::try_from(format!("guess {number}"))?;
        let login = PasswordLogin { user: "honest".parse()?, password };
        let answered = client.log_in(&login).await;
        let refused = answered.as_ref().err().and_then(ClientError::refusal).map(|refusal| refusal.code);
        tried += usize::from(refused == Some(ErrorCode::NotLoggedIn));
        refusals.expect_one_of("a login", &[ErrorCode::NotLoggedIn, ErrorCode::TooManyRequests], answered);
    }
    if tried > MAX_GUESSES {
        return Ok(StoppedBy::Nobody(format!("{tried} passwords were tried")));
    }
    Ok(refusals.stopped())
}

/// A user who sends commands without the right to them, by the hundred, to fill the audit log.
pub(super) async fn refused_commands(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    const AT_ONCE: usize = 100;
    let (client, mut refused) = (target.client(&target.hostile)?, 0);
    for _ in 0..count.div_ceil(AT_ONCE) {
        let add = || Ok(ControllerCommand::add_model("mine".parse()?));
        let commands = (0..AT_ONCE).map(|_| add()).collect::<anyhow::Result<Vec<_>>>()?;
        let results = client.controller_commands(commands).await?.results;
        let is_refused = |result: &&CommandResult<Answer>| matches!(result, CommandResult::Error(refusal) if refusal.code == ErrorCode::PermissionDenied);
        refused += results.iter().filter(is_refused).count();
    }
    let entries = target.audited("add-model", "hostile").await?;
    Ok(match (refused, entries) {
        (refused, _) if refused < count => StoppedBy::Nobody(format!("{refused} of {count} were refused")),
        (_, entries) if entries > MAX_ENTRIES => {
            StoppedBy::Nobody(format!("{entries} entries in the audit log"))
        }
        (refused, _) => StoppedBy::Refusals(refused),
    })
}
