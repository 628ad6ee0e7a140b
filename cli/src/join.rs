//! The admission of agents to a controller.

use std::time::Duration;

use periapt_client::Client;
use periapt_host_api::{
    AgentName,
    agent::{Admission, JoinText, PoolAdmission},
    command::ControllerCommand,
    member::MemberAdmission,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::digest_of;

use crate::{
    context::Controller,
    error::{Explain as _, Failure, Result},
};

/// The terms on which an agent may join.
pub(crate) struct JoinTerms {
    /// The time for which the token is valid.
    pub(crate) valid_for: Duration,
    /// True if an agent of this name that has joined already may be replaced.
    pub(crate) again: bool,
}

/// Draws the text with which agents join. Only its token's digest is sent to the controller.
pub(crate) fn drawn(authority: &str) -> Result<JoinText> {
    let authority =
        digest_of(authority).explain(|| "the certificate of the controller's authority".to_owned())?;
    let mut secret = [0; TOKEN_BYTES];
    getrandom::fill(&mut secret).map_err(|error| Failure::new(format!("no randomness: {error}")))?;
    Ok(JoinText { token: Token::new(TokenKind::Join, secret), authority })
}

/// Admits a further controller of a log, and returns the text with which it joins.
pub(crate) async fn admit_member(
    controller: &Controller,
    name: &str,
    valid_for: Duration,
) -> Result<JoinText> {
    let authority = controller.entry.ca_cert.as_deref().ok_or_else(|| {
        Failure::new(format!("this client does not know the authority of controller {}", controller.name))
    })?;
    let text = drawn(authority)?;
    let (member, valid_for) = (name.to_owned(), valid_for.as_secs().max(1));
    let admission = MemberAdmission { member, token: text.token.digest(), valid_for };
    controller.client.admit_member(&admission).await?;
    Ok(text)
}

/// Admits agents of a pool, and returns the text with which they join.
pub(crate) async fn admit_pool(
    client: &Client,
    pool: &AgentName,
    authority: &str,
    valid_for: Duration,
    uses: u32,
) -> Result<JoinText> {
    let text = drawn(authority)?;
    let (pool, token, valid_for) = (pool.clone(), text.token.digest(), valid_for.as_secs().max(1));
    let admission = PoolAdmission { pool, token, valid_for, uses };
    client.controller_command(ControllerCommand::AdmitPool(admission)).await?;
    Ok(text)
}

/// Admits an agent, and returns the text with which it joins.
pub(crate) async fn admit(
    client: &Client,
    agent: &AgentName,
    authority: &str,
    terms: JoinTerms,
) -> Result<JoinText> {
    let text = drawn(authority)?;
    let admission = Admission {
        agent: agent.clone(),
        token: text.token.digest(),
        valid_for: terms.valid_for.as_secs().max(1),
        again: terms.again,
    };
    client.controller_command(ControllerCommand::AdmitAgent(admission)).await?;
    Ok(text)
}
