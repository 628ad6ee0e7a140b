//! The joining of further controllers. A token is known to the controller that admitted its holder alone, and in memory
//! only: it ends with its use, its time, or that controller.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use periapt_blobs::{S3Error, S3Options};
use periapt_host_api::{
    Digest, ErrorCode, Refusal,
    member::{BlobsPlace, LogPlace, MAX_MEMBER_JOIN_VALIDITY, MemberAdmission, MemberJoin, MemberKeys},
};
use periapt_transport::Authority;

use super::clocks::clock_difference;
use crate::{clock::Clock, seal::SealKey};

/// The most controllers that are admitted at a time.
const MAX_ADMITTED: usize = 16;

/// The most bytes of a controller's name, which stands in its certificate.
const MAX_NAME: usize = 64;

/// The admitted controllers, and the keys that they are given. Cloning is cheap.
#[derive(Clone, Default)]
pub(crate) struct Joins {
    admitted: Arc<Mutex<BTreeMap<Digest, Admitted>>>,
    keys: Option<Arc<SharedKeys>>,
}

struct Admitted {
    member: String,
    /// The end of its token, in milliseconds of the monotonic clock.
    until_ms: u64,
}

/// The keys and the log that all controllers share.
pub(crate) struct SharedKeys {
    pub(crate) authority: Arc<Authority>,
    pub(crate) seal: SealKey,
    pub(crate) log: LogPlace,
    pub(crate) blobs: Option<S3Options>,
}

impl Joins {
    pub(crate) fn new(keys: Option<SharedKeys>) -> Self {
        Self { admitted: Arc::default(), keys: keys.map(Arc::new) }
    }

    /// Admits a controller, in the place of an earlier admission of its name.
    pub(crate) fn admit(&self, admission: MemberAdmission, now_ms: u64) -> Result<(), Refusal> {
        self.keys()?;
        let MemberAdmission { member, token, valid_for } = admission;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if member.is_empty() || member.len() > MAX_NAME || !member.chars().all(is_plain) {
            let text = format!(
                "invalid controller name {member:?}: up to {MAX_NAME} letters, digits and the characters - _ . are allowed"
            );
            return Err(Refusal::bad_request(text));
        }
        let longest = MAX_MEMBER_JOIN_VALIDITY.as_secs();
        if valid_for == 0 || valid_for > longest {
            return Err(Refusal::bad_request(format!("a token is valid for 1 to {longest} seconds")));
        }
        let mut admitted = self.admitted.lock();
        admitted.retain(|_, known| known.until_ms > now_ms && known.member != member);
        if admitted.len() >= MAX_ADMITTED {
            let text = format!("{MAX_ADMITTED} controllers are admitted already; their tokens end by time");
            return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
        }
        let until_ms = now_ms.saturating_add(valid_for.saturating_mul(1_000));
        admitted.insert(token, Admitted { member, until_ms });
        Ok(())
    }

    /// Checks a token, and then the clock of the machine that shows it. The refusal does not tell if the token or the name
    /// is wrong.
    pub(crate) fn check(&self, join: &MemberJoin, clock: &dyn Clock) -> Result<(), Refusal> {
        self.keys()?;
        match self.admitted.lock().get(&join.token.digest()) {
            Some(known) if known.admits(join, clock.monotonic_ms()) => {}
            _ => return Err(not_admitted()),
        }
        let difference = clock_difference(join.now.unwrap_or_else(|| clock.now()), clock.now());
        let refused = |difference| {
            let text = format!("the clock of this machine is {difference} that of the controllers: set it");
            Refusal::new(ErrorCode::Conflict, text)
        };
        difference.map_or(Ok(()), |difference| Err(refused(difference)))
    }

    /// Takes a token, and returns the keys.
    pub(crate) fn join(&self, join: &MemberJoin, now_ms: u64) -> Result<MemberKeys, Refusal> {
        let keys = self.keys()?;
        let token = join.token.digest();
        let mut admitted = self.admitted.lock();
        if !admitted.get(&token).is_some_and(|known| known.admits(join, now_ms)) {
            return Err(not_admitted());
        }
        // The credentials may have been changed since this controller started.
        let blobs = keys.blobs.as_ref().map(place).transpose().map_err(|error| {
            Refusal::new(
                ErrorCode::StorageUnavailable,
                format!("the place of the blobs cannot be told: {error}"),
            )
        })?;
        admitted.remove(&token);
        Ok(MemberKeys {
            authority: keys.authority.certificate().to_owned(),
            authority_key: keys.authority.key_pem(),
            secret_key: keys.seal.reveal(),
            log: keys.log.clone(),
            blobs,
        })
    }

