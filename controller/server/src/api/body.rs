//! Reads of requests: bounded in size and time, and only of a content type that web pages cannot send without
//! permission.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use periapt_host_api::{
    ErrorCode, Refusal,
    api::{MAX_COMMANDS, MAX_COMMANDS_BYTES},
    command::Commands,
    excerpt,
    trace::TraceContext,
};
use serde::de::DeserializeOwned;
use tokio::{sync::Semaphore, time::Instant};

use crate::state::Submission;

/// The longest time for the body of one request to arrive.
const WITHIN: Duration = Duration::from_secs(30);
/// The largest body that needs no permit. As much may wait in each stream's window anyway, and clients that send byte
/// by byte must not delay all others. Most commands are far smaller.
const SMALL: usize = 64 << 10;

/// The bytes that an upload must bring in each [`Options::upload_progress_within`](crate::Options).
const PROGRESS: usize = 256 << 10;

/// The commands of a request. An invalid command is refused in its place (A-1).
#[derive(Debug)]
pub(crate) struct Bulk<C> {
    /// The commands, in order.
    pub(crate) commands: Vec<Result<C, Refusal>>,
    /// The span that each command comes from, in the same order; where the list ends, the request's.
    pub(crate) traces: Vec<Option<TraceContext>>,
    /// The size of the request, in bytes.
    pub(crate) bytes: usize,
}

