//! The logins at the issuer that are under way. A client that waits for a result drives the polls of the issuer, so a
//! login that nobody waits for costs nothing, and is forgotten.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{Digest, ErrorCode, Refusal, token::Token, user::BegunLogin};
use periapt_model::IssuerLogin;
use periapt_transport::CertificateError;

use super::{
    client::{Authorization, IssuerClient, LoginError, Polled},
    metadata::Metadata,
    options::OidcOptions,
};
use crate::{
    bounds::{Slot, Slots},
    clock::{Clock, RandomSource},
    login::after,
    network::Network,
};

/// The time after which a question for a result begins no more polls, in milliseconds. A client waits for an answer for
/// 30 s: with a last poll of 10 s and the issuer's keys within 10 s it comes in time.
const WAITS_MS: u64 = 8_000;

/// The time after which a login that no client asks for is forgotten, in milliseconds.
const ABANDONED_AFTER_MS: u64 = 60_000;

/// The most logins under way of callers from one network. Strangers begin them.
const OF_NETWORK: usize = 16;

/// The most logins under way.
const OF_ALL: usize = 256;

/// The seconds that RFC 8628 adds to the pause when the issuer says `slow_down`.
const SLOW_DOWN: u64 = 5;

/// The polls in a row that may fail: an issuer may restart while a person types a code.
const MAX_FAILURES: u32 = 3;

/// The logins at the issuer, if the controller has one. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct IssuerLogins(Option<Arc<Shared>>);

struct Shared {
    client: IssuerClient,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
    slots: Slots<Network>,
    /// The logins that no request waits for at present, by the digests of their tokens.
    idle: Mutex<BTreeMap<Digest, Begun>>,
}

/// A login that has begun.
struct Begun {
    metadata: Metadata,
    authorization: Authorization,
    nonce: String,
    /// The pause between two polls, in seconds.
    interval: u64,
    failures: u32,
    poll_at_ms: u64,
    expires_at_ms: u64,
    forgotten_at_ms: u64,
    _slot: Slot<Network>,
}

/// A login that one request waits for. Unless it is finished, it is idle again when the request ends.
struct Awaited<'a> {
    shared: &'a Shared,
    token: Digest,
    begun: Option<Begun>,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if let Some(mut begun) = self.begun.take() {
            begun.forgotten_at_ms = self.shared.clock.monotonic_ms().saturating_add(ABANDONED_AFTER_MS);
            self.shared.idle.lock().insert(self.token, begun);
        }
    }
}

impl IssuerLogins {
    /// Creates the logins at an issuer; without options no login begins.
    ///
    /// # Errors
    /// The authorities that the issuer's certificate is checked by cannot be read.
    pub(crate) fn new(
        options: Option<OidcOptions>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn RandomSource>,
    ) -> Result<Self, CertificateError> {
        let Some(options) = options else { return Ok(Self(None)) };
        let client = IssuerClient::new(options)?;
        let (slots, idle) = (Slots::new(OF_NETWORK, OF_ALL), Mutex::default());
        Ok(Self(Some(Arc::new(Shared { client, clock, random, slots, idle }))))
    }

    fn shared(&self) -> Result<&Shared, Refusal> {
        self.0.as_deref().ok_or_else(|| {
            let text = "this controller has no issuer of identities; users log in by password";
            Refusal::new(ErrorCode::NotSupported, text)
        })
    }

