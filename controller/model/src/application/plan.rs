//! What a refresh would do.

use periapt_host_api::{
    ApplicationName, Digest, ModelUuid, Refusal,
    command::{Caller, Command, RefreshWith},
    refresh::{CharmDifference, RefreshPlan},
};

use super::deploy::uploaded;
use crate::{
    evaluate::evaluate,
    input::{Environment, Input},
    root::Root,
    transaction::Transaction,
};

/// What a refresh would change and what is in its way, found out without changing anything.
///
/// # Errors
/// There is no such model, application or charm.
pub fn plan_refresh(
    root: &Root,
    caller: &Caller,
    env: &Environment,
    model: ModelUuid,
    refresh: &RefreshRequest,
) -> Result<RefreshPlan, Refusal> {
    let tx = Transaction::begin(root, env, model)?;
    let application = tx.application(&refresh.application)?;
    let (old, new) = (tx.charm_meta(&application)?, uploaded(&tx, &refresh.charm)?);
    let revision = tx.state.charm(&application.charm.digest).map_or(0, |charm| charm.revision);
    let command = Command::Refresh {
        application: refresh.application.clone(),
        charm: refresh.charm,
        force: refresh.force,
        with: RefreshWith::default(),
    };
    Ok(RefreshPlan {
        application: refresh.application.clone(),
        from: format!("local:{}-{revision}", old.name),
        from_digest: application.charm.digest,
        to: new.name.clone(),
        to_digest: refresh.charm,
        difference: CharmDifference::between(old, new, &application.config),
        refusal: evaluate(root, caller, &Input::Model(model, command), env).err(),
    })
}

/// Which refresh is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The application.
    pub application: ApplicationName,
    /// An uploaded charm.
    pub charm: Digest,
    /// As in [`Command::Refresh`].
    pub force: bool,
}
