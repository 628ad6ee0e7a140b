//! The output of a container's services, on its way from a pod to an operator (decision 93).
//!
//! The controller hands the operator's order to the unit's agent with its assignments. The agent asks the pod, and hands
//! the pod's answer over in parts, each a request of its own, as the bytes that the pod wrote: an answer of HTTP/1.0 whose
//! content has one [`WorkloadLogLine`] as JSON in each line. The operator's client alone reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContainerName, ModelUuid, Refusal, UnitName};

/// The most bytes of one part.
pub const MAX_PART_BYTES: usize = 64 << 10;

/// The most services that one order names.
const MAX_SERVICES: usize = 32;

/// The most bytes of a service's name.
const MAX_NAME_BYTES: usize = 255;

/// The output that an operator asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadLogQuery {
    /// The container.
    pub container: ContainerName,
    /// The services; all if it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// The number of newest lines; none for all that the pod keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// True if new lines are to follow as they come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follow: bool,
}

/// An order to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadLogOrder {
    /// The model.
    pub model: ModelUuid,
    /// The unit.
    pub unit: UnitName,
    /// The output.
    pub query: WorkloadLogQuery,
}

/// The kinds of parts that an agent hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadLogPart {
    /// The agent takes the order. This part comes first. The controller refuses it if the order was taken before, because
    /// then the agent was started again: no command runs twice, and no reader gets output twice. A log ends by that.
    Begun,
    /// The next bytes of the pod's answer, or the next lines of a session.
    Data,
    /// The answer has ended. Of a session, the content is the command's exit code.
    End,
    /// There is no answer, or no further one; the content says why.
    Failed,
}

/// The controller's answer to a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartAnswer {
    /// The part is on its way to the operator.
    Taken,
    /// The operator has taken nothing for ten seconds. Nothing of the part was taken: the agent hands it over again, and asks
    /// the command or the pod for no more until then.
    NoRoom,
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadLogLine {
    /// The time at which it was written, as RFC 3339.
    pub time: String,
    /// The service.
    pub service: String,
    /// The line.
    pub message: String,
}

impl WorkloadLogQuery {
    /// Checks the bounds of a query.
    ///
    /// # Errors
    /// It names too many services, or names that are too long.
    pub fn check(&self) -> Result<(), Refusal> {
        let is_bounded = |name: &String| !name.is_empty() && name.len() <= MAX_NAME_BYTES;
        match self.services.len() <= MAX_SERVICES && self.services.iter().all(is_bounded) {
            true => Ok(()),
            false => Err(Refusal::bad_request(format!(
                "at most {MAX_SERVICES} services are named, each in 1 to {MAX_NAME_BYTES} bytes"
            ))),
        }
    }

    /// Returns the request to a pod, whose answer ends with its stream.
    #[must_use]
    pub fn request(&self) -> String {
        let lines = self.tail.map_or_else(|| "-1".to_owned(), |tail| tail.to_string());
        let mut path = format!("/v1/logs?n={lines}");
        if self.follow {
            path.push_str("&follow=true");
        }
        for service in &self.services {
            path.push_str("&services=");
            for byte in service.bytes() {
                match byte.is_ascii_alphanumeric() {
                    true => path.push(char::from(byte)),
                    false => path.push_str(&format!("%{byte:02X}")),
                }
            }
        }
        format!("GET {path} HTTP/1.0\r\nhost: pod\r\n\r\n")
    }
}

impl WorkloadLogPart {
    /// Returns the kind's name in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Data => "data",
            Self::End => "end",
            Self::Failed => "failed",
        }
    }
}

impl std::str::FromStr for WorkloadLogPart {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::Begun, Self::Data, Self::End, Self::Failed]
            .into_iter()
            .find(|part| part.as_str() == text)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_service_leaves_its_place_in_the_request() {
        let services = vec!["web".to_owned(), "a b&follow=true\r\nx: y".to_owned()];
        let query =
            WorkloadLogQuery { container: "web".parse().unwrap(), services, tail: Some(5), follow: false };
        assert_eq!(
            query.request(),
            "GET /v1/logs?n=5&services=web&services=a%20b%26follow%3Dtrue%0D%0Ax%3A%20y HTTP/1.0\r\nhost: pod\r\n\r\n"
        );
        query.check().unwrap();
        let long = WorkloadLogQuery { services: vec!["x".repeat(256)], ..query.clone() };
        assert!(long.check().is_err());
        assert!(WorkloadLogQuery { services: vec!["x".to_owned(); 33], ..query }.check().is_err());
    }
}
