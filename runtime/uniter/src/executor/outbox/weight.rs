//! The size of early items in a message.

use periapt_host_api::commit::{EarlyEffect, EarlyItem};

/// The size of an item beside its texts, in bytes: number, time, and names of fields.
const ITEM: usize = 192;

/// Returns an upper bound of an item's size as JSON. Charms choose the texts, and a control character takes six
/// bytes.
pub fn early_bytes(item: &EarlyItem) -> usize {
    ITEM + match &item.effect {
        EarlyEffect::UnitStatus { message, .. } | EarlyEffect::ApplicationStatus { message, .. } => {
            json_bytes(message)
        }
        EarlyEffect::AgentStatus { message, data, .. } => {
            // A map with text keys always has a JSON form.
            json_bytes(message) + serde_json::to_vec(data).map_or(0, |data| data.len())
        }
        EarlyEffect::ApplicationVersion { version } => json_bytes(version),
        EarlyEffect::TaskMessage { message, .. } => json_bytes(message),
        EarlyEffect::Log { module, message, .. } => json_bytes(module) + json_bytes(message),
    }
}

fn json_bytes(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        LeaderTerm, Timestamp, logs::LogLevel, status::AgentStatus, status::WorkloadStatus,
    };
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_item_takes_more_than_was_said(text in "[\\x00-\\x1f\"\\\\é\u{10ffff}a-z]{0,200}", kind in 0..5) {
            let (status, message) = (WorkloadStatus::Maintenance, text.clone());
            let effect = match kind {
                0 => EarlyEffect::UnitStatus { status, message },
                1 => EarlyEffect::ApplicationStatus { status, message, term: LeaderTerm(u64::MAX) },
                2 => {
                    let data = [(text, true.into())].into_iter().collect();
                    EarlyEffect::AgentStatus { status: AgentStatus::Executing, message, data }
                }
                3 => EarlyEffect::ApplicationVersion { version: text },
                _ => EarlyEffect::Log { level: LogLevel::Warning, module: text, message },
            };
            let item = EarlyItem { number: u64::MAX, at: Timestamp::MAX, effect };
            let encoded = serde_json::to_vec(&item).unwrap().len();
            prop_assert!(encoded <= early_bytes(&item), "{encoded} {}", early_bytes(&item));
        }
    }
}
