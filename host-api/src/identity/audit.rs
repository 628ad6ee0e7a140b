//! The audit log: the controller's list of who did what, as a chain of digests. An entry that is changed, dropped or
//! put in breaks the chain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, ErrorCode, Timestamp, UserName, user::SessionId};

/// The outcome of an audited request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditOutcome {
    /// The controller carried it out.
    Done,
    /// The controller refused it.
    Refused(ErrorCode),
}

/// One request, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AuditedRequest {
    /// The time.
    pub at: Timestamp,
    /// The user; none if the request proved none.
    pub user: Option<UserName>,
    /// The session; none for the operator on the controller's own host.
    pub session: Option<SessionId>,
    /// The address that the request came from.
    pub address: String,
    /// The command, such as `deploy`.
    pub act: String,
    /// The subject, such as `model UUID`; may be empty.
    pub subject: String,
    /// The outcome.
    pub outcome: AuditOutcome,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AuditEntry {
    /// The number: rises by one from 1.
    pub number: u64,
    /// The request.
    pub request: AuditedRequest,
    /// The digest of the entry before; that of nothing for the first.
    pub previous: Digest,
    /// The digest of the number, the request and `previous`.
    pub digest: Digest,
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AuditPage {
    /// The entries, the oldest first.
    pub entries: Vec<AuditEntry>,
    /// The end of the page, to continue after; none at the end of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A break of the chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditBreak {
    /// The entry's digest is another than that of its content.
    #[error("entry {0} was changed")]
    Changed(u64),
    /// The entry does not follow the one before.
    #[error("entry {next} does not follow entry {previous}: entries were removed or inserted")]
    Gap {
        /// The number of the entry before.
        previous: u64,
        /// The number of the entry.
        next: u64,
    },
}

impl AuditEntry {
    /// Makes the entry that follows another one; none for the first.
    pub fn after(before: Option<(u64, Digest)>, request: AuditedRequest) -> Self {
        let (number, previous) = before.map_or((0, Digest::of(b"")), |before| before);
        let number = number.saturating_add(1);
        let digest = digest_of(number, &request, &previous);
        Self { number, request, previous, digest }
    }

    /// Checks the entry, and that it follows the one before. The first entry of a list may follow one that was pruned.
    ///
    /// # Errors
    /// The chain is broken here.
    pub fn verify(&self, before: Option<&Self>) -> Result<(), AuditBreak> {
        if digest_of(self.number, &self.request, &self.previous) != self.digest {
            return Err(AuditBreak::Changed(self.number));
        }
        match before {
            Some(before)
                if before.number.saturating_add(1) != self.number || before.digest != self.previous =>
            {
                Err(AuditBreak::Gap { previous: before.number, next: self.number })
            }
            _ => Ok(()),
        }
    }
}

fn digest_of(number: u64, request: &AuditedRequest, previous: &Digest) -> Digest {
    // All parts have texts as keys, so they can be written.
    Digest::of(&serde_json::to_vec(&(number, request, previous)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(act: &str) -> AuditedRequest {
        AuditedRequest {
            at: Timestamp::UNIX_EPOCH,
            user: Some("jane".parse().unwrap()),
            session: None,
            address: "192.0.2.7".into(),
            act: act.into(),
            subject: String::new(),
            outcome: AuditOutcome::Refused(ErrorCode::NotFound),
        }
    }

    #[test]
    fn a_chain_shows_what_was_changed_dropped_or_put_in() {
        let one = AuditEntry::after(None, request("deploy"));
        let two = AuditEntry::after(Some((one.number, one.digest)), request("grant-model"));
        let three = AuditEntry::after(Some((two.number, two.digest)), request("remove-unit"));
        assert_eq!(
            (one.verify(None), two.verify(Some(&one)), three.verify(Some(&two))),
            (Ok(()), Ok(()), Ok(()))
        );
        assert_eq!(three.verify(Some(&one)), Err(AuditBreak::Gap { previous: 1, next: 3 }));
        let changed = AuditEntry { request: request("nothing"), ..two.clone() };
        assert_eq!(changed.verify(Some(&one)), Err(AuditBreak::Changed(2)));
        let forged = AuditEntry::after(Some((one.number, one.digest)), request("nothing"));
        assert!(three.verify(Some(&forged)).is_err());
    }
}
