//! Several streams of lines as one, in order of their times.

use std::{
    collections::VecDeque,
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::StreamExt as _;
use periapt_client::{ClientError, NdJson};
use periapt_host_api::{Timestamp, logs::LogLine};
use tokio::time::{Instant, timeout_at};

/// The time for which a line waits for earlier lines of other streams that go on. An agent hands output over five times
/// a second.
const HOLD: Duration = Duration::from_millis(500);

/// The time after which a line waits no more for a stream that has earlier lines without end, as one whose host's clock
/// is slow.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// The bytes of held lines from which a stream is read no further.
const MAX_HELD_BYTES: usize = 256 << 10;

/// The bytes that a line counts beside its text.
const LINE_BYTES: usize = 64;

/// A line that says when it was written.
pub(crate) trait DatedLine {
    /// Returns the time.
    fn time(&self) -> Timestamp;

    /// Returns the size of its text, in bytes.
    fn size(&self) -> usize;
}

impl DatedLine for LogLine {
    fn time(&self) -> Timestamp {
        self.at
    }

    fn size(&self) -> usize {
        self.message.len()
    }
}

/// The time of a stream's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// Each stream ends after its present lines. Their order is exact.
    AfterPresentLines,
    /// Streams go on. A line that comes late may be shown after later ones.
    Never,
}

/// The next event of one of the streams, named by its index.
#[derive(Debug)]
pub(crate) enum Merged<T> {
    /// The next line.
    Line(usize, T),
    /// The end, after the stream's last line.
    End(usize, Result<(), ClientError>),
}

/// Streams that are read as one. Their lines that wait take bounded memory.
pub(crate) struct LineMerge<T> {
    sources: Vec<Source<T>>,
    end: StreamEnd,
}

/// A stream with the lines that were read and not shown yet.
struct Source<T> {
    stream: Option<NdJson<T>>,
    held: VecDeque<Held<T>>,
    bytes: usize,
    /// The end, once it was read, until it was told.
    ended: Option<Result<(), ClientError>>,
}

struct Held<T> {
    line: T,
    since: Instant,
}

impl<T: DatedLine> LineMerge<T> {
    /// Creates one of streams whose own lines are in order.
    pub(crate) fn of(streams: impl IntoIterator<Item = NdJson<T>>, end: StreamEnd) -> Self {
        let source = |stream| Source { stream: Some(stream), held: VecDeque::new(), bytes: 0, ended: None };
        Self { sources: streams.into_iter().map(source).collect(), end }
    }

    /// Waits for the next line or end; none after the end of each stream was told.
    pub(crate) async fn next(&mut self) -> Option<Merged<T>> {
        loop {
            if let Some(next) = self.due(Instant::now()) {
                return Some(next);
            }
            if self.sources.iter().all(|source| source.stream.is_none()) {
                return None;
            }
            let until = match self.end {
                StreamEnd::Never => self.oldest().map(|(_, head)| head.since + HOLD),
                StreamEnd::AfterPresentLines => None,
            };
            let read = poll_fn(|context| self.poll_read(context));
            match until {
                // After the time, the line that waits is due.
                Some(until) => timeout_at(until, read).await.unwrap_or(()),
                None => read.await,
            }
        }
    }

    /// Reads what each stream that has room gives now.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut read = Poll::Pending;
        for source in self.sources.iter_mut().filter(|source| source.has_room()) {
            let Some(stream) = &mut source.stream else { continue };
            match stream.poll_next_unpin(context) {
                Poll::Pending => continue,
                Poll::Ready(Some(Ok(line))) => source.hold(line),
                Poll::Ready(Some(Err(error))) => source.end(Err(error)),
                Poll::Ready(None) => source.end(Ok(())),
            }
            read = Poll::Ready(());
        }
        read
    }

    /// Returns what can be told now: a line that no stream may have an earlier one for, or that has waited long enough.
    fn due(&mut self, now: Instant) -> Option<Merged<T>> {
        for (index, source) in self.sources.iter_mut().enumerate() {
            if source.held.is_empty()
                && let Some(end) = source.ended.take()
            {
                return Some(Merged::End(index, end));
            }
        }
        let (oldest, since) = self.oldest().map(|(index, head)| (index, head.since))?;
        let has_waited = |hold| self.end == StreamEnd::Never && now >= since + hold;
        let may_be_earlier =
            self.sources.iter().any(|source| source.stream.is_some() && source.held.is_empty());
        let is_full = self.sources.iter().any(|source| !source.has_room());
        let index = match has_waited(LONGEST_HOLD) {
            true => oldest,
            false if may_be_earlier && !is_full && !has_waited(HOLD) => return None,
            false => self.earliest()?,
        };
        let line = self.sources.get_mut(index)?.release()?;
        Some(Merged::Line(index, line))
    }

    /// Returns the first held lines of the streams.
    fn heads(&self) -> impl Iterator<Item = (usize, &Held<T>)> {
        self.sources.iter().enumerate().filter_map(|(index, source)| Some((index, source.held.front()?)))
    }

    /// Returns the one that has waited longest.
    fn oldest(&self) -> Option<(usize, &Held<T>)> {
        self.heads().min_by_key(|(_, head)| head.since)
    }

    /// Returns the stream of the one that was written first.
    fn earliest(&self) -> Option<usize> {
        self.heads().min_by_key(|(_, head)| head.line.time()).map(|(index, _)| index)
    }
}