    /// Begins a login of a caller from a network. `token` is what the client asks for the result with.
    pub(crate) async fn begin(&self, network: Network, token: Token) -> Result<BegunLogin, Refusal> {
        let shared = self.shared()?;
        shared.forget_ended();
        let slot = shared.slots.take(network).ok_or_else(|| {
            let text = "too many logins at the issuer are under way; try again later";
            Refusal::new(ErrorCode::TooManyRequests, text)
        })?;
        let nonce = hex::encode(shared.random.seed());
        let metadata = shared.client.metadata().await.map_err(|error| shared.refusal(&error))?;
        let authorization = shared.client.authorize(&metadata, &nonce).await;
        let authorization = authorization.map_err(|error| shared.refusal(&error))?;
        let now_ms = shared.clock.monotonic_ms();
        let begun = BegunLogin {
            verification_uri: authorization.verification_uri.clone(),
            user_code: authorization.user_code.clone(),
            expires_at: after(shared.clock.now(), authorization.expires_in),
            token,
        };
        let idle = Begun {
            interval: authorization.interval,
            failures: 0,
            poll_at_ms: now_ms.saturating_add(authorization.interval * 1_000),
            expires_at_ms: now_ms.saturating_add(authorization.expires_in * 1_000),
            forgotten_at_ms: now_ms.saturating_add(ABANDONED_AFTER_MS),
            metadata,
            authorization,
            nonce,
            _slot: slot,
        };
        shared.idle.lock().insert(begun.token.digest(), idle);
        Ok(begun)
    }

    /// Waits for the result of a login; none if it is still pending after a while.
    pub(crate) async fn result(&self, token: &Token) -> Result<Option<IssuerLogin>, Refusal> {
        let shared = self.shared()?;
        shared.forget_ended();
        let digest = token.digest();
        let begun = shared.idle.lock().remove(&digest).ok_or_else(|| {
            let text = "the login is unknown or has ended; begin another one";
            Refusal::new(ErrorCode::NotLoggedIn, text)
        })?;
        let mut awaited = Awaited { shared, token: digest, begun: Some(begun) };
        let result = shared.wait(awaited.begun.as_mut()).await;
        if !matches!(result, Ok(None)) {
            awaited.begun = None;
        }
        result.map_err(|error| shared.refusal(&error))
    }
}

impl Shared {
    fn refusal(&self, error: &LoginError) -> Refusal {
        tracing::warn!(issuer = %self.client.options.issuer, %error, "a login at the issuer failed");
        error.refusal(self.client.options.issuer.as_str())
    }

    fn forget_ended(&self) {
        let now_ms = self.clock.monotonic_ms();
        self.idle.lock().retain(|_, begun| begun.expires_at_ms.min(begun.forgotten_at_ms) > now_ms);
    }

    async fn wait(&self, begun: Option<&mut Begun>) -> Result<Option<IssuerLogin>, LoginError> {
        let Some(begun) = begun else { return Ok(None) };
        let until_ms = self.clock.monotonic_ms().saturating_add(WAITS_MS);
        loop {
            let now_ms = self.clock.monotonic_ms();
            if now_ms >= begun.expires_at_ms {
                return Err(LoginError::Expired);
            }
            if now_ms >= until_ms {
                return Ok(None);
            }
            let next_ms = begun.poll_at_ms.min(until_ms).min(begun.expires_at_ms);
            if now_ms < next_ms {
                self.clock.sleep(Duration::from_millis(next_ms - now_ms)).await;
                continue;
            }
            if let Some(id_token) = self.poll(begun).await? {
                let verified = self.client.verify(&begun.metadata, &id_token, &begun.nonce, self.clock.now());
                return verified.await.map(Some);
            }
            begun.poll_at_ms = self.clock.monotonic_ms().saturating_add(begun.interval * 1_000);
        }
    }

    /// Polls the issuer once, and returns the ID token if the user has approved.
    async fn poll(&self, begun: &mut Begun) -> Result<Option<String>, LoginError> {
        match self.client.poll(&begun.metadata, &begun.authorization).await {
            Ok(Polled::Approved { id_token }) => return Ok(Some(id_token)),
            Ok(Polled::Pending) => begun.failures = 0,
            Ok(Polled::SlowDown) => {
                begun.failures = 0;
                begun.interval = begun.interval.saturating_add(SLOW_DOWN);
            }
            Err(error @ LoginError::Fetch(_)) => {
                begun.failures += 1;
                begun.interval = begun.interval.saturating_mul(2);
                if begun.failures >= MAX_FAILURES {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }
}
