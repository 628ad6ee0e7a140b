//! Failed calls of etcd, by what can be done about them.

use etcd_client::Error;
use periapt_log::LogError;
use tonic::Code;

/// The failure of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Another endpoint or a later call may succeed. It is unknown if a write took effect.
    Unavailable(String),
    /// The history that a watch or a read asks for is gone.
    Compacted,
    /// The answer has more bytes than this client takes.
    AnswerTooLarge,
    /// The lease is over.
    LeaseGone,
    /// The database is full.
    Full,
    /// The caller is unknown or has no right.
    Authentication(String),
    /// Another refusal.
    Refused(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::GRpcStatus(status) => Self::of_status(status.code(), status.message()),
            Error::LeaseKeepAliveError(reason) if reason == "lease not found" => Self::LeaseGone,
            Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::Utf8Error(_) => {
                Self::Refused(error.to_string())
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl Failure {
    /// Returns the failure of a call that a member refused after another one had left its outcome unknown.
    pub(crate) fn after_doubt(self, endpoint: &str) -> Self {
        match self {
            refusal @ (Self::Full | Self::Authentication(_) | Self::Refused(_)) => {
                Self::Unavailable(format!("{endpoint}: {}", LogError::from(refusal)))
            }
            answer => answer,
        }
    }

    fn of_status(code: Code, message: &str) -> Self {
        let message = message.strip_prefix("etcdserver: ").unwrap_or(message);
        let text = || message.chars().take(300).collect::<String>();
        match code {
            Code::OutOfRange if message.contains("compacted") => Self::Compacted,
            Code::OutOfRange if message.contains("too large") => Self::AnswerTooLarge,
            Code::NotFound if message.contains("lease") => Self::LeaseGone,
            Code::ResourceExhausted if message.contains("space exceeded") => Self::Full,
            Code::PermissionDenied | Code::Unauthenticated => Self::Authentication(text()),
            Code::InvalidArgument if message.contains("user name is empty") => Self::Authentication(text()),
            Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented | Code::NotFound => {
                Self::Refused(text())
            }
            _ if message.is_empty() => Self::Unavailable(code.to_string()),
            _ => Self::Unavailable(text()),
        }
    }
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unavailable(reason) => Self::Unavailable(reason),
            Failure::Compacted => Self::Unavailable("etcd has compacted the history".into()),
            Failure::AnswerTooLarge => Self::Damaged("an answer of etcd is too large".into()),
            Failure::LeaseGone => Self::Unavailable("the lease is over".into()),
            Failure::Full => Self::Refused(
                "etcd's database is full (alarm NOSPACE): compact and defragment it, then 'etcdctl alarm disarm'".into(),
            ),
            Failure::Authentication(reason) => Self::Refused(format!("etcd needs authentication: {reason}")),
            Failure::Refused(reason) => Self::Refused(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_etcd_is_known_by_what_can_be_done_about_it() {
        for (code, message, expected) in [
            (Code::Unavailable, "etcdserver: leader changed", Failure::Unavailable("leader changed".into())),
            (Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted", Failure::Compacted),
            (Code::OutOfRange, "Error, decoded message length too large: found 9", Failure::AnswerTooLarge),
            (Code::NotFound, "etcdserver: requested lease not found", Failure::LeaseGone),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Failure::Full),
            (
                Code::ResourceExhausted,
                "etcdserver: too many requests",
                Failure::Unavailable("too many requests".into()),
            ),
            (
                Code::InvalidArgument,
                "etcdserver: user name is empty",
                Failure::Authentication("user name is empty".into()),
            ),
            (
                Code::InvalidArgument,
                "etcdserver: request is too large",
                Failure::Refused("request is too large".into()),
            ),
        ] {
            assert_eq!(Failure::of_status(code, message), expected);
        }
    }
}
