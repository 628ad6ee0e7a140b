//! Users over the API: registrations, logins, sessions, tokens, and what each may reach.

use std::time::Duration;

use futures_util::StreamExt as _;
use periapt_client::{Client, ClientError, Identity};
use periapt_host_api::{
    ErrorCode, Refusal,
    access::{ControllerAccess, ModelAccess},
    audit::{AuditEntry, AuditOutcome},
    command::{Command, ControllerCommand},
    password::Password,
    token::{Token, TokenKind},
    user::{IssuedSession, NewApiToken, NewPassword, NewUser, PasswordLogin, TokenScope, UseRegistration},
};

use crate::{
    fixture::{Fixture, TIMEOUT, code_of, next},
    raw,
};

pub(crate) fn password(text: &str) -> Password {
    Password::try_from(text.to_owned()).unwrap()
}

/// Returns a client that proves a session or an API token.
pub(crate) fn with_token(fixture: &Fixture, token: &Token) -> Client {
    let identity = Identity::Token(token.clone());
    Client::new(periapt_client::Options::new(fixture.handle.url(), identity)).unwrap()
}

/// Adds a user who registers with the password `NAME's password`.
pub(crate) async fn join(fixture: &Fixture, name: &str) -> IssuedSession {
    let user = NewUser { name: name.parse().unwrap(), display_name: String::new() };
    let issued = fixture.client.add_user(&user).await.unwrap();
    let password = password(&format!("{name}'s password"));
    fixture.client.register_user(&UseRegistration { token: issued.token, password }).await.unwrap()
}

async fn log_in(fixture: &Fixture, name: &str, text: &str) -> Result<IssuedSession, ClientError> {
    let login = PasswordLogin { user: name.parse().unwrap(), password: password(text) };
    fixture.client.log_in(&login).await
}

fn refusal(error: ClientError) -> Refusal {
    error.refusal().unwrap().clone()
}

#[tokio::test]
async fn a_user_registers_logs_in_and_out() {
    let fixture = Fixture::start().await;
    let first = join(&fixture, "jane").await;
    let jane = with_token(&fixture, &first.token);
    let own = jane.whoami().await.unwrap();
    assert_eq!((own.name.as_str(), own.access), ("jane", Some(ControllerAccess::Login)));
    let second = log_in(&fixture, "jane", "jane's password").await.unwrap();
    assert_ne!(first.id, second.id);
    let sessions = jane.sessions(&own.name).await.unwrap();
    assert_eq!(sessions.iter().filter(|session| session.current).count(), 1);
    assert_eq!(sessions.len(), 2);
    jane.log_out().await.unwrap();
    assert_eq!(code_of(jane.whoami().await), ErrorCode::NotLoggedIn);
    let jane = with_token(&fixture, &second.token);
    jane.whoami().await.unwrap();
    // A session ends by time.
    fixture.clock.advance(Duration::from_secs(31 * 24 * 3600));
    assert_eq!(code_of(jane.whoami().await), ErrorCode::NotLoggedIn);
    fixture.stop().await;
}