    fn keys(&self) -> Result<&SharedKeys, Refusal> {
        self.keys.as_deref().ok_or_else(|| {
            let text = "this controller shares its state with no other: it was started without --log";
            Refusal::new(ErrorCode::NotSupported, text)
        })
    }
}

impl Admitted {
    fn admits(&self, join: &MemberJoin, now_ms: u64) -> bool {
        self.member == join.member && self.until_ms > now_ms
    }
}

fn not_admitted() -> Refusal {
    let text =
        "this token admits no controller of this name: it is used or too old, or another controller made it";
    Refusal::permission_denied(text)
}

/// Returns the place of blobs, as another controller is told it.
fn place(options: &S3Options) -> Result<BlobsPlace, S3Error> {
    Ok(BlobsPlace {
        url: options.url.to_string(),
        endpoint: options.endpoint.as_ref().map(ToString::to_string),
        region: options.region.clone(),
        authority: options.authority.clone(),
        credentials: options.credentials.read()?.to_text(),
    })
}

#[cfg(test)]
mod tests {
    use periapt_blobs::{CredentialsFrom, S3Credentials, S3Timeouts};
    use periapt_host_api::token::{TOKEN_BYTES, TokenKind};

    use super::*;

    fn joins() -> Joins {
        Joins::new(Some(SharedKeys {
            authority: Arc::new(Authority::generate().unwrap()),
            seal: SealKey::new(&[7; 32]).unwrap(),
            log: LogPlace { url: "etcd://a:1".into(), authority: None, identity: None },
            blobs: Some(S3Options {
                url: "s3://blobs/p".parse().unwrap(),
                endpoint: None,
                region: None,
                authority: None,
                credentials: CredentialsFrom::Given(S3Credentials {
                    key_id: "id".into(),
                    secret: "PRIVATE".into(),
                    token: None,
                }),
                timeouts: S3Timeouts::default(),
            }),
        }))
    }

    fn join(member: &str, secret: u8) -> MemberJoin {
        let token = periapt_host_api::token::Token::new(TokenKind::Join, [secret; TOKEN_BYTES]);
        MemberJoin { member: member.into(), token, level: periapt_host_api::LEVEL, now: None }
    }

    fn admission(join: &MemberJoin) -> MemberAdmission {
        MemberAdmission { member: join.member.clone(), token: join.token.digest(), valid_for: 10 }
    }

    #[test]
    fn a_token_gives_the_keys_once_to_its_name_within_its_time() {
        let (joins, two) = (joins(), join("two", 1));
        joins.admit(admission(&two), 0).unwrap();
        let denied = |join: &MemberJoin, now| joins.join(join, now).unwrap_err().code;
        assert_eq!(denied(&join("three", 1), 1), ErrorCode::PermissionDenied);
        assert_eq!(denied(&join("two", 2), 1), ErrorCode::PermissionDenied);
        assert_eq!(denied(&two, 10_000), ErrorCode::PermissionDenied, "its time is over");
        let keys = joins.join(&two, 9_999).unwrap();
        assert_eq!(keys.log.url, "etcd://a:1");
        let blobs = keys.blobs.as_ref().unwrap();
        assert_eq!(blobs.url, "s3://blobs/p");
        assert!(blobs.credentials.contains("aws_secret_access_key = PRIVATE"));
        assert!(!format!("{keys:?}").contains("PRIVATE"), "{keys:?}");
        assert_eq!(denied(&two, 9_999), ErrorCode::PermissionDenied, "it was used");
    }

    #[test]
    fn a_newer_admission_ends_the_earlier_one_of_the_name_and_their_number_is_bounded() {
        let joins = joins();
        let (earlier, later) = (join("two", 1), join("two", 2));
        joins.admit(admission(&earlier), 0).unwrap();
        joins.admit(admission(&later), 0).unwrap();
        assert!(joins.join(&earlier, 1).is_err());
        for number in 0..15 {
            joins.admit(admission(&join(&format!("m{number}"), 100 + number)), 0).unwrap();
        }
        let one_more = joins.admit(admission(&join("one-more", 99)), 0).unwrap_err();
        assert_eq!(one_more.code, ErrorCode::QuotaExceeded);
        assert!(joins.admit(admission(&join("one-more", 99)), 10_000).is_ok(), "tokens end by time");
        for bad in ["", "two words", &"x".repeat(65)] {
            assert_eq!(joins.admit(admission(&join(bad, 3)), 0).unwrap_err().code, ErrorCode::BadRequest);
        }
        let alone = Joins::default().admit(admission(&later), 0).unwrap_err();
        assert_eq!(alone.code, ErrorCode::NotSupported);
    }
}
