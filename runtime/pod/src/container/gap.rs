//! Parts of the confinement that a host lacks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the confinement that a host lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The part.
    pub part: String,
    /// The reason.
    pub reason: String,
    /// The remedy; may be empty.
    pub remedy: String,
}

impl Gap {
    /// Creates a gap.
    pub(super) fn new(part: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { part: part.to_owned(), reason: reason.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

/// Returns the parts with their remedies as one line for `status`; empty if the host lacks nothing. The reasons are in
/// the log.
pub(super) fn summary<'a>(gaps: impl IntoIterator<Item = &'a Gap>) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for gap in gaps {
        let (part, remedy) = (gap.part.as_str(), gap.remedy.as_str());
        match groups.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, parts)) => parts.push(part),
            None => groups.push((remedy, vec![part])),
        }
    }
    let group = |(remedy, parts): (&str, Vec<&str>)| match remedy {
        "" => parts.join(", "),
        remedy => format!("{} ({remedy})", parts.join(", ")),
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_one_remedy_are_told_together_and_reasons_left_to_the_log() {
        let gaps = [
            Gap::new("limit of memory", "permission denied", "run the agent as root"),
            Gap::new("users", "there is no range", "add one"),
            Gap::new("limit of processes", "permission denied", "run the agent as root"),
            Gap::new("/sys", "it is empty", ""),
        ];
        let told = "limit of memory, limit of processes (run the agent as root); users (add one); /sys";
        assert_eq!(summary(&gaps), told);
        assert_eq!(summary(&[]), "");
        let all: Vec<_> = gaps.iter().map(ToString::to_string).collect();
        assert_eq!(
            (all[1].as_str(), all[3].as_str()),
            ("users: there is no range; add one", "/sys: it is empty")
        );
    }
}
