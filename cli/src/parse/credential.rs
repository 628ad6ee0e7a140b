//! Credentials on a command line: each must be stored already.

use periapt_host_api::{CloudName, CredentialName};

use super::cloud::HERE;
use crate::{
    context::{Context, Controller},
    data::{ClientData, ControllerName},
    error::{Failure, Result},
};

/// Checks that a credential is stored at the place of its use.
pub(crate) async fn require(
    context: &Context,
    controller: Option<&ControllerName>,
    cloud: &CloudName,
    name: &CredentialName,
) -> Result<()> {
    let of_client = ClientData::read(&context.data)?.credentials;
    let mut known = of_client.get(cloud).is_some_and(|credentials| credentials.contains_key(name));
    if let Some(controller) = controller.filter(|_| !known) {
        let kept = context.controller(Some(controller))?.client.kept().await?;
        known = kept.credentials.get(cloud).is_some_and(|credentials| credentials.contains_key(name));
    }
    if known { Ok(()) } else { Err(unknown(cloud, name)) }
}

/// Checks that a credential is stored for a model's cloud, which may be named with a region.
pub(crate) async fn require_for_model(
    context: &Context,
    controller: &Controller,
    cloud: Option<&str>,
    name: &CredentialName,
) -> Result<()> {
    let named = cloud.and_then(|cloud| cloud.split('/').next());
    let clouds: Vec<CloudName> = match named {
        Some(cloud) => vec![cloud.parse()?],
        None => HERE.into_iter().map(str::parse).collect::<Result<_, _>>()?,
    };
    let of_client = ClientData::read(&context.data)?.credentials;
    let of_controller = controller.client.kept().await?.credentials;
    let known = |cloud: &CloudName| {
        of_client.get(cloud).is_some_and(|kept| kept.contains_key(name))
            || of_controller.get(cloud).is_some_and(|kept| kept.contains_key(name))
    };
    match clouds.iter().any(known) {
        true => Ok(()),
        false => Err(clouds
            .first()
            .map_or_else(|| Failure::new("no cloud is named"), |cloud| unknown(cloud, name))),
    }
}

pub(crate) fn unknown(cloud: &CloudName, name: &CredentialName) -> Failure {
    Failure::new(format!("credential \"{name}\" for cloud \"{cloud}\" not found"))
        .with_hint("`periapt credentials` lists them")
}
