//! The output of services, as lines in rings.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use crate::limits::PodLimits;

/// A line of a service's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputLine {
    /// The number of the line in the pod.
    pub number: u64,
    /// The time at which its end was read.
    pub time: Timestamp,
    /// The service.
    pub service: String,
    /// The text without the line break.
    pub message: String,
}

/// The newest output of one service.
#[derive(Debug, Clone, Default)]
struct Ring {
    lines: VecDeque<OutputLine>,
    bytes: usize,
    /// The begin of a line whose end was not read yet.
    partial: Vec<u8>,
    /// The number of lines that gave way to newer ones.
    dropped: u64,
}

/// The lines that ended in a piece of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EndedLines {
    pub(crate) count: usize,
    /// The bytes of the piece.
    pub(crate) bytes: usize,
}

/// The newest output of all services.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logs {
    rings: BTreeMap<String, Ring>,
    next: u64,
}

/// Bytes that a line costs beside its text, so that empty lines are not free.
pub(crate) const LINE_COST: usize = 32;

impl Logs {
    /// Adds output of a service. Lines that are too long are split.
    pub(crate) fn write(
        &mut self,
        date: Timestamp,
        service: &str,
        bytes: &[u8],
        limits: &PodLimits,
    ) -> EndedLines {
        let mut ended = EndedLines { count: 0, bytes: bytes.len() };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ring = self.rings.entry(service.to_owned()).or_default();
            let mut rest = piece;
            while !rest.is_empty() {
                let room = limits.log_line.saturating_sub(ring.partial.len()).max(1);
                let (now, later) = rest.split_at(rest.len().min(room));
                ring.partial.extend_from_slice(now);
                rest = later;
                if now.ends_with(b"\n") || ring.partial.len() >= limits.log_line {
                    ring.end_line(date, service, self.next, limits);
                    self.next += 1;
                    ended.count += 1;
                }
            }
        }
        ended
    }

    /// Ends a line that was begun, as when a service has ended.
    pub(crate) fn flush(&mut self, date: Timestamp, service: &str, limits: &PodLimits) -> EndedLines {
        let Some(ring) = self.rings.get_mut(service).filter(|ring| !ring.partial.is_empty()) else {
            return EndedLines::default();
        };
        let bytes = ring.partial.len();
        ring.end_line(date, service, self.next, limits);
        self.next += 1;
        EndedLines { count: 1, bytes }
    }

    /// Returns lines of some services, or of all, from a number on, the newest `newest` alone.
    pub(crate) fn read(&self, services: &[String], from: u64, newest: Option<usize>) -> Vec<OutputLine> {
        let rings = self.rings.iter().filter(|(name, _)| services.is_empty() || services.contains(name));
        let mut lines: Vec<OutputLine> = rings
            .flat_map(|(_, ring)| ring.lines.iter().filter(|line| line.number >= from).cloned())
            .collect();
        lines.sort_by_key(|line| line.number);
        let over = newest.map_or(0, |newest| lines.len().saturating_sub(newest));
        lines.drain(..over);
        lines
    }

    /// Returns the last lines of a service.
    pub(crate) fn tail(&self, service: &str, count: usize) -> Vec<&str> {
        let Some(ring) = self.rings.get(service) else { return Vec::new() };
        let over = ring.lines.len().saturating_sub(count);
        ring.lines.iter().skip(over).map(|line| line.message.as_str()).collect()
    }

    /// Returns the number of lines that a service has ended so far.
    pub(crate) fn count(&self, service: &str) -> u64 {
        self.rings.get(service).map_or(0, |ring| ring.dropped + ring.lines.len() as u64)
    }

    /// Returns the number of lines of a service that gave way to newer ones.
    pub(crate) fn dropped(&self, service: &str) -> u64 {
        self.rings.get(service).map_or(0, |ring| ring.dropped)
    }

    /// Returns the line at a place among all that a service has ended, counted from 0; none if it is not kept.
    pub(crate) fn line(&self, service: &str, place: u64) -> Option<&OutputLine> {
        let ring = self.rings.get(service)?;
        ring.lines.get(usize::try_from(place.checked_sub(ring.dropped)?).ok()?)
    }

    /// Returns the number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

impl Ring {
    fn end_line(&mut self, time: Timestamp, service: &str, number: u64, limits: &PodLimits) {
        let text = String::from_utf8_lossy(&self.partial);
        let message = text.trim_end_matches('\n').trim_end_matches('\r').to_owned();
        self.bytes += message.len() + LINE_COST;
        self.lines.push_back(OutputLine { number, time, service: service.to_owned(), message });
        self.partial.clear();
        while self.bytes > limits.log_ring {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.message.len() + LINE_COST);
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(logs: &Logs) -> Vec<String> {
        logs.read(&[], 0, None).into_iter().map(|line| line.message).collect()
    }

    #[test]
    fn output_becomes_lines() {
        let (mut logs, limits) = (Logs::default(), PodLimits { log_line: 4, ..PodLimits::default() });
        for piece in ["a", "b\r\n", "\ncdefgh\n", "i"] {
            logs.write(Timestamp::UNIX_EPOCH, "s", piece.as_bytes(), &limits);
        }
        assert_eq!((logs.count("s"), logs.dropped("s"), logs.count("other")), (4, 0, 0));
        assert_eq!(logs.line("s", 2).map(|line| line.message.as_str()), Some("cdef"));
        assert_eq!((logs.line("s", 4), logs.line("other", 0)), (None, None));
        assert_eq!(messages(&logs), ["ab", "", "cdef", "gh"]);
        logs.flush(Timestamp::UNIX_EPOCH, "s", &limits);
        assert_eq!(messages(&logs), ["ab", "", "cdef", "gh", "i"]);
        assert_eq!(logs.tail("s", 2), ["gh", "i"]);
        assert_eq!(logs.read(&["other".to_owned()], 0, None), []);
        assert_eq!(logs.read(&[], 3, None).len(), 2);
        assert_eq!(logs.read(&[], 0, Some(1)).len(), 1);
    }

    proptest! {
        #[test]
        fn a_ring_stays_small(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..60)) {
            let (mut logs, limits) = (Logs::default(), PodLimits { log_ring: 1_000, log_line: 100, ..PodLimits::default() });
            let mut ended = 0;
            for piece in pieces {
                ended += logs.write(Timestamp::UNIX_EPOCH, "s", &piece, &limits).count as u64;
                // Each line has its place for as long as it is kept.
                prop_assert_eq!(logs.count("s"), ended);
                prop_assert_eq!(logs.line("s", logs.dropped("s")).is_some(), ended > logs.dropped("s"));
                prop_assert_eq!(logs.dropped("s").checked_sub(1).and_then(|gone| logs.line("s", gone)), None);
                let ring = &logs.rings.values().next();
                prop_assert!(ring.is_none_or(|ring| ring.bytes <= 1_000 && ring.partial.len() < 100));
            }
        }
    }
}
