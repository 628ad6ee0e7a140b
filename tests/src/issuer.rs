//! A small issuer of identities (OpenID Connect) with logins of devices (RFC 8628), for tests: a test decides about each
//! login, and the issuer can answer as badly as an issuer can.

mod keys;
mod wire;

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use periapt_transport::{Authority, PublicName, ServerCertificate, server_config};
use rustls::ServerConfig;
use serde_json::{Value, json};

pub use self::keys::IssuerKey;
use self::{
    keys::Keys,
    wire::{WireAnswer, WireRequest, serve_one},
};

/// The issuer's end of a login.
#[derive(Debug, Clone)]
pub enum IssuerDecision {
    /// The user approves. The ID token has these claims beside the usual ones, or in their place; null removes one.
    Approve {
        /// The claims, as an object.
        claims: Value,
        /// The key that signs the token.
        key: IssuerKey,
    },
    /// The issuer answers each question for the result with this error.
    Error(&'static str),
    /// The issuer answers each question for the result with this status and text.
    Raw(u16, String),
}

impl IssuerDecision {
    /// Returns the approval of a user with a verified e-mail address, whose account is named after it.
    pub fn approve(email: &str) -> Self {
        let claims = json!({ "sub": format!("account-of-{email}"), "email": email });
        Self::Approve { claims, key: IssuerKey::Rsa }
    }

    /// Returns the approval of `jane@example.com` with changed claims.
    pub fn approve_with(changes: Value) -> Self {
        Self::Approve { claims: changes, key: IssuerKey::Ec }
    }
}

/// An issuer on a port of its own, with TLS. Dropping it ends it.
pub struct TestIssuer {
    address: SocketAddr,
    authority: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    url: String,
    config: Arc<ServerConfig>,
    keys: Keys,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The logins by their device codes, which are their numbers.
    logins: BTreeMap<usize, Login>,
    /// The number of logins that were begun.
    begun: usize,
    /// The description, if the test has changed it.
    description: Option<(u16, String)>,
    /// The secret that clients must prove.
    secret: String,
    ended: bool,
}

struct Login {
    nonce: Option<String>,
    decision: Option<IssuerDecision>,
}

impl TestIssuer {
    /// The name by which the issuer knows its client.
    pub const CLIENT: &str = "periapt & co";

    /// The secret of its client.
    pub const SECRET: &str = "hush: a/secret%";

    /// Starts an issuer.
    pub fn start() -> anyhow::Result<Self> {
        let authority = Authority::generate()?;
        let now = periapt_host_api::Timestamp::now();
        let (certificate, key) = authority.issue_server(&PublicName::of_this_host(), now)?;
        let shown = ServerCertificate::new(&certificate, &key)?;
        let config = server_config(&shown, authority.certificate())?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = State { secret: Self::SECRET.to_owned(), ..State::default() };
        let url = format!("https://{address}/realm");
        let shared = Arc::new(Shared { url, config, keys: Keys::new()?, state: Mutex::new(state) });
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&listener, &serving));
        let authority = authority.certificate().to_owned();
        Ok(Self { address, authority, shared, thread: Some(thread) })
    }

    /// Returns the issuer's URL.
    pub fn url(&self) -> &str {
        &self.shared.url
    }

    /// Returns the certificate of the authority that has issued the issuer's own, as PEM text.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Decides about the login with a code that a user was shown.
    pub fn decide(&self, user_code: &str, decision: IssuerDecision) -> anyhow::Result<()> {
        let number = user_code.strip_prefix("CODE-").and_then(|number| number.parse().ok());
        let number: usize = number.with_context(|| format!("no code of this issuer: {user_code}"))?;
        let mut state = self.shared.lock();
        state.logins.get_mut(&number).context("no such login")?.decision = Some(decision);
        Ok(())
    }

    /// Answers questions for the issuer's description with this status and text from now on; none: as it should.
    pub fn describe(&self, answer: Option<(u16, String)>) {
        self.shared.lock().description = answer;
    }

    /// Returns the issuer's description, changed by the test.
    pub fn description(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut description = self.shared.description();
        change(&mut description);
        description.to_string()
    }

    /// Expects another secret of its client from now on.
    pub fn expect_secret(&self, secret: &str) {
        self.shared.lock().secret = secret.to_owned();
    }
}

