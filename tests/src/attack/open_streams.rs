//! Streams and connections that are held open.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::io::AsyncReadExt as _;

use super::{
    AttackScale,
    row::StoppedBy,
    target::AttackedController,
    wire::{INITIAL_WINDOW_SIZE, Reader, Seen, Writer, connect, flag, frame, kind, open, request, setting},
};

/// The most concurrent streams of a user's connection (`docs/security.md`).
const STREAMS: usize = 128;
/// The most connections of one network (`docs/security.md`).
const CONNECTIONS: usize = 256;

/// Returns true if streams were ended as they should be: those past the bound at once, for a reason that HTTP/2 has for
/// such streams, and in the end each of them.
pub(super) fn are_ended(resets: &BTreeMap<u32, usize>, refusals: usize, scale: AttackScale) -> bool {
    // The first, if a stream's body came before its refusal went out.
    const STREAM_CLOSED: u32 = 5;
    const REFUSED_STREAM: u32 = 7;
    let past_the_bound = scale.holders * scale.streams.saturating_sub(STREAMS);
    let refused = |reason: &u32| [STREAM_CLOSED, REFUSED_STREAM].contains(reason);
    let of_bound: usize = resets.iter().filter(|(reason, _)| refused(reason)).map(|(_, count)| count).sum();
    let all: usize = resets.values().sum();
    match scale.until_ended {
        true => of_bound >= past_the_bound && all + refusals == scale.holders * scale.streams,
        false => of_bound == past_the_bound && all == of_bound,
    }
}

/// Returns the number of idle connections that are closed while an attack waits.
pub(super) fn closed_connections(scale: AttackScale) -> usize {
    match scale.until_ended {
        true => scale.connections,
        false => scale.connections.saturating_sub(CONNECTIONS),
    }
}

/// Asks for answers, and leaves no room for a byte of them.
pub(super) async fn stalled_streams(
    target: &AttackedController,
    scale: AttackScale,
) -> anyhow::Result<StoppedBy> {
    let path = format!("/v1/models/{}/status", target.hostile_model);
    let block = request("GET", &path, target, Some(&target.hostile.reveal()));
    let settings = setting(INITIAL_WINDOW_SIZE, 0);
    held(target, scale, &settings, |stream| {
        (frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block), 1)
    })
    .await
}

/// Sends the first byte of each of many requests.
pub(super) async fn slow_bodies(
    target: &AttackedController,
    scale: AttackScale,
) -> anyhow::Result<StoppedBy> {
    let path = format!("/v1/models/{}/commands", target.hostile_model);
    let block = request("POST", &path, target, Some(&target.hostile.reveal()));
    held(target, scale, &[], |stream| {
        let head = frame(kind::HEADERS, flag::END_HEADERS, stream, &block);
        ([head, frame(kind::DATA, flag::NONE, stream, b"{")].concat(), 2)
    })
    .await
}

/// Opens streams over several connections. Waits until those past the bound are refused, or until all are ended.
async fn held(
    target: &AttackedController,
    scale: AttackScale,
    settings: &[u8],
    asked: impl Fn(u32) -> (Vec<u8>, usize),
) -> anyhow::Result<StoppedBy> {
    let refused = scale.streams.saturating_sub(STREAMS);
    let mut connections = Vec::new();
    for _ in 0..scale.holders {
        let (mut writer, reader) = open(target, settings).await?;
        for number in 0..scale.streams {
            let (bytes, frames) = asked(u32::try_from(2 * number + 1)?);
            writer.send(&bytes, frames).await?;
        }
        connections.push((writer, reader));
    }
    let is_over = |seen: &Seen| {
        let resets: usize = seen.resets.values().sum();
        if scale.until_ended { resets + seen.ended >= scale.streams } else { resets >= refused }
    };
    let mut waiting: FuturesUnordered<_> =
        connections.into_iter().map(|ends| until(ends, &is_over)).collect();
    let mut resets = BTreeMap::new();
    let mut refusals = 0;
    while let Some(seen) = waiting.next().await {
        if seen.closed {
            return Ok(StoppedBy::ConnectionClosed { after: scale.streams, reason: seen.goaway });
        }
        if seen.contents > 0 {
            return Ok(StoppedBy::Nobody(format!("{} answers were given", seen.contents)));
        }
        refusals += seen.refusals;
        for (reason, count) in seen.resets {
            *resets.entry(reason).or_default() += count;
        }
    }
    Ok(StoppedBy::StreamsEnded { resets, refusals })
}

/// Reads and answers pings until something is seen, or the connection is closed.
async fn until((mut writer, mut reader): (Writer, Reader), is_over: impl Fn(&Seen) -> bool) -> Seen {
    while !is_over(&reader.seen) && reader.next().await {
        for ping in std::mem::take(&mut reader.seen.pings) {
            // If it fails, the next read does.
            let _ = writer.send(&frame(kind::PING, flag::ACK, 0, &ping), 1).await;
        }
    }
    reader.seen
}

/// Asks, and then neither reads nor answers pings, until the connection is closed.
pub(super) async fn silent_reader(
    target: &AttackedController,
    scale: AttackScale,
) -> anyhow::Result<StoppedBy> {
    let path = format!("/v1/models/{}/status", target.hostile_model);
    let block = request("GET", &path, target, Some(&target.hostile.reveal()));
    let (mut writer, mut reader) =
        open(target, &setting(INITIAL_WINDOW_SIZE, i32::MAX.unsigned_abs())).await?;
    for number in 0..scale.streams.min(STREAMS) {
        let stream = u32::try_from(2 * number + 1)?;
        let asked = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
        writer.send(&asked, 1).await?;
    }
    // Reading without an answer to a ping is as silent to the controller as not to read.
    reader.read_to_end().await;
    Ok(StoppedBy::ConnectionClosed { after: writer.frames, reason: reader.seen.goaway })
}

/// Opens connections, and asks nothing.
pub(super) async fn idle_connections(
    target: &AttackedController,
    scale: AttackScale,
) -> anyhow::Result<StoppedBy> {
    let network = target.next_network();
    let mut open: FuturesUnordered<_> = (0..scale.connections)
        .map(|_| async move {
            // One past the bound is closed during its handshake.
            if let Ok(mut stream) = connect(target, network).await {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
            }
        })
        .collect();
    let expected = closed_connections(scale);
    let mut closed = 0;
    while closed < expected && open.next().await.is_some() {
        closed += 1;
    }
    Ok(StoppedBy::ConnectionsClosed(closed))
}
