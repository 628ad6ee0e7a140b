//! Hashes of passwords by argon2id. Hashing takes memory and time by design, so few hashes are made at once, outside of
//! the threads that answer requests.

use std::sync::Arc;

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc},
};
use periapt_host_api::{ErrorCode, Refusal, password::Password};
use periapt_model::entity::PasswordHash;
use tokio::sync::Semaphore;

use crate::clock::RandomSource;

/// The memory of one hash in KiB, the passes and the lanes: the first choice of OWASP's recommendations for argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The hashes that are made at once. With [`MEMORY_KIB`] it bounds the memory that strangers can make use of.
const AT_ONCE: usize = 2;

/// The hashes that may wait. More logins are refused: each hash takes some 20 ms.
const WAITING: usize = 64;

/// The maker and checker of hashes. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Passwords {
    random: Arc<dyn RandomSource>,
    turns: Arc<Semaphore>,
    permits: Arc<Semaphore>,
}

impl Passwords {
    pub(crate) fn new(random: Arc<dyn RandomSource>) -> Self {
        let (turns, permits) = (Semaphore::new(AT_ONCE), Semaphore::new(AT_ONCE + WAITING));
        Self { random, turns: Arc::new(turns), permits: Arc::new(permits) }
    }

    /// Hashes a new password.
    ///
    /// # Errors
    /// Too many hashes are waiting.
    pub(crate) async fn hash(&self, password: Password) -> Result<PasswordHash, Refusal> {
        let salt = self.random.seed();
        self.outside(move || hashed(&password, &salt).map(|hash| PasswordHash(hash.to_string()))).await
    }

    /// Returns true if a password has a hash. Without a hash it takes as long, and returns false: the time of a login
    /// does not tell if the user exists.
    ///
    /// # Errors
    /// Too many hashes are waiting.
    pub(crate) async fn verify(
        &self,
        password: Password,
        hash: Option<PasswordHash>,
    ) -> Result<bool, Refusal> {
        self.outside(move || {
            let Some(PasswordHash(text)) = hash else {
                return hashed(&password, &[0; 16]).map(|_| false);
            };
            let known = phc::PasswordHash::new(&text).map_err(|error| failed(&error))?;
            Ok(hasher()?.verify_password(password.reveal().as_bytes(), &known).is_ok())
        })
        .await
    }

    /// Runs a hash in a thread for blocking work, within bounds.
    async fn outside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let busy = || Refusal::new(ErrorCode::TooManyRequests, "too many logins at once; try again later");
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| busy())?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            // The permit is kept even if the caller goes away meanwhile.
            drop((turn, permit));
            done
        });
        done.await.map_err(|error| Refusal::new(ErrorCode::Internal, format!("hashing failed: {error}")))?
    }
}

fn hasher() -> Result<Argon2<'static>, Refusal> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None)
        .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hashed(password: &Password, salt: &[u8]) -> Result<phc::PasswordHash, Refusal> {
    hasher()?.hash_password_with_salt(password.reveal().as_bytes(), salt).map_err(|error| failed(&error))
}

/// Returns the refusal for a hash that cannot be made or read: a defect.
fn failed(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("a password cannot be hashed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomSource;

    fn password(text: &str) -> Password {
        Password::try_from(text.to_owned()).unwrap()
    }

    #[tokio::test]
    async fn a_hash_fits_its_password_alone_and_is_salted() {
        let passwords = Passwords::new(Arc::new(SystemRandomSource));
        let hash = passwords.hash(password("correct horse")).await.unwrap();
        assert!(hash.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", hash.0);
        assert!(passwords.verify(password("correct horse"), Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify(password("wrong horse"), Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify(password("correct horse"), None).await.unwrap());
        assert_ne!(passwords.hash(password("correct horse")).await.unwrap(), hash);
    }
}