/// Reads one value.
pub(crate) async fn value<T: DeserializeOwned>(
    submission: &Submission,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Refusal> {
    let bytes = json_bytes(submission, headers, body).await?;
    serde_json::from_slice(&bytes).map_err(|error| no_sense(&error))
}

/// Reads a small value. It needs no permit, for which known callers wait, so the caller may be one who is not known yet.
pub(crate) async fn small_value<T: DeserializeOwned>(headers: &HeaderMap, body: Body) -> Result<T, Refusal> {
    check_json(headers)?;
    let read = Limited::new(body, SMALL).collect();
    let read = tokio::time::timeout(WITHIN, read).await.map_err(|_| late(WITHIN))?;
    let bytes = read.map_err(|error| broken(&*error, SMALL))?.to_bytes();
    serde_json::from_slice(&bytes).map_err(|error| no_sense(&error))
}

/// Reads at most 64 KiB of any kind, without a permit.
pub(crate) async fn small_bytes(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    check_type(headers, "application/octet-stream")?;
    let read = Limited::new(body, SMALL).collect();
    let read = tokio::time::timeout(WITHIN, read).await.map_err(|_| late(WITHIN))?;
    Ok(read.map_err(|error| broken(&*error, SMALL))?.to_bytes())
}

/// Reads commands.
pub(crate) async fn commands<C: DeserializeOwned>(
    submission: &Submission,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bulk<C>, Refusal> {
    let bytes = json_bytes(submission, headers, body).await?;
    read_commands(&bytes)
}

fn read_commands<C: DeserializeOwned>(text: &[u8]) -> Result<Bulk<C>, Refusal> {
    let bytes = text.len();
    let (commands, traces): (Vec<_>, _) = match serde_json::from_slice::<Commands<C>>(text) {
        Ok(Commands { commands, traces }) => (commands.into_iter().map(Ok).collect(), traces),
        // Parsed one by one, to find the invalid commands.
        Err(error) => match serde_json::from_slice::<Commands<serde_json::Value>>(text) {
            Ok(Commands { commands, traces }) => {
                let read = |command| serde_json::from_value(command).map_err(|error| no_sense(&error));
                (commands.into_iter().map(read).collect(), traces)
            }
            Err(_) => return Err(no_sense(&error)),
        },
    };
    match commands.len() {
        count if count > MAX_COMMANDS => {
            let message = format!("{count} commands in one request; at most {MAX_COMMANDS} are taken");
            Err(Refusal::bad_request(message))
        }
        _ => Ok(Bulk { commands, traces, bytes }),
    }
}

/// Returns the refusal of what cannot be read.
pub(crate) fn no_sense(error: &serde_json::Error) -> Refusal {
    let told = excerpt::of_message(&error.to_string());
    Refusal::bad_request(format!("invalid request: {told}"))
}

/// Reads the text of a request with JSON.
pub(crate) async fn json_bytes(
    submission: &Submission,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, Refusal> {
    check_json(headers)?;
    tokio::time::timeout(WITHIN, read(body, MAX_COMMANDS_BYTES, &submission.bodies))
        .await
        .map_err(|_| late(WITHIN))?
}

/// Refuses a content type that web pages can send without permission.
fn check_json(headers: &HeaderMap) -> Result<(), Refusal> {
    check_type(headers, "application/json")
}

pub(crate) fn check_type(headers: &HeaderMap, expected: &str) -> Result<(), Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case(expected)) {
        return Err(Refusal::bad_request(format!("the request's content-type must be {expected}")));
    }
    Ok(())
}

/// Reads a whole body, within bounds. Takes a permit once the body turns out to be large.
async fn read(body: Body, limit: usize, permits: &Semaphore) -> Result<Bytes, Refusal> {
    let (mut body, mut bytes) = (Limited::new(body, limit), BytesMut::new());
    let mut permit = None;
    while let Some(frame) = body.frame().await {
        // Trailers are ignored.
        let Ok(data) = frame.map_err(|error| broken(&*error, limit))?.into_data() else { continue };
        if permit.is_none() && bytes.len() + data.len() > SMALL {
            permit = Some(permits.acquire().await);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// A body that is read piece by piece, bounded in size, time and least speed: a slow sender holds a permit that
/// others wait for. Only the wait for the sender counts, not the work on a piece.
pub(crate) struct PacedBody {
    body: Limited<Body>,
    limit: usize,
    within: Duration,
    /// The rest of the total time.
    left: Duration,
    /// The time in which [`PROGRESS`] bytes must arrive.
    progress_within: Duration,
    /// The rest of the current such time.
    progress_left: Duration,
    /// The bytes that arrived in the current such time.
    came: usize,
}

impl PacedBody {
    pub(crate) fn new(body: Body, limit: usize, within: Duration, progress_within: Duration) -> Self {
        let body = Limited::new(body, limit);
        Self { body, limit, within, left: within, progress_within, progress_left: progress_within, came: 0 }
    }

    /// Returns the next piece, or none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let began = Instant::now();
            let timeout = self.left.min(self.progress_left);
            let frame = tokio::time::timeout(timeout, self.body.frame()).await;
            let waited = began.elapsed();
            self.left = self.left.saturating_sub(waited);
            self.progress_left = self.progress_left.saturating_sub(waited);
            let data = match frame {
                Err(_) if self.left.is_zero() => return Err(late(self.within)),
                Err(_) => return Err(slow(self.progress_within)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(broken(&*error, self.limit)),
                // Trailers are ignored.
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            self.came += data.len();
            if self.came >= PROGRESS {
                (self.came, self.progress_left) = (0, self.progress_within);
            }
            return Ok(Some(data));
        }
    }
}

fn slow(within: Duration) -> Refusal {
    let (bytes, seconds) = (PROGRESS >> 10, within.as_secs());
    let message = format!("less than {bytes} KiB of the upload arrived in {seconds} s; send it again");
    Refusal::new(ErrorCode::TryAgain, message)
}

/// Returns the refusal for a late body. The request itself is fine: an agent that was stopped for a while sends its
/// commit again.
fn late(within: Duration) -> Refusal {
    let message = format!("the request did not arrive within {} s; send it again", within.as_secs());
    Refusal::new(ErrorCode::TryAgain, message)
}

fn broken(error: &(dyn std::error::Error + Send + Sync + 'static), limit: usize) -> Refusal {
    match error.is::<LengthLimitError>() {
        true => Refusal::bad_request(format!("the request is larger than {limit} bytes")),
        false => Refusal::new(ErrorCode::TryAgain, format!("the request was aborted: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt as _, stream};
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

    /// Returns a body that begins with some bytes and never ends.
    fn endless(bytes: usize) -> Body {
        let first = stream::iter([Ok::<_, Infallible>(vec![b' '; bytes])]);
        Body::from_stream(first.chain(stream::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn only_large_bodies_take_a_permit_and_one_that_stalls_is_to_be_sent_again() {
        let permits = Semaphore::new(1);
        let within = |body| tokio::time::timeout(WITHIN, read(body, MAX_COMMANDS_BYTES, &permits));
        let (small, large) = (endless(SMALL), endless(SMALL + 1));
        let (small, large, other, complete) =
            tokio::join!(within(small), within(large), within(endless(SMALL + 1)), within(Body::from("{}")));
        assert!(small.is_err() && large.is_err() && other.is_err());
        assert_eq!(complete.unwrap().unwrap(), "{}");
        assert_eq!(permits.available_permits(), 1);
    }

    const PROGRESS_WITHIN: Duration = Duration::from_secs(10);

    /// Reads the whole of a steady body.
    async fn steady(body: Body, limit: usize, within: Duration) -> Result<Bytes, Refusal> {
        let (mut body, mut bytes) = (PacedBody::new(body, limit, within, PROGRESS_WITHIN), BytesMut::new());
        while let Some(piece) = body.next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    }

    /// Returns a body of so many pieces, with a pause before each.
    fn dripping(pieces: usize, size: usize, pause: Duration) -> Body {
        Body::from_stream(stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, Infallible>(vec![b'x'; size])
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_makes_no_headway_is_broken_off_and_a_steady_one_is_read() {
        let (second, limit, within) = (Duration::from_secs(1), 100 << 20, Duration::from_secs(300));
        let began = tokio::time::Instant::now();
        let refusal = steady(endless(1), limit, within).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TryAgain);
        assert_eq!(began.elapsed(), PROGRESS_WITHIN);
        let drip = dripping(usize::MAX, PROGRESS / 20, second);
        let refusal = steady(drip, limit, within).await.unwrap_err();
        assert!(refusal.message.starts_with("less than 256 KiB"), "{refusal}");

        let read = steady(dripping(90, PROGRESS / 9, second), limit, within).await.unwrap();
        assert_eq!(read.len(), 90 * (PROGRESS / 9));
        assert_eq!(steady(Body::from("x"), limit, within).await.unwrap(), "x");
        let refusal = steady(dripping(usize::MAX, PROGRESS, second), limit, second * 60).await.unwrap_err();
        assert!(refusal.message.contains("within 60 s"), "{refusal}");
        let refusal = steady(Body::from("x".repeat(11)), 10, within).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::BadRequest);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_are_never_sent_hold_up_no_large_one() {
        let permits = Semaphore::new(1);
        let mut slow: Vec<_> =
            (0..100).map(|_| Box::pin(read(endless(1), MAX_COMMANDS_BYTES, &permits))).collect();
        for body in &mut slow {
            assert!(futures_util::poll!(body).is_pending());
        }
        let large = Body::from("x".repeat(2 * SMALL));
        let read = tokio::time::timeout(WITHIN, read(large, MAX_COMMANDS_BYTES, &permits)).await;
        assert_eq!(read.unwrap().unwrap().len(), 2 * SMALL);
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
