//! Agents that join over TLS, and are known by their certificates' keys.

use std::time::Duration;

use futures_util::StreamExt as _;
use periapt_client::{Client, ClientCertificate, Identity, Options};
use periapt_host_api::{
    AgentName, ErrorCode,
    agent::{Admission, CertificateRequest, IssuedCertificate},
    audit::AuditOutcome,
    command::{Command, ControllerCommand, Force},
    storage::UnitStorage,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::AgentKey;

use crate::{
    fixture::{Deployed, Fixture, TIMEOUT, code_of, host, next_where, unit},
    listeners::{Listening, socket_in},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Lets an agent join, and returns its key with the issued certificate.
pub(crate) async fn joined(controller: &Listening, agent: &AgentName) -> (AgentKey, IssuedCertificate) {
    let (key, token) = (AgentKey::generate().unwrap(), Token::new(TokenKind::Join, [3; TOKEN_BYTES]));
    let admission = Admission { agent: agent.clone(), token: token.digest(), valid_for: 60, again: true };
    controller.on_socket().controller_command(ControllerCommand::AdmitAgent(admission)).await.unwrap();
    let asked = CertificateRequest { request: key.request().unwrap(), token: Some(token) };
    let issued = controller.over_tls(controller.trust()).agent_certificate(agent, &asked).await.unwrap();
    (key, issued)
}

/// Returns the certificate of an agent as a client shows it.
pub(crate) fn shown(key: &AgentKey, issued: &IssuedCertificate) -> ClientCertificate {
    let certificate = ClientCertificate::default();
    certificate.set(&issued.certificate, key).unwrap();
    certificate
}

/// Returns a client that shows a certificate.
pub(crate) fn showing(controller: &Listening, key: &AgentKey, issued: &IssuedCertificate) -> Client {
    let certificate = shown(key, issued);
    let options = Options::new(controller.handle.url(), Identity::User("admin".parse().unwrap()));
    Client::new(options.with_trust(controller.trust()).with_certificate(certificate)).unwrap()
}

#[tokio::test]
async fn an_agent_with_its_certificate_speaks_for_itself_alone() {
    let controller = Listening::open().await;
    let (one, two) = ("one".parse().unwrap(), "two".parse().unwrap());
    let (key, issued) = joined(&controller, &one).await;
    let client = showing(&controller, &key, &issued);
    client.register(&one, &host()).await.unwrap();
    let denied = ErrorCode::PermissionDenied;
    assert_eq!(code_of(client.register(&two, &host()).await), denied);
    assert_eq!(code_of(client.models().await), denied, "what it says of itself counts for nothing");
    assert_eq!(code_of(client.agents().await), denied);
    // On the socket a name alone makes no agent.
    let url = format!("unix://{}", socket_in(controller.directory.path()).display());
    let named = Client::new(Options::new(url, Identity::Agent(one.clone()))).unwrap();
    assert_eq!(code_of(named.register(&one, &host()).await), denied);
    controller.close().await;
}

#[tokio::test]
async fn an_agent_that_is_removed_loses_its_streams_and_its_requests_at_once() {
    let controller = Listening::open().await;
    let one: AgentName = "one".parse().unwrap();
    let (key, issued) = joined(&controller, &one).await;
    let client = showing(&controller, &key, &issued);
    client.register(&one, &host()).await.unwrap();
    let mut assignments = client.assignments(&one).await.unwrap();
    assert!(assignments.next().await.unwrap().is_ok());
    let remove = ControllerCommand::RemoveAgent { agent: one.clone(), force: false };
    controller.on_socket().controller_command(remove).await.unwrap();
    let ended = tokio::time::timeout(TIMEOUT, async { while let Some(Ok(_)) = assignments.next().await {} });
    ended.await.unwrap();
    for client in [client, showing(&controller, &key, &issued)] {
        assert_eq!(code_of(client.assignments(&one).await.map(drop)), ErrorCode::NotLoggedIn);
    }
    // Its key is worth nothing any more.
    let asked = CertificateRequest { request: key.request().unwrap(), token: None };
    let renewed = controller.over_tls(controller.trust()).agent_certificate(&one, &asked).await;
    assert_eq!(code_of(renewed), ErrorCode::NotLoggedIn);
    controller.close().await;
}

#[tokio::test]
async fn a_runners_stream_ends_once_its_agent_has_nothing_left_of_the_model() {
    let fixture = Fixture::start().await;
    let Deployed { agent, model, mut assignments } = fixture.deployed(1).await;
    next_where(&mut assignments, |assigned| assigned.models.contains_key(&model.uuid)).await;
    let mut watch = agent.client.watch(&agent.name, &model.uuid, None).await.unwrap();
    assert!(watch.next().await.unwrap().is_ok());
    let force = Some(Force { max_wait: 0 });
    let remove = Command::RemoveUnit { unit: unit("tiny/0"), force, storage: UnitStorage::default() };
    model.command(remove).await.unwrap();
    let rest = async { while watch.next().await.is_some_and(|line| line.is_ok()) {} };
    tokio::time::timeout(TIMEOUT, rest).await.unwrap();
    next_where(&mut assignments, |assigned| assigned.models.is_empty()).await;
    let refused = agent.client.watch(&agent.name, &model.uuid, None).await.map(drop);
    assert_eq!(code_of(refused), ErrorCode::PermissionDenied);
    fixture.stop().await;
}

#[tokio::test]
async fn a_certificate_ends_after_a_day_and_the_key_gets_another_one() {
    let controller = Listening::open().await;
    let one: AgentName = "one".parse().unwrap();
    let (key, issued) = joined(&controller, &one).await;
    let client = showing(&controller, &key, &issued);
    client.register(&one, &host()).await.unwrap();
    controller.clock.advance(DAY);
    assert_eq!(code_of(client.register(&one, &host()).await), ErrorCode::NotLoggedIn);
    let asked = CertificateRequest { request: key.request().unwrap(), token: None };
    let renewed = controller.over_tls(controller.trust()).agent_certificate(&one, &asked).await.unwrap();
    assert!(renewed.expires_at > issued.expires_at);
    let other = AgentKey::generate().unwrap();
    for (agent, key) in [(&one, &other), (&"two".parse().unwrap(), &key)] {
        let asked = CertificateRequest { request: key.request().unwrap(), token: None };
        let refused = controller.over_tls(controller.trust()).agent_certificate(agent, &asked).await;
        assert_eq!(code_of(refused), ErrorCode::NotLoggedIn);
    }
    controller.close().await;
}

#[tokio::test]
async fn a_controller_without_tls_issues_no_certificates() {
    let fixture = Fixture::start().await;
    let asked = CertificateRequest { request: AgentKey::generate().unwrap().request().unwrap(), token: None };
    let refused = fixture.client.agent_certificate(&"one".parse().unwrap(), &asked).await;
    assert_eq!(code_of(refused), ErrorCode::NotSupported);
    fixture.stop().await;
}

#[tokio::test]
async fn the_audit_log_tells_who_admitted_and_removed_an_agent_and_when_it_joined() {
    let controller = Listening::open().await;
    let one: AgentName = "one".parse().unwrap();
    let (key, _) = joined(&controller, &one).await;
    // A token that was never issued makes the controller write nothing for now.
    let token = Some(Token::new(TokenKind::Join, [9; TOKEN_BYTES]));
    let asked = CertificateRequest { request: key.request().unwrap(), token };
    let refused = controller.over_tls(controller.trust()).agent_certificate(&one, &asked).await;
    assert_eq!(code_of(refused), ErrorCode::PermissionDenied);
    let remove = ControllerCommand::RemoveAgent { agent: one.clone(), force: false };
    controller.on_socket().controller_command(remove).await.unwrap();
    let page = controller.on_socket().audit(None).await.unwrap();
    let told: Vec<_> = page
        .entries
        .iter()
        .map(|entry| &entry.request)
        .map(|request| {
            (request.user.as_ref().map(|user| user.as_str()), request.act.as_str(), &request.outcome)
        })
        .collect();
    let done = AuditOutcome::Done;
    assert_eq!(
        told,
        [
            (Some("admin"), "admit-agent", &done),
            (None, "join-agent", &done),
            (Some("admin"), "remove-agent", &done)
        ]
    );
    assert!(page.entries.iter().all(|entry| entry.request.subject == "agent one"));
    controller.close().await;
}

#[tokio::test]
async fn joins_that_fail_cost_a_growing_wait_and_are_in_the_audit_log_as_sums() {
    let controller = Listening::open().await;
    let (agent, key): (AgentName, _) = ("one".parse().unwrap(), AgentKey::generate().unwrap());
    let client = controller.over_tls(controller.trust());
    let request = key.request().unwrap();
    let with = |token| CertificateRequest { request: request.clone(), token };
    let guess = with(Some(Token::new(TokenKind::Join, [9; TOKEN_BYTES])));
    for _ in 0..6 {
        assert_eq!(code_of(client.agent_certificate(&agent, &guess).await), ErrorCode::PermissionDenied);
    }
    let token = Token::new(TokenKind::Join, [3; TOKEN_BYTES]);
    let admission = Admission { agent: agent.clone(), token: token.digest(), valid_for: 3_600, again: false };
    controller.on_socket().controller_command(ControllerCommand::AdmitAgent(admission)).await.unwrap();
    let right = with(Some(token));
    let throttled = client.agent_certificate(&agent, &right).await.unwrap_err();
    let throttled = throttled.refusal().unwrap();
    assert_eq!(throttled.message, "too many failed joins; try again in 1 s");
    assert_eq!(throttled.code, ErrorCode::TooManyRequests);
    // Another name from there need not wait, and a request without a token is no attempt to join.
    let other = "two".parse().unwrap();
    assert_eq!(code_of(client.agent_certificate(&other, &guess).await), ErrorCode::PermissionDenied);
    assert_eq!(code_of(client.agent_certificate(&agent, &with(None)).await), ErrorCode::NotLoggedIn);
    controller.clock.advance(Duration::from_secs(1));
    client.agent_certificate(&agent, &right).await.unwrap();

    let told = tokio::time::timeout(TIMEOUT, async {
        loop {
            controller.clock.advance(Duration::from_secs(60));
            let entries = controller.on_socket().audit(None).await.unwrap().entries;
            if entries.len() > 2 {
                return entries;
            }
            tokio::task::yield_now().await;
        }
    });
    let told: Vec<String> = told.await.unwrap()[2..]
        .iter()
        .map(|entry| &entry.request)
        .map(|request| format!("{} {} {:?}", request.act, request.subject, request.outcome))
        .collect();
    assert_eq!(
        told,
        [
            "join-agent agent one, 6 requests Refused(PermissionDenied)",
            "join-agent agent one Refused(TooManyRequests)",
            "join-agent agent two Refused(PermissionDenied)",
        ]
    );
    controller.close().await;
}
