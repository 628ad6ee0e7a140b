//! Trace contexts: the span that made a request, a revision or a frame (W3C Trace Context, level 1).
//!
//! A context is data: it names a span, and says nothing of time. The pure crates pass it on as it is.

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Revision;

/// The header of a request that carries a [`TraceContext`].
pub const TRACEPARENT: &str = "traceparent";

/// The most contexts that one frame carries: the newest of its revisions. A frame that brings more was late.
pub const MAX_FRAME_TRACES: usize = 8;

/// A span of a trace, as the header `traceparent` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TraceContext {
    /// The trace.
    pub trace: NonZeroU128,
    /// The span.
    pub span: NonZeroU64,
    /// True if the trace is recorded.
    pub is_sampled: bool,
}

/// The command that a revision comes from, if the command's request was traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RevisionTrace {
    /// The revision.
    pub revision: Revision,
    /// The command's span.
    pub context: TraceContext,
}

/// The error for a text that is no trace context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid trace context: it must be 00-TRACE-SPAN-FLAGS with 32, 16 and 2 lower-case hex digits, and no id of zeros"
)]
pub struct TraceContextError;

impl FromStr for TraceContext {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let mut parts = text.split('-');
        let mut next = |length| hex(parts.next().ok_or(TraceContextError)?, length);
        let (version, trace, span, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        // A later version may append parts; this one has none.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return Err(TraceContextError);
        }
        let span = u64::try_from(span).ok().and_then(NonZeroU64::new);
        Ok(Self {
            trace: NonZeroU128::new(trace).ok_or(TraceContextError)?,
            span: span.ok_or(TraceContextError)?,
            is_sampled: flags & 1 == 1,
        })
    }
}

fn hex(text: &str, length: usize) -> Result<u128, TraceContextError> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match text.len() == length && text.bytes().all(is_hex) {
        true => u128::from_str_radix(text, 16).map_err(|_| TraceContextError),
        false => Err(TraceContextError),
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = TraceContextError;

    fn try_from(text: String) -> Result<Self, TraceContextError> {
        text.parse()
    }
}

impl From<TraceContext> for String {
    fn from(context: TraceContext) -> Self {
        context.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written_as_the_header_has_it() {
        let context: TraceContext = TEXT.parse().unwrap();
        assert_eq!(context.trace.get(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span.get(), context.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), TEXT);
        let json = serde_json::to_string(&context).unwrap();
        assert_eq!(json, format!("\"{TEXT}\""));
        assert_eq!(serde_json::from_str::<TraceContext>(&json).unwrap(), context);
    }

    #[test]
    fn a_later_version_may_append_parts_and_this_one_may_not() {
        assert!(format!("{TEXT}-more").parse::<TraceContext>().is_err());
        let later = TEXT.replacen("00", "01", 1);
        assert!(format!("{later}-more").parse::<TraceContext>().is_ok());
        assert!(TEXT.replacen("00", "ff", 1).parse::<TraceContext>().is_err());
    }

    #[test]
    fn what_is_no_context_is_refused() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(wrong.parse::<TraceContext>().is_err(), "{wrong}");
        }
    }
}
