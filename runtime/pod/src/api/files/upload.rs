//! New files, as parts of a form: first the order, then the content of each file.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use axum::{
    body::{Body, BodyDataStream},
    response::Response,
};
use futures_util::StreamExt as _;
use multer::{Constraints, Field, Multipart, SizeLimit};
use periapt_pebble::PodRefusal;
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{MAX_PATHS, blocking};
use crate::{
    api::answer::{refused, sync},
    files::{FileError, Ownership, Parents, Place, Room, Upload, permissions},
};

/// The most bytes of one upload.
const MAX_UPLOAD: u64 = 4 << 30;

/// The most bytes of its order.
const MAX_ORDER: u64 = 1 << 20;

/// The time in which a client sends the next piece.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes after a form that are read, and the time in which they come.
const MAX_REST: usize = 64 << 10;
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// The order of an upload.
#[derive(Debug, Deserialize)]
struct Order {
    action: String,
    files: Vec<NewFile>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct NewFile {
    path: String,
    #[serde(default)]
    make_dirs: bool,
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

/// Writes the files of an upload.
pub(super) async fn write(
    (root, owner): (PathBuf, Option<(u32, u32)>),
    mut room: Option<Room>,
    boundary: String,
    body: Body,
    permit: OwnedSemaphorePermit,
) -> Response {
    let limit = SizeLimit::new().whole_stream(MAX_UPLOAD).for_field("request", MAX_ORDER);
    let constraints = Constraints::new().size_limit(limit);
    let mut stream = body.into_data_stream();
    let mut form = Multipart::with_constraints(&mut stream, boundary, constraints);
    let result = written((root.as_path(), owner), room.as_mut(), &mut form).await;
    drop(form);
    drain(&mut stream).await;
    drop(permit);
    match result {
        Ok(items) => sync(200, Value::Array(items)),
        Err(refusal) => refused(refusal),
    }
}

/// Reads what follows the form, such as the last chunk of HTTP. The connection would break under a client that still
/// sends it.
async fn drain(stream: &mut BodyDataStream) {
    let mut left = MAX_REST;
    while let Ok(Some(Ok(bytes))) = timeout(REST_TIMEOUT, stream.next()).await {
        left = left.saturating_sub(bytes.len());
        if left == 0 {
            return;
        }
    }
}

async fn written(
    base: (&std::path::Path, Option<(u32, u32)>),
    mut room: Option<&mut Room>,
    form: &mut Multipart<'_>,
) -> Result<Vec<Value>, PodRefusal> {
    let order = match part(form).await? {
        Some(field) if field.name() == Some("request") => order(field).await?,
        _ => return Err(PodRefusal::bad("the first part must be named \"request\"")),
    };
    if order.action != "write" {
        return Err(PodRefusal::bad(format!("multipart action must be \"write\", got {:?}", order.action)));
    }
    if order.files.is_empty() || order.files.len() > MAX_PATHS {
        return Err(PodRefusal::bad(format!("must specify 1 to {MAX_PATHS} files")));
    }
    let files: BTreeMap<&str, &NewFile> = order.files.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut results: BTreeMap<String, Result<(), FileError>> = BTreeMap::new();
    while let Some(field) = part(form).await? {
        if field.name() != Some("files") {
            return Err(PodRefusal::bad(format!("field name must be \"files\", got {:?}", field.name())));
        }
        let path = unescaped(field.file_name().unwrap_or_default());
        let Some(file) = files.get(path.as_str()) else {
            return Err(PodRefusal::bad(format!("no metadata for path {path:?}")));
        };
        let result = content(base, room.as_deref_mut(), (*file).clone(), field).await?;
        results.insert(path, result);
    }
    let missing = || Err(FileError::other("no content for this path"));
    let item = |file: &NewFile| {
        FileError::item(&file.path, &results.get(&file.path).cloned().unwrap_or_else(missing))
    };
    Ok(order.files.iter().map(item).collect())
}

/// Takes the backslashes before quotes out of a name.
fn unescaped(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('"')) => {}
            _ => plain.push(letter),
        }
    }
    plain
}

fn broken(error: &multer::Error) -> PodRefusal {
    PodRefusal::bad(format!("cannot read multipart data: {error}"))
}

fn late() -> PodRefusal {
    PodRefusal { status: 408, kind: None, message: "the body did not arrive".to_owned() }
}

async fn part<'f>(form: &mut Multipart<'f>) -> Result<Option<Field<'f>>, PodRefusal> {
    timeout(PIECE_TIMEOUT, form.next_field()).await.map_err(|_| late())?.map_err(|error| broken(&error))
}

async fn piece(field: &mut Field<'_>) -> Result<Option<bytes::Bytes>, PodRefusal> {
    timeout(PIECE_TIMEOUT, field.chunk()).await.map_err(|_| late())?.map_err(|error| broken(&error))
}

async fn order(mut field: Field<'_>) -> Result<Order, PodRefusal> {
    let mut text = Vec::new();
    while let Some(bytes) = piece(&mut field).await? {
        text.extend_from_slice(&bytes);
    }
    serde_json::from_slice(&text)
        .map_err(|error| PodRefusal::bad(format!("cannot decode request metadata: {error}")))
}

/// Writes one file. The content of a file that is refused is read to its end, so that the client hears of it.
async fn content(
    (root, owner): (&std::path::Path, Option<(u32, u32)>),
    mut room: Option<&mut Room>,
    file: NewFile,
    mut field: Field<'_>,
) -> Result<Result<(), FileError>, PodRefusal> {
    let root = root.to_owned();
    let mut upload = match room.as_deref_mut().map_or(Ok(()), |room| room.place(&file.path)) {
        Ok(()) => begun(root, owner, file).await,
        Err(error) => Err(error),
    };
    while let Some(bytes) = piece(&mut field).await? {
        let fits = room.as_deref_mut().map_or(Ok(()), |room| room.bytes(bytes.len()));
        upload = match (upload, fits) {
            (Ok(mut open), Ok(())) => blocking(move || open.write(&bytes).map(|()| open)).await,
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
        };
    }
    Ok(match upload {
        Ok(open) => blocking(move || open.finish()).await,
        Err(error) => Err(error),
    })
}

/// Begins a file.
async fn begun(root: PathBuf, own: Option<(u32, u32)>, file: NewFile) -> Result<Upload, FileError> {
    blocking(move || {
        let NewFile { path, make_dirs, permissions: mode, user_id, user, group_id, group } = file;
        let place = Place::of(&root, &path)?;
        let mode = permissions(&mode, 0o644)?;
        let owner = Ownership { user_id, user, group_id, group }.resolve(&root, own)?;
        Upload::begin(&place, mode, owner, if make_dirs { Parents::Make } else { Parents::Require })
    })
    .await
}