#[tokio::test]
async fn wrong_logins_are_refused_alike_and_cost_a_growing_wait() {
    let fixture = Fixture::start().await;
    join(&fixture, "jane").await;
    let wrong = refusal(log_in(&fixture, "jane", "guess").await.unwrap_err());
    let nobody = refusal(log_in(&fixture, "nobody", "guess").await.unwrap_err());
    let unset = refusal(log_in(&fixture, "admin", "guess").await.unwrap_err());
    assert_eq!((&wrong, &nobody), (&unset, &unset));
    assert_eq!(wrong.message, "invalid entity name or password");
    for _ in 0..5 {
        log_in(&fixture, "jane", "guess").await.unwrap_err();
    }
    let throttled = refusal(log_in(&fixture, "jane", "jane's password").await.unwrap_err());
    assert_eq!(throttled.code, ErrorCode::TooManyRequests, "{throttled}");
    fixture.clock.advance(Duration::from_secs(2));
    log_in(&fixture, "jane", "jane's password").await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn a_registration_is_used_once_and_tells_nothing_afterwards() {
    let fixture = Fixture::start().await;
    let user = NewUser { name: "jane".parse().unwrap(), display_name: "Jane Doe".into() };
    let issued = fixture.client.add_user(&user).await.unwrap();
    let used = UseRegistration { token: issued.token, password: password("one") };
    fixture.client.register_user(&used).await.unwrap();
    let again = refusal(fixture.client.register_user(&used).await.unwrap_err());
    let unknown = Token::new(TokenKind::Registration, [9; 32]);
    let unknown = UseRegistration { token: unknown, password: password("one") };
    let unknown = refusal(fixture.client.register_user(&unknown).await.unwrap_err());
    assert_eq!(again, unknown);
    let reset = fixture.client.reset_password(&"jane".parse().unwrap()).await.unwrap();
    log_in(&fixture, "jane", "one").await.unwrap_err();
    let anew = UseRegistration { token: reset.token, password: password("two") };
    fixture.client.register_user(&anew).await.unwrap();
    log_in(&fixture, "jane", "two").await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn a_new_password_ends_all_other_sessions() {
    let fixture = Fixture::start().await;
    let (one, two) =
        (join(&fixture, "jane").await, log_in(&fixture, "jane", "jane's password").await.unwrap());
    let (own, other) = (with_token(&fixture, &one.token), with_token(&fixture, &two.token));
    let new = NewPassword { password: password("new") };
    own.set_password(&one.user, &new).await.unwrap();
    own.whoami().await.unwrap();
    assert_eq!(code_of(other.whoami().await), ErrorCode::NotLoggedIn);
    let joe = with_token(&fixture, &join(&fixture, "joe").await.token);
    let foreign = refusal(joe.set_password(&one.user, &new).await.unwrap_err());
    assert_eq!(foreign.message, "user \"jane\" not found");
    fixture.stop().await;
}

#[tokio::test]
async fn a_model_is_nothing_to_users_without_access_and_bounded_to_others() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let jane = with_token(&fixture, &join(&fixture, "jane").await.token);
    let name = || "jane".parse().unwrap();
    assert!(jane.models().await.unwrap().is_empty());
    let hidden = refusal(jane.status(&model.selector()).await.unwrap_err());
    let missing = periapt_host_api::ModelUuid(uuid::Uuid::from_u128(77));
    let absent = refusal(jane.status(&missing.into()).await.unwrap_err());
    assert_eq!(
        hidden.message.replace(&model.uuid.to_string(), ""),
        absent.message.replace(&missing.to_string(), "")
    );
    assert_eq!(hidden.code, absent.code);
    let by_name = refusal(jane.status(&"admin/m".parse().unwrap()).await.unwrap_err());
    assert_eq!(by_name.message, "model admin/m not found");

    let set = || Command::SetModelConfig { set: Default::default(), reset: vec![] };
    model.command(Command::GrantModel { user: name(), access: ModelAccess::Read }).await.unwrap();
    assert_eq!(jane.models().await.unwrap()[0].access, ModelAccess::Read);
    jane.status(&model.selector()).await.unwrap();
    assert_eq!(code_of(jane.command(&model.selector(), set()).await), ErrorCode::PermissionDenied);
    let seen: Vec<_> = jane.model_users(&model.selector()).await.unwrap();
    assert_eq!(seen.len(), 1, "others than administrators see themselves alone");

    model.command(Command::GrantModel { user: name(), access: ModelAccess::Write }).await.unwrap();
    jane.command(&model.selector(), set()).await.unwrap();
    model.command(Command::RevokeModel { user: name(), access: ModelAccess::Read }).await.unwrap();
    assert_eq!(code_of(jane.status(&model.selector()).await), ErrorCode::NotFound);
    fixture.stop().await;
}

#[tokio::test]
async fn a_disabled_or_removed_user_is_out_at_once() {
    let fixture = Fixture::start().await;
    for (name, command) in [
        ("jane", ControllerCommand::DisableUser { user: "jane".parse().unwrap() }),
        ("joe", ControllerCommand::RemoveUser { user: "joe".parse().unwrap() }),
    ] {
        let issued = join(&fixture, name).await;
        let user = with_token(&fixture, &issued.token);
        user.whoami().await.unwrap();
        fixture.client.controller_command(command).await.unwrap();
        assert_eq!(code_of(user.whoami().await), ErrorCode::NotLoggedIn, "{name}");
        let text = format!("{name}'s password");
        assert_eq!(code_of(log_in(&fixture, name, &text).await), ErrorCode::NotLoggedIn, "{name}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_stream_ends_when_its_user_loses_the_right_to_it() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    for (name, end) in [("jane", "revoke"), ("joe", "disable"), ("jim", "log out"), ("jack", "time")] {
        let issued = join(&fixture, name).await;
        let user = with_token(&fixture, &issued.token);
        let access = ModelAccess::Read;
        model.command(Command::GrantModel { user: issued.user.clone(), access }).await.unwrap();
        let mut watch = user.watch_status(&model.selector()).await.unwrap();
        next(&mut watch).await;
        let user_name = issued.user.clone();
        match end {
            "revoke" => {
                drop(model.command(Command::RevokeModel { user: user_name, access }).await.unwrap());
            }
            "disable" => {
                let disable = ControllerCommand::DisableUser { user: user_name };
                drop(fixture.client.controller_command(disable).await.unwrap());
            }
            "log out" => drop(user.log_out().await.unwrap()),
            _ => fixture.clock.advance(Duration::from_secs(31 * 24 * 3600)),
        }
        let rest = async { while watch.next().await.is_some_and(|line| line.is_ok()) {} };
        tokio::time::timeout(TIMEOUT, rest).await.unwrap_or_else(|_| panic!("{name} still watches"));
    }
    fixture.stop().await;
}

#[tokio::test]
async fn an_api_token_does_no_more_than_its_scope() {
    let fixture = Fixture::start().await;
    let (model, other) = (fixture.add_model("m").await, fixture.add_model("other").await);
    let scope = TokenScope { access: ModelAccess::Write, models: vec![model.uuid] };
    let new = NewApiToken { name: "ci".into(), scope, lifetime_seconds: 60 };
    let issued = fixture.client.make_token(&new).await.unwrap();
    let ci = with_token(&fixture, &issued.token);
    assert_eq!(ci.models().await.unwrap().len(), 1, "though its user is a superuser");
    let set = || Command::SetModelConfig { set: Default::default(), reset: vec![] };
    ci.command(&model.selector(), set()).await.unwrap();
    assert_eq!(code_of(ci.command(&other.selector(), set()).await), ErrorCode::NotFound);
    let grant = Command::GrantModel { user: "admin".parse().unwrap(), access: ModelAccess::Read };
    assert_eq!(code_of(ci.command(&model.selector(), grant).await), ErrorCode::PermissionDenied);
    let add = ControllerCommand::add_model("x".parse().unwrap());
    assert_eq!(code_of(ci.controller_command(add).await), ErrorCode::PermissionDenied);
    let user = NewUser { name: "jane".parse().unwrap(), display_name: String::new() };
    assert_eq!(code_of(ci.add_user(&user).await), ErrorCode::PermissionDenied);
    assert_eq!(code_of(ci.make_token(&new).await), ErrorCode::PermissionDenied);
    assert_eq!(
        code_of(ci.set_password(&"admin".parse().unwrap(), &NewPassword { password: password("x") }).await),
        ErrorCode::NotFound
    );
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(code_of(ci.models().await), ErrorCode::NotLoggedIn);
    fixture.stop().await;
}

#[tokio::test]
async fn the_operator_on_the_controllers_own_host_opens_a_session_and_a_session_opens_none() {
    let fixture = Fixture::start().await;
    let issued = fixture.client.open_session().await.unwrap();
    let admin = with_token(&fixture, &issued.token);
    assert_eq!(admin.whoami().await.unwrap().access, Some(ControllerAccess::Superuser));
    assert_eq!(code_of(admin.open_session().await), ErrorCode::BadRequest);
    fixture.stop().await;
}

#[tokio::test]
async fn what_a_request_holds_of_secrets_is_in_no_error() {
    let fixture = Fixture::start().await;
    let address = fixture.handle.address();
    let json = [("content-type", "application/json")];
    for (route, body) in [
        ("POST /v1/login", r#"{"user": "jane", "password": "hunter2\n"}"#),
        ("POST /v1/login", r#"{"user": "jane", "password": ["hunter2"]}"#),
        ("POST /v1/register", r#"{"token": "pt_r_hunter2", "password": "hunter2"}"#),
        ("PUT /v1/users/admin/password", r#"{"password": "hunter2\n"}"#),
    ] {
        let answer = raw::request(address, route, &json, body).await;
        assert_eq!(answer.status, 400, "{route}");
        assert!(!answer.json().to_string().contains("hunter2"), "{route} {body}: {}", answer.json());
    }
    fixture.stop().await;
}

#[tokio::test]
async fn each_command_of_a_user_is_in_the_audit_log_which_shows_what_was_changed() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let issued = join(&fixture, "jane").await;
    let jane = with_token(&fixture, &issued.token);
    let access = ModelAccess::Read;
    model.command(Command::GrantModel { user: issued.user.clone(), access }).await.unwrap();
    let set = [("update-status-hook-interval".to_owned(), "hunter2".to_owned())].into();
    let refused = jane.command(&model.selector(), Command::SetModelConfig { set, reset: vec![] }).await;
    assert_eq!(code_of(refused), ErrorCode::PermissionDenied);
    assert_eq!(code_of(jane.audit(None).await), ErrorCode::PermissionDenied);
    let log = fixture.client.audit(None).await.unwrap().entries;
    let mut before = None;
    for entry in &log {
        entry.verify(before).unwrap();
        before = Some(entry);
    }
    let told: Vec<String> = log
        .iter()
        .map(|AuditEntry { request, .. }| {
            let user = request.user.as_ref().map_or("-", |user| user.as_str());
            let outcome = match request.outcome {
                AuditOutcome::Done => "done".to_owned(),
                AuditOutcome::Refused(code) => code.to_string(),
            };
            let subject = request.subject.replace(&model.uuid.to_string(), "UUID");
            let subject = subject.replace(&issued.id.to_string(), "ID");
            format!("{user} {} {} [{subject}] {outcome}", request.address, request.act)
        })
        .collect();
    assert_eq!(
        told,
        [
            "admin 127.0.0.1 add-model [model m] done",
            "admin 127.0.0.1 add-user [user jane] done",
            "jane 127.0.0.1 register [session ID] done",
            "admin 127.0.0.1 grant-model [model UUID, user jane, read] done",
            "jane 127.0.0.1 set-model-config [model UUID] permission-denied",
        ]
    );
    assert_eq!(log[4].request.session, Some(issued.id));
    assert!(!serde_json::to_string(&log).unwrap().contains("hunter2"), "no content of a command");
    fixture.stop().await;
}

#[tokio::test]
async fn refused_requests_and_failed_logins_are_in_the_audit_log_as_sums() {
    let fixture = Fixture::start().await;
    let issued = join(&fixture, "jane").await;
    let jane = with_token(&fixture, &issued.token);
    for _ in 0..3 {
        assert_eq!(code_of(jane.audit(None).await), ErrorCode::PermissionDenied);
    }
    for _ in 0..2 {
        assert_eq!(code_of(log_in(&fixture, "jane", "wrong").await), ErrorCode::NotLoggedIn);
    }
    let guessed = with_token(&fixture, &Token::new(TokenKind::Session, [9; 32]));
    assert_eq!(code_of(guessed.models().await), ErrorCode::NotLoggedIn);
    let used =
        UseRegistration { token: Token::new(TokenKind::Registration, [9; 32]), password: password("x") };
    assert_eq!(code_of(fixture.client.register_user(&used).await), ErrorCode::NotLoggedIn);
    let before = fixture.client.audit(None).await.unwrap().entries;
    assert_eq!(before.len(), 2, "nothing is written yet: {before:?}");

    let log = tokio::time::timeout(TIMEOUT, async {
        loop {
            fixture.clock.advance(std::time::Duration::from_secs(60));
            let log = fixture.client.audit(None).await.unwrap().entries;
            if log.len() > before.len() {
                return log;
            }
            tokio::task::yield_now().await;
        }
    });
    let log = log.await.unwrap();
    let mut last = None;
    for entry in &log {
        entry.verify(last).unwrap();
        last = Some(entry);
    }
    let told: Vec<String> = log[2..]
        .iter()
        .map(|AuditEntry { request, .. }| {
            let user = request.user.as_ref().map_or("-", |user| user.as_str());
            let AuditOutcome::Refused(code) = request.outcome else { panic!("{request:?}") };
            format!("{user} {} {} [{}] {code}", request.address, request.act, request.subject)
        })
        .collect();
    assert_eq!(
        told,
        [
            "jane 127.0.0.1 GET /v1/audit [3 requests] permission-denied",
            "- 127.0.0.1 log-in [user jane, 2 requests] not-logged-in",
            "- 127.0.0.1 GET /v1/models [] not-logged-in",
            "- 127.0.0.1 register [] not-logged-in",
        ]
    );
    assert_eq!(log[2].request.session, Some(issued.id));
    fixture.stop().await;
}
