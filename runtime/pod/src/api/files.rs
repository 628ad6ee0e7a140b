//! Files by HTTP: lists and removals in JSON, contents as parts of a form.

mod read;
mod upload;

use std::{path::PathBuf, sync::Arc};

use axum::{
    Extension,
    body::Body,
    extract::{RawQuery, State as Of},
    http::{HeaderMap, header::CONTENT_TYPE},
    response::Response,
};
use periapt_pebble::{PodCaller, PodRefusal, PodRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{
    State,
    answer::{read_json, refused, sync},
    query::Query,
};
use crate::files::{
    FileError, Listing, Ownership, Parents, Place, Room, list, make_directory, permissions, remove,
    remove_all,
};

/// The most paths of one request.
const MAX_PATHS: usize = 1_000;

/// Lists or reads files.
pub(super) async fn read(
    Of(state): Of<Arc<State>>,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    if let Err(refusal) = state.handle.ask(caller, PodRequest::Authorize).await.result {
        return refused(refusal);
    }
    let query = Query::read(query.as_deref());
    match query.first("action") {
        "list" => listed(state.root.clone(), query).await,
        "read" => {
            let paths = query.all("path");
            if paths.is_empty() || paths.len() > MAX_PATHS {
                return refused(PodRefusal::bad(format!("must specify 1 to {MAX_PATHS} paths")));
            }
            match state.transfers.clone().try_acquire_owned() {
                Ok(permit) => read::read(state.root.clone(), paths, permit),
                Err(_) => refused(PodRefusal::busy("too many files are on their way; try again later")),
            }
        }
        other => refused(PodRefusal::bad(format!("invalid action {other:?}"))),
    }
}

async fn listed(root: PathBuf, query: Query) -> Response {
    let itself = match query.first("itself") {
        "" | "false" => Listing::Content,
        "true" => Listing::Itself,
        _ => return refused(PodRefusal::bad("itself parameter must be \"true\" or \"false\"")),
    };
    let path = query.first("path").to_owned();
    if !path.starts_with('/') {
        return refused(PodRefusal::bad(format!("path must be absolute, got {path:?}")));
    }
    let pattern = query.first("pattern").to_owned();
    let found = blocking(move || list(&root, &Place::of(&root, &path)?, &pattern, itself)).await;
    match found {
        Ok(entries) => sync(200, entries.into()),
        Err(FileError { kind, message }) => {
            let status = match kind {
                "not-found" => 404,
                "permission-denied" => 403,
                _ => 400,
            };
            refused(PodRefusal { status, kind: Some(kind), message })
        }
    }
}

/// Runs what may wait for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(FileError::other(error.to_string())))
}

/// An order about files in JSON.
#[derive(Debug, Deserialize)]
struct Order {
    action: String,
    #[serde(default)]
    dirs: Vec<Directory>,
    #[serde(default)]
    paths: Vec<Removal>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Directory {
    path: String,
    #[serde(default)]
    make_parents: bool,
    #[serde(default)]
    permissions: String,
    #[serde(default)]
    user_id: Option<u32>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    group_id: Option<u32>,
    #[serde(default)]
    group: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Removal {
    path: String,
    #[serde(default)]
    recursive: bool,
}

/// Writes, makes or removes files.
pub(super) async fn act(
    Of(state): Of<Arc<State>>,
    Extension(caller): Extension<PodCaller>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if let Err(refusal) = state.handle.ask(caller, PodRequest::Authorize).await.result {
        return refused(refusal);
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Ok(boundary) = multer::parse_boundary(kind) {
        return match state.transfers.clone().try_acquire_owned() {
            Ok(permit) => match state.room().await {
                Ok(room) => {
                    upload::write((state.root.clone(), state.owner), room, boundary, body, permit).await
                }
                Err(refusal) => refused(refusal),
            },
            Err(_) => refused(PodRefusal::busy("too many files are on their way; try again later")),
        };
    }
    if !kind.starts_with("application/json") {
        return refused(PodRefusal::bad(format!("invalid media type {kind:?}")));
    }
    let order: Order = match read_json(body).await {
        Ok(order) => order,
        Err(refusal) => return refused(refusal),
    };
    if order.dirs.len() > MAX_PATHS || order.paths.len() > MAX_PATHS {
        return refused(PodRefusal::bad(format!("must specify at most {MAX_PATHS} paths")));
    }
    let mut room = match order.action.as_str() {
        "make-dirs" => match state.room().await {
            Ok(room) => room,
            Err(refusal) => return refused(refusal),
        },
        _ => None,
    };
    let (root, owner) = (state.root.clone(), state.owner);
    let done = match order.action.as_str() {
        "make-dirs" if order.dirs.is_empty() => {
            return refused(PodRefusal::bad("must specify one or more directories"));
        }
        "remove" if order.paths.is_empty() => {
            return refused(PodRefusal::bad("must specify one or more paths"));
        }
        "make-dirs" => {
            let make = move |it| made((root.as_path(), owner), room.as_mut(), it);
            blocking(move || Ok(order.dirs.into_iter().map(make).collect())).await
        }
        "remove" => {
            blocking(move || Ok(order.paths.into_iter().map(|it| removed(&root, &it)).collect())).await
        }
        other => return refused(PodRefusal::bad(format!("invalid action {other:?}"))),
    };
    match done {
        Ok(items) => sync(200, Value::Array(items)),
        Err(FileError { message, .. }) => refused(PodRefusal { status: 500, kind: None, message }),
    }
}

fn made(
    (root, own): (&std::path::Path, Option<(u32, u32)>),
    room: Option<&mut Room>,
    directory: Directory,
) -> Value {
    let Directory { path, make_parents, permissions: mode, user_id, user, group_id, group } = directory;
    let result = (|| {
        let place = Place::of(root, &path)?;
        room.map_or(Ok(()), |room| room.place(&path))?;
        let mode = permissions(&mode, 0o755)?;
        let owner = Ownership { user_id, user, group_id, group }.resolve(root, own)?;
        make_directory(&place, mode, owner, if make_parents { Parents::Make } else { Parents::Require })
    })();
    FileError::item(&path, &result)
}

fn removed(root: &std::path::Path, removal: &Removal) -> Value {
    let result = Place::of(root, &removal.path).and_then(|place| match removal.recursive {
        true => remove_all(&place),
        false => remove(&place),
    });
    FileError::item(&removal.path, &result)
}
