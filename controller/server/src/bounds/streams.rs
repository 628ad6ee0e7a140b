//! Bounds on open streams. They are below the bound on connections, so that no number of watchers locks out commands.

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::Version;
use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{AgentName, ErrorCode, ModelUuid, Refusal};
use tokio_util::sync::CancellationToken;

use crate::metrics::metrics;

/// Streams of operators (logs and statuses): of one model, and of all models.
const OPERATORS_OF_MODEL: usize = 128;
const OPERATORS: usize = 512;
/// Streams of agents. A model has one for each host with units of it, and one more while a runner reconnects.
const AGENTS_OF_MODEL: usize = 2_048;
const AGENTS: usize = 16_384;
/// Streams of one agent's assignments. A keeper needs one; the rest is for lost connections that are not noticed yet.
const OF_AGENT: usize = 8;
/// Streams without HTTP/2, each of which has its own connection: a quarter of all connections.
const WITHOUT_HTTP2: usize = 256;

/// The subject of a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamOf {
    /// A log or a status of a model, for operators.
    Model(ModelUuid),
    /// A view of a model, for a runner.
    Runner(ModelUuid),
    /// An agent's assignments.
    Agent(AgentName),
}

/// The counts of open streams. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamLimits(Arc<Mutex<BTreeMap<Bound, usize>>>);

/// The permit of one stream. Dropping it admits another stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    limits: StreamLimits,
    taken: Vec<Bound>,
    /// The stream's kind, for the metrics.
    kind: &'static str,
}

/// The life of a stream whose reader may pause for as long as the stream lasts: a dialogue, or the log of a workload. A
/// response has it among its extensions. HTTP/2's pings tell that the reader's connection lives. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct PatientStream {
    /// Cancelled when the caller loses the right to the stream, also while its reader takes nothing.
    pub(crate) revoked: CancellationToken,
    /// Cancelled once nothing more is made for the stream. From then on a reader that takes nothing is not waited for.
    pub(crate) over: CancellationToken,
}

/// A bound on open streams.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Of(StreamOf),
    Operators,
    Agents,
    WithoutHttp2,
}

impl Bound {
    fn most(&self) -> usize {
        match self {
            Self::Of(StreamOf::Model(_)) => OPERATORS_OF_MODEL,
            Self::Of(StreamOf::Runner(_)) => AGENTS_OF_MODEL,
            Self::Of(StreamOf::Agent(_)) => OF_AGENT,
            Self::Operators => OPERATORS,
            Self::Agents => AGENTS,
            Self::WithoutHttp2 => WITHOUT_HTTP2,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(StreamOf::Model(model)) => write!(f, "logs and statuses of model {model}"),
            Self::Of(StreamOf::Runner(model)) => write!(f, "views of model {model}"),
            Self::Of(StreamOf::Agent(agent)) => write!(f, "the assignments of agent {agent}"),
            Self::Operators => f.write_str("logs and statuses"),
            Self::Agents => f.write_str("agents"),
            Self::WithoutHttp2 => f.write_str("callers without HTTP/2"),
        }
    }
}

impl StreamLimits {
    /// Admits a stream.
    ///
    /// # Errors
    /// Too many streams are open; the message names the bound.
    pub(crate) fn admit(&self, of: StreamOf, version: Version) -> Result<StreamPermit, Refusal> {
        let (whole, kind) = match of {
            StreamOf::Model(_) => (Bound::Operators, "operator"),
            StreamOf::Runner(_) => (Bound::Agents, "view"),
            StreamOf::Agent(_) => (Bound::Agents, "assignments"),
        };
        let mut taken = vec![Bound::Of(of), whole];
        if version < Version::HTTP_2 {
            taken.push(Bound::WithoutHttp2);
        }
        let mut open = self.lock();
        if let Some(full) =
            taken.iter().find(|bound| open.get(bound).is_some_and(|open| *open >= bound.most()))
        {
            metrics().streams_refused.inc(&[kind]);
            let most = full.most();
            let message = format!(
                "{most} streams for {full} are open, which is the most; close some or try again later"
            );
            return Err(Refusal::new(ErrorCode::TooManyRequests, message));
        }
        for bound in &taken {
            *open.entry(bound.clone()).or_default() += 1;
        }
        drop(open);
        metrics().streams.change(&[kind], 1);
        Ok(StreamPermit { limits: self.clone(), taken, kind })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Bound, usize>> {
        // Nothing can panic between the changes of two counts.
        self.0.lock()
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        metrics().streams.change(&[self.kind], -1);
        let mut open = self.limits.lock();
        for bound in &self.taken {
            match open.get_mut(bound) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(open.remove(bound)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(number: u128) -> ModelUuid {
        ModelUuid(uuid::Uuid::from_u128(number))
    }

    fn take(limits: &StreamLimits, of: StreamOf, most: usize) -> Vec<StreamPermit> {
        (0..most).map(|_| limits.admit(of.clone(), Version::HTTP_2).unwrap()).collect()
    }

    #[test]
    fn each_bound_refuses_what_comes_past_it_and_takes_it_once_one_is_gone() {
        let limits = StreamLimits::default();
        let mut held = take(&limits, StreamOf::Model(model(1)), OPERATORS_OF_MODEL);
        let refusal = limits.admit(StreamOf::Model(model(1)), Version::HTTP_2).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooManyRequests);
        assert!(refusal.message.contains("128 streams for logs and statuses of model"), "{refusal}");
        for other in 2..=4 {
            held.extend(take(&limits, StreamOf::Model(model(other)), OPERATORS_OF_MODEL));
        }
        let refusal = limits.admit(StreamOf::Model(model(5)), Version::HTTP_2).unwrap_err();
        assert!(refusal.message.starts_with("512 streams for logs and statuses are open"), "{refusal}");
        // Operators' streams do not lock out agents.
        let runner = limits.admit(StreamOf::Runner(model(1)), Version::HTTP_2).unwrap();
        drop(held.pop());
        held.push(limits.admit(StreamOf::Model(model(5)), Version::HTTP_2).unwrap());
        drop((held, runner));
        assert!(limits.lock().is_empty());
    }

    #[test]
    fn streams_that_hold_a_connection_each_leave_most_connections_free() {
        let limits = StreamLimits::default();
        let held: Vec<_> = (0..WITHOUT_HTTP2)
            .map(|number| limits.admit(StreamOf::Runner(model(number as u128)), Version::HTTP_11).unwrap())
            .collect();
        let refusal = limits.admit(StreamOf::Model(model(9)), Version::HTTP_11).unwrap_err();
        assert!(refusal.message.contains("callers without HTTP/2"), "{refusal}");
        assert!(limits.admit(StreamOf::Model(model(9)), Version::HTTP_2).is_ok());
        drop(held);
    }

    #[test]
    fn an_agent_watches_its_assignments_a_few_times() {
        let limits = StreamLimits::default();
        let of = StreamOf::Agent(AgentName::new("one").unwrap());
        let _held = take(&limits, of.clone(), OF_AGENT);
        assert!(limits.admit(of, Version::HTTP_2).is_err());
    }
}
