//! The plan of a refresh.

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

/// Returns the changes of a refresh and the reasons against it, without changing anything.
///
/// # Errors
/// The model, application or charm does not exist.
pub fn plan_refresh(
    root: &Root,
    caller: &Caller,
    env: &Environment,
    model: ModelUuid,
    refresh: &RefreshRequest,
) -> Result<RefreshPlan, Refusal> {
    let tx = Transaction::begin(root, env, model)?;
    let application = tx.application(&refresh.application)?;
    let (old, new) = (tx.charm_meta(&application)?, uploaded(&tx, caller, &refresh.charm)?);
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

/// The refresh to plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshRequest {
    /// The application.
    pub application: ApplicationName,
    /// The digest of an uploaded charm.
    pub charm: Digest,
    /// The same as in [`Command::Refresh`].
    pub force: bool,
}
