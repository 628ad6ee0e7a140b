//! Log targets: places that a pod forwards its services' logs to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    read::{is_default, or_default},
    service::Override,
};
use crate::word::words;

words! {
    /// The protocol of a log target.
    pub(crate) enum LogTargetKind {
        /// Grafana Loki's push API.
        Loki = "loki",
        /// Syslog by TCP or UDP.
        Syslog = "syslog",
        /// OpenTelemetry's protocol by HTTP.
        OpenTelemetry = "opentelemetry",
    }
}

/// A log target of a layer or of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct LogTarget {
    #[serde(
        rename = "override",
        deserialize_with = "Override::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) mode: Option<Override>,
    #[serde(
        rename = "type",
        deserialize_with = "LogTargetKind::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) kind: Option<LogTargetKind>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) location: String,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) services: Vec<String>,
    #[serde(deserialize_with = "or_default", skip_serializing_if = "is_default")]
    pub(crate) labels: BTreeMap<String, String>,
}

/// The words of a list of services that mean all of them and none of them.
pub(super) const ALL: &str = "all";
pub(super) const NONE: &str = "-all";

impl LogTarget {
    /// Returns true if the lines of a service go to the target. The last word of the list that concerns the service counts.
    pub(crate) fn selects(&self, service: &str) -> bool {
        let word = |word: &String| match word.as_str() {
            ALL => Some(true),
            NONE => Some(false),
            name if name == service => Some(true),
            name => (name.strip_prefix('-') == Some(service)).then_some(false),
        };
        self.services.iter().rev().find_map(word).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_from_its_first_word_to_its_last() {
        for (words, expected) in [
            (vec![], vec![]),
            (vec!["all"], vec!["a", "b", "c"]),
            (vec!["a", "b"], vec!["a", "b"]),
            (vec!["all", "-b"], vec!["a", "c"]),
            (vec!["-b", "all"], vec!["a", "b", "c"]),
            (vec!["all", "-all", "c"], vec!["c"]),
            (vec!["a", "-a"], vec![]),
            (vec!["-all"], vec![]),
        ] {
            let services = words.iter().map(|word| (*word).to_owned()).collect();
            let target = LogTarget { services, ..LogTarget::default() };
            let selected: Vec<_> = ["a", "b", "c"].into_iter().filter(|name| target.selects(name)).collect();
            assert_eq!(selected, expected, "{words:?}");
        }
    }
}
