//! The download of blobs: whole, in ranges, or not at all if the client has the content.

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use periapt_blobs::BlobError;
use periapt_host_api::{Digest, ErrorCode, Refusal, problem::Problem};
use periapt_model::Input;

use crate::{
    api::{
        failure::{Failure, HandlerResult, problem},
        range::{RequestedRange, wanted},
    },
    state::{BlobKind, Contents, StoredContent, Submission},
    writer::{QueueKey, Sender},
};

/// The caching of public blobs. The content of a digest never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The caching of blobs that only some callers may read.
const FOR_EVER_PRIVATE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

impl BlobKind {
    /// Returns the refusal for a blob that does not exist, or that the caller may not see.
    pub(crate) fn unknown(self, digest: &Digest) -> Refusal {
        Refusal::not_found(format!("{} {digest} not found", self.as_str()))
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Charm => "application/zip",
            Self::Resource => "application/octet-stream",
        }
    }

    fn cache(self) -> HeaderValue {
        match self {
            Self::Charm => FOR_EVER,
            Self::Resource => FOR_EVER_PRIVATE,
        }
    }
}

/// Answers a request for a content that the caller may read. A blob that another controller has is fetched from there.
pub(crate) async fn respond(
    contents: &Contents,
    stored: &StoredContent,
    method: &Method,
    headers: &HeaderMap,
) -> HandlerResult<Response> {
    stored.obtain(contents).await;
    respond_with_own(contents, stored, method, headers).await
}

/// Answers a request for a content that this controller has itself.
pub(crate) async fn respond_with_own(
    contents: &Contents,
    stored: &StoredContent,
    method: &Method,
    headers: &HeaderMap,
) -> HandlerResult<Response> {
    let (kind, blobs, digest) = (contents.kind, &contents.blobs, stored.digest());
    let unknown = || kind.unknown(digest);
    let found = match *method {
        // Nothing is read for the answer, and the check below reads what is stored.
        Method::HEAD => stored.size(blobs).await,
        _ => stored.readable_size(blobs).await,
    };
    let size = found.map_err(|error| unavailable(&error))?.ok_or_else(unknown)?;
    // A client that sends HEAD decides on an upload by the answer. A damaged blob must be uploaded again.
    if *method == Method::HEAD && !stored.is_intact(blobs).await.map_err(|error| unavailable(&error))? {
        tracing::warn!(%digest, "a stored {} is damaged: uploading it again replaces it", kind.as_str());
        return Err(unknown().into());
    }
    let tag = format!("\"{digest}\"");
    if names(headers, header::IF_NONE_MATCH, &tag) {
        return build(kind, StatusCode::NOT_MODIFIED, &tag, Body::empty(), &[]);
    }
    // A range of another version is useless to the client, which then gets the whole.
    let may_continue = !headers.contains_key(header::IF_RANGE) || names(headers, header::IF_RANGE, &tag);
    let asked = headers.get(header::RANGE).filter(|_| may_continue).and_then(|range| range.to_str().ok());
    let (status, range) = match wanted(asked, size) {
        RequestedRange::Whole => (StatusCode::OK, 0..size),
        RequestedRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        RequestedRange::Outside => return Ok(outside(kind, size)),
    };
    let mut more = vec![
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
        (header::CONTENT_TYPE, kind.content_type().to_owned()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        more.push((header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    }
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ => {
            let part = (range != (0..size)).then_some(range);
            let content = stored.read(blobs, part).await.map_err(|error| unavailable(&error))?;
            Body::from_stream(content.ok_or_else(unknown)?)
        }
    };
    build(kind, status, &tag, body, &more)
}

/// Registers stored blobs once another controller of the same log has a copy of each, so that every registered blob
/// exists when a controller is lost. One command registers all of them.
pub(crate) async fn register(
    contents: &Contents,
    submission: &Submission,
    who: Sender,
    digests: &[Digest],
    input: Input,
) -> Result<(), Refusal> {
    let refused = |refusal: Refusal| {
        digests.iter().for_each(|digest| contents.collector.note_refused(*digest));
        refusal
    };
    // Other controllers wait for each other here, so nothing is locked meanwhile.
    let mut copied = Ok(());
    for digest in digests {
        if copied.is_ok() {
            copied = contents.copies.give(contents, digest).await;
        }
    }
    let _keeping = contents.collector.lock_for_upload().await;
    digests.iter().for_each(|digest| contents.collector.note_request(digest));
    copied.map_err(refused)?;
    for digest in digests {
        if contents.blobs.size(digest).await.map_err(|error| unavailable(&error))?.is_none() {
            let text = format!("{} {digest} was deleted meanwhile; send it again", contents.kind.as_str());
            return Err(Refusal::new(ErrorCode::TryAgain, text));
        }
    }
    // The command counts no bytes in the queue: the model only keeps the metadata.
    let known = submission.commands.submit_one(QueueKey::Controller, who, input, 0).await;
    known.map(drop).map_err(refused)
}

/// Returns true if a conditional header contains the content's tag, or `*`.
fn names(headers: &HeaderMap, name: header::HeaderName, tag: &str) -> bool {
    let values = headers.get_all(name);
    let mut tags = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tags.any(|given| matches!(given.trim().trim_start_matches("W/"), given if given == tag || given == "*"))
}

fn build(
    kind: BlobKind,
    status: StatusCode,
    tag: &str,
    body: Body,
    more: &[(header::HeaderName, String)],
) -> HandlerResult<Response> {
    let mut response = Response::builder()
        .status(status)
        .header(header::ETAG, tag)
        .header(header::CACHE_CONTROL, kind.cache())
        .header(header::ACCEPT_RANGES, "bytes");
    for (name, value) in more {
        response = response.header(name, value);
    }
    response.body(body).map_err(|error| Failure(Refusal::new(ErrorCode::Internal, error.to_string())))
}

fn outside(kind: BlobKind, size: u64) -> Response {
    let refusal =
        Refusal::bad_request(format!("the range lies outside of the {}'s {size} bytes", kind.as_str()));
    let status = StatusCode::RANGE_NOT_SATISFIABLE.as_u16();
    let mut response = problem(Problem { status, ..refusal.into() });
    if let Ok(range) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

/// Returns the refusal for content that does not become a blob.
pub(crate) fn unfinished(error: &BlobError) -> Refusal {
    match error {
        BlobError::WrongDigest { .. } => Refusal::bad_request(error.to_string()),
        error => unavailable(error),
    }
}

/// Returns the refusal for a failure of the blob store.
pub(crate) fn unavailable(error: &BlobError) -> Refusal {
    tracing::error!(%error, "a blob could not be stored or read");
    Refusal::new(ErrorCode::StorageUnavailable, error.to_string())
}
