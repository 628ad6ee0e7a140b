//! Reading requests: bounded in size and time, and of a type that no web page can send unasked.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use periapt_host_api::{
    Refusal,
    api::{MAX_COMMANDS, MAX_COMMANDS_BYTES},
    command::Commands,
};
use serde::de::DeserializeOwned;

use crate::engine::Engine;

/// How long the body of one request may take to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// Commands as they were read: one that makes no sense is refused in its place (A-1).
#[derive(Debug)]
pub(crate) struct Bulk<C> {
    /// In order.
    pub(crate) commands: Vec<Result<C, Refusal>>,
    /// Bytes of the request.
    pub(crate) bytes: usize,
}

/// Reads one value.
pub(crate) async fn value<T: DeserializeOwned>(
    engine: &Engine,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Refusal> {
    let bytes = json_bytes(engine, headers, body).await?;
    serde_json::from_slice(&bytes).map_err(|error| no_sense(&error))
}

/// Reads commands.
pub(crate) async fn commands<C: DeserializeOwned>(
    engine: &Engine,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bulk<C>, Refusal> {
    let bytes = json_bytes(engine, headers, body).await?;
    read_commands(&bytes)
}

fn read_commands<C: DeserializeOwned>(text: &[u8]) -> Result<Bulk<C>, Refusal> {
    let bytes = text.len();
    let commands: Vec<_> = match serde_json::from_slice::<Commands<C>>(text) {
        Ok(Commands { commands }) => commands.into_iter().map(Ok).collect(),
        // One at a time, to tell which of them makes no sense.
        Err(error) => match serde_json::from_slice::<Commands<serde_json::Value>>(text) {
            Ok(Commands { commands }) => commands
                .into_iter()
                .map(|command| serde_json::from_value(command).map_err(|error| no_sense(&error)))
                .collect(),
            Err(_) => return Err(no_sense(&error)),
        },
    };
    match commands.len() {
        count if count > MAX_COMMANDS => {
            let message = format!("{count} commands in one request; at most {MAX_COMMANDS} are taken");
            Err(Refusal::bad_request(message))
        }
        _ => Ok(Bulk { commands, bytes }),
    }
}

fn no_sense(error: &serde_json::Error) -> Refusal {
    Refusal::bad_request(format!("the request cannot be understood: {error}"))
}

async fn json_bytes(engine: &Engine, headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Err(Refusal::bad_request("the request's content-type must be application/json"));
    }
    let _permit = engine.bodies.acquire().await;
    all(body, MAX_COMMANDS_BYTES, WITHIN).await
}

/// Reads a whole body, bounded.
pub(crate) async fn all(body: Body, limit: usize, within: Duration) -> Result<Bytes, Refusal> {
    let collected = tokio::time::timeout(within, Limited::new(body, limit).collect()).await;
    let late = |_| Refusal::bad_request(format!("the request did not arrive within {} s", within.as_secs()));
    match collected.map_err(late)? {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Refusal::bad_request(format!("the request is larger than {limit} bytes")))
        }
        Err(error) => Err(Refusal::bad_request(format!("the request broke off: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::command::ControllerCommand;

    use super::*;

    #[test]
    fn a_command_that_makes_no_sense_is_refused_in_its_place() {
        let text =
            br#"{"commands": [{"add-model": {"name": "a"}}, {"add-model": {"name": "NO"}}, {"x": 1}]}"#;
        let bulk: Bulk<ControllerCommand> = read_commands(text).unwrap();
        assert_eq!(bulk.bytes, text.len());
        let [Ok(_), Err(name), Err(kind)] = bulk.commands.as_slice() else {
            panic!("{bulk:?}");
        };
        assert!(name.message.contains("invalid model name \"NO\""), "{name}");
        assert!(kind.message.contains("unknown variant `x`"), "{kind}");
    }

    #[test]
    fn what_holds_no_commands_is_refused_as_a_whole() {
        for text in ["", "[]", "{\"commands\": 1}", &"[".repeat(100_000)] {
            assert!(read_commands::<ControllerCommand>(text.as_bytes()).is_err());
        }
        let many = format!("{{\"commands\": [{}1]}}", "1,".repeat(MAX_COMMANDS));
        let refusal = read_commands::<serde_json::Value>(many.as_bytes()).unwrap_err();
        assert!(refusal.message.starts_with("1001 commands"), "{refusal}");
    }
}