impl Drop for TestIssuer {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        // The listener looks at the flag after each connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A client that breaks off is its own affair.
        std::thread::spawn(move || {
            let _ = serve_one(stream, Arc::clone(&shared.config), |request| shared.answer(request));
        });
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn description(&self) -> Value {
        let url = &self.url;
        json!({
            "issuer": url,
            "device_authorization_endpoint": format!("{url}/device"),
            "token_endpoint": format!("{url}/token"),
            "jwks_uri": format!("{url}/keys"),
        })
    }

    fn answer(&self, request: &WireRequest) -> anyhow::Result<WireAnswer> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/realm/.well-known/openid-configuration") => {
                Ok(self.lock().description.clone().unwrap_or_else(|| (200, self.description().to_string())))
            }
            ("GET", "/realm/keys") => Ok((200, self.keys.published()?.to_string())),
            ("POST", "/realm/device" | "/realm/token") if !self.is_client(request) => {
                let text = json!({ "error": "invalid_client", "error_description": "wrong secret" });
                Ok((401, text.to_string()))
            }
            ("POST", "/realm/device") => Ok(self.begin(request)),
            ("POST", "/realm/token") => self.token(request),
            _ => Ok((404, "no such page".to_owned())),
        }
    }

    /// Returns true if the request proves the client by its secret.
    fn is_client(&self, request: &WireRequest) -> bool {
        let escaped =
            |text: &str| text.replace('%', "%25").replace(':', "%3A").replace('/', "%2F").replace(' ', "+");
        let client = TestIssuer::CLIENT.replace('&', "%26").replace(' ', "+");
        let pair = format!("{client}:{}", escaped(&self.lock().secret));
        request.authorization.as_deref() == Some(&format!("Basic {}", STANDARD.encode(pair)))
    }

    fn begin(&self, request: &WireRequest) -> WireAnswer {
        let wanted = ["openid", "email", "profile"];
        let scopes = request.form.get("scope").map(String::as_str).unwrap_or_default();
        if !wanted.iter().all(|wanted| scopes.split(' ').any(|scope| scope == *wanted)) {
            return (400, json!({ "error": "invalid_scope" }).to_string());
        }
        let mut state = self.lock();
        state.begun += 1;
        let number = state.begun;
        state.logins.insert(number, Login { nonce: request.form.get("nonce").cloned(), decision: None });
        let answer = json!({
            "device_code": number.to_string(),
            "user_code": format!("CODE-{number}"),
            "verification_uri": format!("{}/approve", self.url),
            "expires_in": 600,
            "interval": 1,
        });
        (200, answer.to_string())
    }

    fn token(&self, request: &WireRequest) -> anyhow::Result<WireAnswer> {
        let grant = request.form.get("grant_type").map(String::as_str);
        anyhow::ensure!(grant == Some("urn:ietf:params:oauth:grant-type:device_code"), "another grant");
        let number: usize = request.form.get("device_code").context("no code")?.parse()?;
        let mut state = self.lock();
        let error = |code: &str| Ok((400, json!({ "error": code }).to_string()));
        let Some(login) = state.logins.get_mut(&number) else { return error("invalid_grant") };
        match login.decision.clone() {
            None => error("authorization_pending"),
            // Once: then the test's user still has to decide.
            Some(IssuerDecision::Error("slow_down")) => {
                login.decision = Some(IssuerDecision::approve("jane@example.com"));
                error("slow_down")
            }
            Some(IssuerDecision::Error(code)) => error(code),
            Some(IssuerDecision::Raw(status, text)) => Ok((status, text)),
            Some(IssuerDecision::Approve { claims: changes, key }) => {
                let nonce = login.nonce.clone();
                state.logins.remove(&number);
                let now = periapt_host_api::Timestamp::now().as_second();
                let mut claims = json!({
                    "iss": self.url,
                    "sub": "account-of-jane@example.com",
                    "aud": TestIssuer::CLIENT,
                    "iat": now,
                    "exp": now + 300,
                    "nonce": nonce,
                    "email": "jane@example.com",
                    "email_verified": true,
                    "name": "Jane Doe",
                });
                let target = claims.as_object_mut().context("claims are an object")?;
                for (name, value) in changes.as_object().context("claims are an object")? {
                    match value {
                        Value::Null => target.remove(name),
                        value => target.insert(name.clone(), value.clone()),
                    };
                }
                let token = self.keys.token(key, &claims)?;
                let answer = json!({ "access_token": "opaque", "token_type": "Bearer", "id_token": token });
                Ok((200, answer.to_string()))
            }
        }
    }
}
