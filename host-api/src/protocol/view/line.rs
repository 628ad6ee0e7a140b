//! The transport of frames: a frame that is too large for one line of a watch takes several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Frame, ViewEntity, ViewKey};
use crate::{Revision, StoreId, size, trace::RevisionTrace};

/// One line of a watch: a frame, or a part of one. A receiver applies a frame once it has all of its lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FrameLine {
    /// The store that the revisions belong to.
    pub store: StoreId,
    /// The revision of the view that the frame starts from; none means an empty view (a full replacement).
    pub from: Option<Revision>,
    /// The revision up to which the view after the whole frame is complete.
    pub to: Revision,
    /// The line's place in its frame; none if it is the only line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineNumber>,
    /// The entries that are new or differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<ViewEntity>,
    /// The keys of the entries that are gone or no longer visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletes: Vec<ViewKey>,
    /// The commands that the frame's revisions come from; in its first line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<RevisionTrace>,
}

/// A line's place among the lines of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LineNumber {
    /// The line's number, from 1.
    pub number: u32,
    /// The number of lines.
    pub of: u32,
}

impl FrameLine {
    /// Returns true if the line is the first of a frame.
    pub fn is_first(&self) -> bool {
        self.line.is_none_or(|line| line.number == 1)
    }

    /// Returns true if the line is the last of a frame.
    pub fn is_last(&self) -> bool {
        self.line.is_none_or(|line| line.number == line.of)
    }

    /// Returns true if the line only says that nothing has changed.
    pub fn is_heartbeat(&self) -> bool {
        self.from.is_some() && self.puts.is_empty() && self.deletes.is_empty()
    }
}

impl From<Frame> for FrameLine {
    fn from(Frame { store, from, to, puts, deletes, traces }: Frame) -> Self {
        Self { store, from, to, line: None, puts, deletes, traces }
    }
}

impl Frame {
    /// Cuts the frame into lines. A line's entries take at most `most` bytes as JSON, or are a single entry.
    pub fn into_lines(self, most: usize) -> Vec<FrameLine> {
        let Self { store, from, to, puts, deletes, traces } = self;
        let empty = FrameLine {
            store,
            from,
            to,
            line: None,
            puts: Vec::new(),
            deletes: Vec::new(),
            traces: Vec::new(),
        };
        let first = FrameLine { traces, ..empty.clone() };
        let mut splitter = LineSplitter { most, bytes: 0, line: first, empty, full: Vec::new() };
        for key in deletes {
            splitter.line_for(&key).deletes.push(key);
        }
        for entity in puts {
            splitter.line_for(&entity).puts.push(entity);
        }
        let mut lines = splitter.full;
        lines.push(splitter.line);
        if lines.len() > 1 {
            let of = u32::try_from(lines.len()).unwrap_or(u32::MAX);
            for (number, line) in (1..).zip(&mut lines) {
                line.line = Some(LineNumber { number, of });
            }
        }
        lines
    }
}

/// A frame that is being split into lines.
struct LineSplitter {
    most: usize,
    /// The bytes that the present line's entries take.
    bytes: usize,
    line: FrameLine,
    empty: FrameLine,
    full: Vec<FrameLine>,
}