impl<T: DatedLine> Source<T> {
    fn has_room(&self) -> bool {
        self.bytes < MAX_HELD_BYTES
    }

    fn hold(&mut self, line: T) {
        self.bytes += line.size() + LINE_BYTES;
        self.held.push_back(Held { line, since: Instant::now() });
    }

    fn release(&mut self) -> Option<T> {
        let Held { line, .. } = self.held.pop_front()?;
        self.bytes = self.bytes.saturating_sub(line.size() + LINE_BYTES);
        Some(line)
    }

    fn end(&mut self, end: Result<(), ClientError>) {
        self.stream = None;
        self.ended = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};
    use tokio::{sync::mpsc, time::sleep};

    use super::*;

    /// A line of a stream, written at a second.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Line(i64, &'static str);

    impl DatedLine for Line {
        fn time(&self) -> Timestamp {
            Timestamp::from_second(self.0).unwrap()
        }

        fn size(&self) -> usize {
            self.1.len()
        }
    }

    /// Returns a stream, and where its lines come from.
    fn open() -> (mpsc::UnboundedSender<Line>, NdJson<Line>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let lines = stream::unfold(receiver, |mut receiver| async move {
            let line = receiver.recv().await?;
            Some((Ok::<_, ClientError>(line), receiver))
        });
        (sender, Box::pin(lines))
    }

    fn present(lines: &[Line]) -> NdJson<Line> {
        Box::pin(stream::iter(lines.to_vec()).map(Ok::<_, ClientError>))
    }

    async fn line(merge: &mut LineMerge<Line>) -> Line {
        match merge.next().await {
            Some(Merged::Line(_, line)) => line,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn present_lines_are_in_order_of_time_and_each_end_is_told_after_the_last_line() {
        let (one, two) = ([Line(1, "a"), Line(3, "c")], [Line(2, "b"), Line(2, "b"), Line(9, "d")]);
        let mut merge =
            LineMerge::of([present(&one), present(&two), present(&[])], StreamEnd::AfterPresentLines);
        let mut told = Vec::new();
        while let Some(next) = merge.next().await {
            told.push(match next {
                Merged::Line(_, Line(_, text)) => text.to_owned(),
                Merged::End(index, end) => format!("end {index} {}", end.is_ok()),
            });
        }
        assert_eq!(told.iter().filter(|told| !told.starts_with("end")).count(), 5);
        let lines: Vec<_> = told.iter().filter(|told| !told.starts_with("end")).cloned().collect();
        assert_eq!(lines.join(""), "abbcd");
        let at = |wanted: &str| told.iter().position(|told| told == wanted).unwrap();
        assert!(at("c") < at("end 0 true") && at("d") < at("end 1 true") && at("end 2 true") < at("d"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_followed_line_waits_a_while_for_earlier_ones_and_not_for_a_stream_that_is_silent() {
        let ((one, first), (two, second)) = (open(), open());
        let mut merge = LineMerge::of([first, second], StreamEnd::Never);
        one.send(Line(5, "later")).unwrap();
        assert!(merge.next().now_or_never().is_none());
        sleep(HOLD / 2).await;
        two.send(Line(4, "earlier")).unwrap();
        let began = Instant::now();
        assert_eq!(line(&mut merge).await.1, "earlier");
        assert_eq!(line(&mut merge).await.1, "later");
        assert!(began.elapsed() < HOLD, "{:?}", began.elapsed());
        // A silent stream holds many lines up no longer than one.
        for number in 0..100 {
            one.send(Line(10 + number, "more")).unwrap();
        }
        let began = Instant::now();
        for number in 0..100 {
            assert_eq!(line(&mut merge).await, Line(10 + number, "more"));
        }
        assert!(began.elapsed() < HOLD * 2, "{:?}", began.elapsed());
        drop(one);
        assert!(matches!(merge.next().await, Some(Merged::End(0, Ok(())))));
        drop(two);
        assert!(matches!(merge.next().await, Some(Merged::End(1, Ok(())))));
        assert!(merge.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_with_a_slow_clock_keeps_no_other_for_long() {
        let ((one, first), (two, second)) = (open(), open());
        let mut merge = LineMerge::of([first, second], StreamEnd::Never);
        one.send(Line(1_000, "now")).unwrap();
        let began = Instant::now();
        loop {
            two.send(Line(1, "slow")).unwrap();
            two.send(Line(1, "slow")).unwrap();
            if line(&mut merge).await.1 == "now" {
                break;
            }
            sleep(Duration::from_millis(20)).await;
            assert!(began.elapsed() < LONGEST_HOLD * 2, "the other stream still waits");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded() {
        const TEXT: &str = "sixteen bytes ..";
        let ((_silent, first), (two, second)) = (open(), open());
        let mut merge = LineMerge::of([first, second], StreamEnd::AfterPresentLines);
        let most = MAX_HELD_BYTES / (TEXT.len() + LINE_BYTES) + 1;
        for _ in 0..most {
            two.send(Line(1, TEXT)).unwrap();
        }
        assert_eq!(line(&mut merge).await.1, TEXT);
        assert!(merge.next().now_or_never().is_none(), "there is room again");
    }
}
