//! Users and their identity: logins, sessions and accounts.

use http::Method;
use periapt_host_api::{
    UserName,
    api::ModelSelector,
    audit::AuditPage,
    command::Answer,
    user::{
        AwaitLogin, BegunLogin, IssuedRegistration, IssuedSession, LoginResult, ModelUser, NewApiToken,
        NewPassword, NewUser, PasswordLogin, SessionDetails, UseRegistration, UserDetails,
    },
};

use crate::{Client, Result};

impl Client {
    /// Opens a session by a password.
    pub async fn log_in(&self, login: &PasswordLogin) -> Result<IssuedSession> {
        self.call(Method::POST, "/v1/login").json(login)?.value().await
    }

    /// Begins a login at the controller's issuer of identities.
    pub async fn begin_login(&self) -> Result<BegunLogin> {
        self.call(Method::POST, "/v1/login/device").json(&serde_json::json!({}))?.value().await
    }

    /// Waits for a while for the result of a begun login.
    pub async fn await_login(&self, login: &AwaitLogin) -> Result<LoginResult> {
        self.call(Method::POST, "/v1/login/device/result").json(login)?.value().await
    }

    /// Sets the password of a user who has a registration token, and opens a session.
    pub async fn register_user(&self, registration: &UseRegistration) -> Result<IssuedSession> {
        self.call(Method::POST, "/v1/register").json(registration)?.value().await
    }

    /// Ends the session of the client.
    pub async fn log_out(&self) -> Result<Answer> {
        self.call(Method::POST, "/v1/logout").value().await
    }

    /// Returns the user of the client.
    pub async fn whoami(&self) -> Result<UserDetails> {
        self.get("/v1/whoami").value().await
    }

    /// Opens a session for the operator on the controller's own host.
    pub async fn open_session(&self) -> Result<IssuedSession> {
        self.call(Method::POST, "/v1/sessions").once().value().await
    }

    /// Makes an API token of the client's user.
    pub async fn make_token(&self, token: &NewApiToken) -> Result<IssuedSession> {
        self.call(Method::POST, "/v1/tokens").json(token)?.once().value().await
    }

    /// Returns the users that the client may see.
    pub async fn users(&self) -> Result<Vec<UserDetails>> {
        self.get("/v1/users").value().await
    }

    /// Returns one user.
    pub async fn user(&self, user: &UserName) -> Result<UserDetails> {
        self.get(format!("/v1/users/{user}")).value().await
    }

    /// Makes a user.
    pub async fn add_user(&self, user: &NewUser) -> Result<IssuedRegistration> {
        self.call(Method::POST, "/v1/users").json(user)?.once().value().await
    }

    /// Takes a user's password away; the user registers again.
    pub async fn reset_password(&self, user: &UserName) -> Result<IssuedRegistration> {
        self.call(Method::POST, format!("/v1/users/{user}/registration")).once().value().await
    }

    /// Sets a user's password.
    pub async fn set_password(&self, user: &UserName, password: &NewPassword) -> Result<Answer> {
        self.call(Method::PUT, format!("/v1/users/{user}/password")).json(password)?.once().value().await
    }

    /// Returns the sessions and API tokens of a user.
    pub async fn sessions(&self, user: &UserName) -> Result<Vec<SessionDetails>> {
        self.get(format!("/v1/users/{user}/sessions")).value().await
    }

    /// Returns a page of the audit log: the oldest, or the one after the end of another page.
    pub async fn audit(&self, after: Option<&str>) -> Result<AuditPage> {
        let call = self.get("/v1/audit");
        match after {
            Some(after) => call.query("after", after).value().await,
            None => call.value().await,
        }
    }

    /// Returns the users with access to a model.
    pub async fn model_users(&self, model: &ModelSelector) -> Result<Vec<ModelUser>> {
        self.get(format!("/v1/models/{model:#}/users")).value().await
    }
}