impl LineSplitter {
    /// Returns the line for an entry or a key.
    fn line_for(&mut self, item: &impl Serialize) -> &mut FrameLine {
        // One more for the comma. An entry that cannot be serialized has a line of its own, and fails when the line
        // is written.
        let bytes = size::of_json(item).saturating_add(1);
        if self.bytes > 0 && self.bytes.saturating_add(bytes) > self.most {
            self.full.push(std::mem::replace(&mut self.line, self.empty.clone()));
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        &mut self.line
    }
}

/// Joins lines to frames.
#[derive(Debug, Default)]
pub struct FrameLines {
    /// A frame with missing lines, and the number of the next line.
    begun: Option<(Frame, u32)>,
}

/// The error for a line that does not follow the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {} of {} of the frame to revision {to} came without those before it", .line.number, .line.of)]
pub struct LostLine {
    line: LineNumber,
    to: Revision,
}

impl FrameLines {
    /// Takes the next line, and returns the frame if the line completes it. A first line starts a new frame and drops
    /// an incomplete one.
    pub fn take(&mut self, line: FrameLine) -> Result<Option<Frame>, LostLine> {
        let last = line.is_last();
        let FrameLine { store, from, to, line, puts, deletes, traces } = line;
        let begun = self.begun.take();
        let (frame, next) = match line {
            None | Some(LineNumber { number: 1, .. }) => {
                (Frame { store, from, to, puts, deletes, traces }, 2)
            }
            Some(line) => {
                let follows = |(frame, next): &(Frame, u32)| {
                    (frame.store, frame.from, frame.to, *next) == (store, from, to, line.number)
                };
                let (mut frame, next) = begun.filter(follows).ok_or(LostLine { line, to })?;
                frame.puts.extend(puts);
                frame.deletes.extend(deletes);
                (frame, next.saturating_add(1))
            }
        };
        if last {
            return Ok(Some(frame));
        }
        self.begun = Some((frame, next));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::StateView;

    fn frame(states: usize, length: usize) -> Frame {
        let state = |number: usize| {
            ViewEntity::State(StateView {
                key: crate::state::StateKey { unit: "a/0".parse().unwrap(), key: format!("{number}") },
                value: "\u{1}".repeat(length),
            })
        };
        Frame {
            store: StoreId(uuid::Uuid::nil()),
            from: None,
            to: Revision(7),
            puts: (0..states).map(state).collect(),
            deletes: vec![ViewKey::Model; states],
            traces: vec![RevisionTrace {
                revision: Revision(7),
                context: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap(),
            }],
        }
    }

    fn joined(lines: Vec<FrameLine>) -> Frame {
        let mut gathered = FrameLines::default();
        let mut frames: Vec<Frame> =
            lines.into_iter().filter_map(|line| gathered.take(line).unwrap()).collect();
        assert_eq!(frames.len(), 1);
        frames.remove(0)
    }

    #[test]
    fn what_fits_is_one_line_as_it_always_was() {
        let frame = frame(3, 10);
        let [line] = <[_; 1]>::try_from(frame.clone().into_lines(1 << 20)).unwrap();
        assert_eq!(serde_json::to_value(&line).unwrap(), serde_json::to_value(&frame).unwrap());
        assert_eq!(joined(vec![line]), frame);
    }

    #[test]
    fn a_frame_is_cut_by_what_it_takes_as_json_and_is_whole_again() {
        // Each byte of the value takes six bytes of JSON.
        let frame = frame(20, 1_000);
        let lines = frame.clone().into_lines(15_000);
        assert!(lines.len() >= 10, "{}", lines.len());
        for line in &lines {
            assert!(serde_json::to_vec(line).unwrap().len() < 16_000);
            assert_eq!(
                serde_json::from_slice::<FrameLine>(&serde_json::to_vec(line).unwrap()).unwrap(),
                *line
            );
        }
        assert_eq!(joined(lines), frame);
        let each = frame.clone().into_lines(0);
        assert_eq!(each.len(), 40, "one entry is never cut");
        assert_eq!(joined(each), frame);
    }

    #[test]
    fn a_line_that_is_missing_is_noticed_and_a_first_line_begins_anew() {
        let lines = frame(3, 10).into_lines(0);
        let mut gathered = FrameLines::default();
        assert_eq!(gathered.take(lines[0].clone()), Ok(None));
        gathered.take(lines[2].clone()).unwrap_err();
        gathered.take(lines[1].clone()).unwrap_err();
        assert_eq!(gathered.take(lines[0].clone()), Ok(None));
        let other = FrameLine { to: Revision(8), ..lines[1].clone() };
        gathered.take(other).unwrap_err();
        assert_eq!(gathered.take(lines[0].clone()), Ok(None));
        assert_eq!(gathered.take(lines[0].clone()), Ok(None));
        let taken: Vec<_> = lines[1..].iter().map(|line| gathered.take(line.clone()).unwrap()).collect();
        assert_eq!(taken.last(), Some(&Some(frame(3, 10))));
    }
}
