//! Requests with an id: their commands are carried out once, however often the request is sent.

use periapt_host_api::{
    Digest, ErrorCode, Refusal, RequestId,
    secret::{Sealed, SealedFor},
};
use periapt_model::{IdentityCommand, Input, RequestedCommand, Sealer as _};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    api::caller::RequestCaller,
    seal::SealKey,
    state::Submission,
    writer::{QueueKey, Submitted},
};

/// Returns a command as it is known when its request is sent again; none for a request without an id. `act` tells apart
/// commands of equal content, and `index` is the command's place in its request.
pub(crate) fn requested(
    who: &RequestCaller,
    key: &SealKey,
    (act, index): (&str, usize),
    content: &impl Serialize,
) -> Result<Option<RequestedCommand>, Refusal> {
    let Some(request) = who.request else { return Ok(None) };
    let digest = digest(key, act, content)?;
    let index = u32::try_from(index).map_err(|_| Refusal::bad_request("too many commands in one request"))?;
    Ok(Some(RequestedCommand { request, index, digest, response: None }))
}

fn digest(key: &SealKey, act: &str, content: &impl Serialize) -> Result<Digest, Refusal> {
    Ok(key.request_digest(act, &json(content)?))
}

fn json(content: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(content)
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("a request has no form: {error}")))
}

/// Submits a command about a user's identity, and returns the response of the request. If the request was carried out
/// when it was sent before, this is the response of then: it may hold a token, so it was kept sealed.
pub(crate) async fn submit_identity<T: Serialize + DeserializeOwned>(
    submission: &Submission,
    who: &RequestCaller,
    requested: Option<RequestedCommand>,
    command: IdentityCommand,
    response: T,
) -> Result<T, Refusal> {
    let key = &submission.sealer.key;
    let request = requested.as_ref().map(|requested| requested.request);
    let requested = requested.map(|requested| {
        let sealed = key.seal(SealedFor::Response(requested.request), &json(&response)?)?;
        Ok::<_, Refusal>(RequestedCommand { response: Some(sealed), ..requested })
    });
    let submitted =
        Submitted { input: Input::Identity(command), cause: None, command: requested.transpose()? };
    let submitted = submission.commands.submit_one(QueueKey::Controller, who.sender(), submitted, 0);
    let (answered, _) = submitted.await?;
    match request.zip(answered.response) {
        Some((request, sealed)) => opened(key, request, &sealed),
        None => Ok(response),
    }
}

fn opened<T: DeserializeOwned>(key: &SealKey, request: RequestId, sealed: &Sealed) -> Result<T, Refusal> {
    let bytes = key.open(SealedFor::Response(request), sealed);
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
        let text = "the answer to this request was sealed under another key than the controller has now";
        Refusal::new(ErrorCode::Internal, text)
    })
}
