//! Hashes of passwords by argon2id. Hashing takes memory and time by design, so few hashes are made at once, in threads of
//! their own.

use std::sync::{Arc, OnceLock};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc},
};
use periapt_host_api::{ErrorCode, Refusal, password::Password};
use periapt_model::entity::PasswordHash;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::{Semaphore, oneshot};

use crate::clock::RandomSource;

/// The memory of one hash in KiB, the passes and the lanes: the first choice of OWASP's recommendations for argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The hashes that are made at once, each in a thread of its own. With [`MEMORY_KIB`] it bounds the memory that strangers can
/// make use of: the allocator keeps what a thread has freed for this thread, so any thread of the runtime's would keep as
/// much.
const AT_ONCE: usize = 2;

/// The hashes that may wait. More logins are refused: each hash takes some 20 ms.
const WAITING: usize = 64;

/// The maker and checker of hashes. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Passwords {
    random: Arc<dyn RandomSource>,
    /// The threads, which start with the first hash; none if the system gives no more.
    threads: Arc<OnceLock<Option<ThreadPool>>>,
    permits: Arc<Semaphore>,
}

impl Passwords {
    pub(crate) fn new(random: Arc<dyn RandomSource>) -> Self {
        Self { random, threads: Arc::default(), permits: Arc::new(Semaphore::new(AT_ONCE + WAITING)) }
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

    /// Runs a hash in one of the threads, within bounds.
    async fn outside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let busy = || Refusal::new(ErrorCode::TooManyRequests, "too many logins at once; try again later");
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| busy())?;
        let threads = self.threads.get_or_init(started).as_ref();
        let threads = threads.ok_or_else(|| failed(&"the system starts no thread for it"))?;
        let (done, hashed) = oneshot::channel();
        threads.spawn(move || {
            let result = work();
            // The permit is kept even if the caller goes away meanwhile.
            drop(permit);
            let _ = done.send(result);
        });
        hashed.await.map_err(|_| failed(&"its thread panicked"))?
    }
}

/// Starts the threads.
fn started() -> Option<ThreadPool> {
    let threads = ThreadPoolBuilder::new()
        .num_threads(AT_ONCE)
        .thread_name(|number| format!("passwords-{number}"))
        // The caller is told.
        .panic_handler(|_| tracing::error!("a password was not hashed: the thread panicked"))
        .build();
    threads.inspect_err(|error| tracing::error!(%error, "passwords cannot be hashed")).ok()
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
