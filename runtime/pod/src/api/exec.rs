//! Commands and their websockets.

use std::{collections::BTreeSet, path::Path as FilePath, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{Path, State as Of},
    http::{
        HeaderMap, HeaderValue, Request as HttpRequest, StatusCode,
        header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE},
    },
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper_util::rt::TokioIo;
use periapt_helper::MayPause;
use periapt_pebble::{ExecBody, PodCaller, PodRefusal, PodRequest, WebsocketName};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustix::fs::{Access, access};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::protocol::{Role, WebSocketConfig},
};

use super::{
    State,
    answer::{answered, read_json, refused},
};
use crate::driver::{accounts::Accounts, no_workload};

/// The text that a server of websockets answers a key with (RFC 6455).
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The most bytes of one message: clients send at most some tens of KiB at once.
const MAX_MESSAGE: usize = 1 << 20;

/// The programs that commands can name.
#[derive(Debug)]
pub(crate) enum PodPrograms {
    /// Executable files.
    Files {
        /// The search path of processes that are given none.
        search_path: String,
    },
    /// Workloads with these names.
    Workloads(BTreeSet<String>),
}

/// Begins a command.
pub(super) async fn exec(
    Of(state): Of<Arc<State>>,
    Extension(caller): Extension<PodCaller>,
    body: Body,
) -> Response {
    let body: ExecBody = match read_json(body).await {
        Ok(body) => body,
        Err(refusal) => return refused(refusal),
    };
    // Before anything is looked for in files.
    if let Err(refusal) = state.handle.ask(caller, PodRequest::Authorize).await.result {
        return refused(refusal);
    }
    let shared = state.clone();
    let checked =
        tokio::task::spawn_blocking(move || check(&shared.root, &shared.programs, &body).map(|()| body))
            .await;
    match checked {
        Ok(Ok(body)) => state.ask(caller, PodRequest::Exec(Box::new(body))).await,
        Ok(Err(message)) => refused(PodRefusal::bad(message)),
        Err(error) => refused(PodRefusal { status: 500, kind: None, message: error.to_string() }),
    }
}

/// Refuses a program or an account that is not there, while the client can still be told at once.
fn check(root: &FilePath, programs: &PodPrograms, body: &ExecBody) -> Result<(), String> {
    let account = periapt_pebble::Account {
        user: body.user.clone().filter(|it| !it.is_empty()),
        user_id: body.user_id,
        group: body.group.clone().filter(|it| !it.is_empty()),
        group_id: body.group_id,
    };
    Accounts::read(root).resolve(&account)?;
    let Some(program) = body.command.first().filter(|it| !it.is_empty()) else { return Ok(()) };
    let search_path = match programs {
        PodPrograms::Files { search_path } => search_path.as_str(),
        PodPrograms::Workloads(names) if names.contains(program) => return Ok(()),
        PodPrograms::Workloads(names) => return Err(no_workload(program, names.iter())),
    };
    // The environment and directory of a service are known to the core alone; the driver finds out.
    if body.service_context.as_ref().is_some_and(|it| !it.is_empty()) {
        return Ok(());
    }
    let is_program = |path: &FilePath| {
        let path = root.join(path.strip_prefix("/").unwrap_or(path));
        path.is_file() && access(&path, Access::EXEC_OK).is_ok()
    };
    let found = match program.contains('/') {
        true => program.starts_with('.') || !program.starts_with('/') || is_program(FilePath::new(program)),
        false => {
            let path = body.environment.get("PATH").map_or(search_path, String::as_str);
            path.split(':').any(|directory| is_program(&FilePath::new(directory).join(program)))
        }
    };
    found.then_some(()).ok_or_else(|| format!("cannot find executable {program:?}"))
}

/// Connects a websocket of a command.
pub(super) async fn websocket(
    Of(state): Of<Arc<State>>,
    Extension(caller): Extension<PodCaller>,
    Extension(may_pause): Extension<MayPause>,
    Path((task, name)): Path<(String, String)>,
    mut request: HttpRequest<Body>,
) -> Response {
    let Some(name) = WebsocketName::from_word(&name) else {
        return refused(PodRefusal::missing(format!("there is no websocket {name:?}")));
    };
    let Some(accept) = accepted(request.headers()) else {
        return refused(PodRefusal::bad("this endpoint speaks websockets of version 13 alone"));
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let reply = state.handle.ask(caller, PodRequest::Websocket(task, name)).await;
    let Some(place) = reply.socket else { return answered(reply.result) };
    tokio::spawn(async move {
        // A client that goes away before leaves the place empty, and the command without this stream.
        let Ok(upgraded) = upgrade.await else { return };
        // The reader of a command's output may pause, and the command waits for it.
        may_pause.allow();
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE))
            .max_write_buffer_size(2 * MAX_MESSAGE);
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let _ = place.send(socket);
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// Returns the answer to a client's key; none if the request is no handshake.
fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let upgrades = text(UPGRADE)?.eq_ignore_ascii_case("websocket")
        && text(CONNECTION)?.split(',').any(|it| it.trim().eq_ignore_ascii_case("upgrade"))
        && text(SEC_WEBSOCKET_VERSION)? == "13";
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| upgrades)?;
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(WEBSOCKET_GUID);
    HeaderValue::from_str(&STANDARD.encode(digest.finish())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_key_is_that_of_the_standard() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (UPGRADE, "websocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (SEC_WEBSOCKET_VERSION, "13"),
            (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(accepted(&headers).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        headers.remove(SEC_WEBSOCKET_VERSION);
        assert_eq!(accepted(&headers), None);
    }

    #[test]
    fn commands_are_executable_files_or_the_workloads_of_a_charm() {
        let root = tempfile::tempdir().unwrap();
        let refusal = |programs: &PodPrograms, command: &str| {
            let body: ExecBody = serde_json::from_value(serde_json::json!({ "command": [command] })).unwrap();
            check(root.path(), programs, &body).err()
        };
        let files = PodPrograms::Files { search_path: "/bin".to_owned() };
        let workloads = PodPrograms::Workloads(["job".to_owned(), "web".to_owned()].into());
        assert_eq!(refusal(&files, "job").unwrap(), "cannot find executable \"job\"");
        assert_eq!(refusal(&workloads, "job"), None);
        let reason = "there is no workload \"sh\"; the charm declares: job, web";
        assert_eq!(refusal(&workloads, "sh").unwrap(), reason);
    }
}
