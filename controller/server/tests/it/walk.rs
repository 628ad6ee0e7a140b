//! A walk along every route as every kind of caller: the controller answers as the table of rights says, and what a
//! caller may not see is answered as what does not exist.

use std::collections::BTreeSet;

use http_body_util::BodyExt as _;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use periapt_client::{Client, ClientCertificate};
use periapt_controller::{RouteRight, openapi, route_rights};
use periapt_host_api::{
    AgentName, Digest, ModelUuid,
    access::{ControllerAccess, ModelAccess},
    command::{Answer, Command, ControllerCommand, Force, Placement},
    offer::OfferAccess,
    storage::UnitStorage,
    user::{NewApiToken, TokenScope},
};
use periapt_model::{Holder, Right, SubjectKind, scope_admits};
use periapt_transport::client_config;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::{
    enrolment::{joined, showing, shown},
    fixture::{Deployed, Fixture, application, charm, charm_with_endpoint, deploy, host, next_where, unit},
    listeners::Listening,
    raw::{self, Response},
    users::{join, with_token},
};

/// A caller, with the holders that apply to it for the subjects of this walk.
struct Walker {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    holds: BTreeSet<Holder>,
    kind: Kind,
    /// The agent that its requests name.
    agent: &'static str,
    /// The bounds of its API token, if it has one.
    scope: Option<TokenScope>,
}

/// The kinds of callers that refusals differ by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nobody,
    User,
    Agent,
}

impl Walker {
    fn user(name: &'static str, token: String, holds: &[Holder]) -> Self {
        let headers = vec![("authorization", format!("Bearer {token}"))];
        let holds = holds.iter().copied().chain([Holder::Anyone, Holder::AnyUser]).collect();
        Self { name, headers, holds, kind: Kind::User, agent: "one", scope: None }
    }

    fn nobody(name: &'static str, headers: Vec<(&'static str, String)>) -> Self {
        let holds = [Holder::Anyone].into();
        Self { name, headers, holds, kind: Kind::Nobody, agent: "one", scope: None }
    }

    fn agent(name: &'static str, agent: &str, holds: &[Holder]) -> Self {
        let headers = vec![("periapt-agent", agent.to_owned())];
        let holds = holds.iter().copied().chain([Holder::Anyone, Holder::AnyAgent]).collect();
        Self { name, headers, holds, kind: Kind::Agent, agent: "one", scope: None }
    }

    /// Names its own agent in requests, and not the one that the model's unit is on.
    fn about_itself(self, agent: &'static str) -> Self {
        Self { agent, ..self }
    }

    /// Shows an API token with this scope.
    fn scoped(self, scope: TokenScope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    /// Returns true if the table gives it a right to the model of the walk, or to a subject that is no model.
    fn may(&self, right: Right, model: &ModelUuid) -> bool {
        let row = right.row();
        let model = (row.subject == SubjectKind::Model).then_some(model);
        row.holders.iter().any(|holder| self.holds.contains(holder))
            && self.scope.as_ref().is_none_or(|scope| scope_admits(scope, right, model))
    }
}

/// The things that paths name.
#[derive(Clone, Copy)]
struct Names<'a> {
    model: &'a str,
    agent: &'a str,
    user: &'a str,
}

/// Returns the request line of a route about these things.
fn line(route: &RouteRight, names: Names<'_>, digest: &str) -> String {
    let path = route
        .path
        .replace("{model}", names.model)
        .replace("{uuid}", names.model)
        .replace("{agent}", names.agent)
        .replace("{user}", names.user)
        .replace("{application}", "tiny")
        .replace("{number}", "0")
        .replace("{operation}", "1")
        .replace("{task}", "1")
        .replace("{secret}", "0123456789abcdefghij")
        .replace("{revision}", "1")
        .replace("{resource}", "data")
        .replace("{kind}", "charm")
        .replace("{id}", "0190a7c4-5b1e-7d30-8c52-4f6e9a01b2c3")
        .replace("{digest}", digest);
    assert!(!path.contains('{'), "{path} has a part that this test does not know");
    format!("{} {path}", route.method)
}

/// The way of a walker to the controller.
enum Connection<'a> {
    /// Without TLS, by the walker's headers.
    InProcess(&'a Fixture),
    /// Over TLS, by the certificate of the connection.
    Tls(SendRequest<String>, String),
}

async fn ask(connection: &Connection<'_>, walker: &Walker, line: &str) -> Response {
    let mut headers: Vec<(&str, &str)> =
        walker.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("content-type", "application/json"));
    // No request has a body that makes sense, so that no walker changes anything.
    match connection {
        Connection::InProcess(fixture) => raw::answered(fixture.handle.address(), line, &headers, "!").await,
        Connection::Tls(sender, url) => {
            let (method, path) = line.split_once(' ').unwrap();
            let mut request = http::Request::builder().method(method).uri(format!("{url}{path}"));
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let answer = sender.clone().send_request(request.body("!".to_owned()).unwrap()).await.unwrap();
            // A stream does not end.
            let (parts, body) = answer.into_parts();
            let refused = parts.status.is_client_error() || parts.status.is_server_error();
            let body = if refused { body.collect().await.unwrap().to_bytes().to_vec() } else { Vec::new() };
            Response::new(parts.status.as_u16(), body)
        }
    }
}

/// Connects over TLS with the certificate of an agent, or without one.
async fn connected<'a>(controller: &Listening, certificate: &ClientCertificate) -> Connection<'a> {
    let config = client_config(&controller.trust(), certificate).unwrap();
    let stream = TcpStream::connect(controller.handle.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TlsConnector::from(config).connect(name, stream).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    Connection::Tls(sender, controller.handle.url().to_owned())
}

/// Asks a route about some things, and compares the answer with the table: the walker may, or is refused in the same
/// words as about things that do not exist.
async fn compare(
    (connection, walker): (&Connection<'_>, &Walker),
    route: &RouteRight,
    (names, missing): (Names<'_>, Names<'_>),
    digest: &str,
    (may, sees_the_model): (bool, bool),
) {
    let answer = ask(connection, walker, &line(route, names, digest)).await;
    let at = format!("{} {} as {}: {}", route.method, route.path, walker.name, answer.status);
    if may {
        // The handler refuses content that the unit does not have in the words for a refused caller.
        let by_content = answer.status == 403 && route.path.contains("{resource}");
        let refused = [401, 403, 501].contains(&answer.status);
        assert!(by_content || !refused, "{at} {}", String::from_utf8_lossy(&answer.body));
        return;
    }
    let status = match (walker.kind, route.right.row().subject) {
        (Kind::Nobody, _) => {
            assert_eq!(answer.status, 401, "{at}");
            return;
        }
        (Kind::User, SubjectKind::Model) if !sees_the_model => 404,
        (Kind::User, SubjectKind::User) => 404,
        (Kind::User | Kind::Agent, _) => 403,
    };
    assert_eq!(answer.status, status, "{at}");
    if walker.kind == Kind::User && route.right.row().subject == SubjectKind::Model && sees_the_model {
        // That the model exists is no secret to it.
        return;
    }
    let absent = ask(connection, walker, &line(route, missing, digest)).await;
    assert_eq!(code_and_text(&answer, names), code_and_text(&absent, missing), "{at}");
}

/// Returns the code of a refusal, and its text without the names that the request held.
fn code_and_text(answer: &Response, names: Names<'_>) -> (u16, String) {
    let body = String::from_utf8_lossy(&answer.body);
    let mut text = body.into_owned();
    for name in [names.model, names.agent, names.user] {
        text = text.replace(name, "NAME");
    }
    (answer.status, text)
}

#[tokio::test]
async fn every_route_answers_every_kind_of_caller_as_the_table_says() {
    let fixture = Fixture::start().await;
    let Deployed { model, assignments: _connected, .. } = fixture.deployed(1).await;
    let _two = fixture.as_agent("two").connect().await;
    let other = fixture.add_model("other").await;
    let mut three = fixture.as_agent("three").connect().await;
    let Command::Deploy(mut elsewhere) = deploy(Digest::of(&charm()), 1) else { panic!("no deploy") };
    elsewhere.placement = vec![Placement::Agent("three".parse().unwrap())];
    other.command(Command::Deploy(elsewhere)).await.unwrap();
    next_where(&mut three, |assigned| assigned.models.contains_key(&other.uuid)).await;
    let digest = Digest::of(&charm()).to_string();
    let grant = |model: &crate::fixture::Model, user: &str, access| {
        let command = Command::GrantModel { user: user.parse().unwrap(), access };
        let (client, selector) = (model.client.clone(), model.selector());
        async move { client.command(&selector, command).await.unwrap() }
    };
    let mut tokens = std::collections::BTreeMap::new();
    for name in ["tenant", "consumer", "reader", "writer", "owner", "root", "revoked", "disabled", "removed"]
    {
        tokens.insert(name, join(&fixture, name).await.token.reveal());
    }
    let token = |name: &str| tokens[name].clone();
    grant(&other, "tenant", ModelAccess::Admin).await;
    grant(&model, "reader", ModelAccess::Read).await;
    grant(&model, "writer", ModelAccess::Write).await;
    grant(&model, "owner", ModelAccess::Admin).await;
    for name in ["revoked", "disabled", "removed"] {
        grant(&model, name, ModelAccess::Admin).await;
    }
    let control = |command| fixture.client.controller_command(command);
    let superuser = ControllerAccess::Superuser;
    control(ControllerCommand::GrantController { user: "root".parse().unwrap(), access: superuser })
        .await
        .unwrap();
    let web = fixture.client.upload_charm(charm_with_endpoint()).await.unwrap().digest;
    model.command(deploy(web, 0)).await.unwrap();
    let offer = Command::Offer {
        application: application("web"),
        endpoints: ["site".parse().unwrap()].into(),
        name: None,
        description: None,
    };
    model.command(offer).await.unwrap();
    control(ControllerCommand::GrantOffer {
        offer: "admin/m.web".parse().unwrap(),
        user: "consumer".parse().unwrap(),
        access: OfferAccess::Admin,
    })
    .await
    .unwrap();
    let api_token = async |user: &str, scope: &TokenScope| {
        let new = NewApiToken { name: "ci".into(), scope: scope.clone(), lifetime_seconds: 60 };
        let client = with_token(&fixture, &token(user).parse().unwrap());
        client.make_token(&new).await.unwrap().token.reveal()
    };
    let reading = TokenScope { access: ModelAccess::Read, models: vec![] };
    let elsewhere = TokenScope { access: ModelAccess::Admin, models: vec![other.uuid] };
    let (reads, stays) = (api_token("writer", &reading).await, api_token("root", &elsewhere).await);
    with_token(&fixture, &token("revoked").parse().unwrap()).log_out().await.unwrap();
    control(ControllerCommand::DisableUser { user: "disabled".parse().unwrap() }).await.unwrap();
    control(ControllerCommand::RemoveUser { user: "removed".parse().unwrap() }).await.unwrap();

    let bearer = |text: &str| vec![("authorization", format!("Bearer {text}"))];
    let (read, write, admin) = (Holder::ModelReader, Holder::ModelWriter, Holder::ModelAdmin);
    let any = Holder::AnyModelWriter;
    let walkers = [
        Walker::nobody("an unknown token", bearer(&format!("pt_s_{}", "A".repeat(43)))),
        Walker::nobody("no token at all", vec![("authorization", "Basic YTpi".to_owned())]),
        Walker::nobody("a revoked session", bearer(&token("revoked"))),
        Walker::nobody("a disabled user", bearer(&token("disabled"))),
        Walker::nobody("a removed user", bearer(&token("removed"))),
        Walker::user("another tenant", token("tenant"), &[Holder::AnyModelWriter]),
        Walker::user("a user whom an offer was granted to", token("consumer"), &[]),
        Walker::user("a writer's token to read", reads, &[read, write, any]).scoped(reading),
        Walker::user(
            "a superuser's token for another model",
            stays,
            &[read, write, admin, any, Holder::Superuser],
        )
        .scoped(elsewhere),
        Walker::user("a reader", token("reader"), &[read]),
        Walker::user("a writer", token("writer"), &[read, write, any]),
        Walker::user("an administrator", token("owner"), &[read, write, admin, any]),
        Walker::user("a superuser", token("root"), &[read, write, admin, any, Holder::Superuser]),
        Walker::agent("the agent", "one", &[Holder::SameAgent, Holder::RunnersAgent]),
        Walker::agent("another host's agent", "two", &[]),
        Walker::agent("the runner of another model", "three", &[Holder::SameAgent]).about_itself("three"),
        Walker::agent("the runner of another model, for the agent", "three", &[]),
    ];
    let uuid = model.uuid.to_string();
    let nowhere = ModelUuid(uuid::Uuid::from_u128(77)).to_string();
    let connection = Connection::InProcess(&fixture);
    let mut compared = 0;
    let mut routes = route_rights();
    // Logging out needs no body, and ends the session of each walker who has one: it comes last.
    routes.sort_by_key(|route| route.path == "/v1/logout");
    for route in routes {
        for walker in &walkers {
            let names = Names { model: &uuid, agent: walker.agent, user: "owner" };
            let missing = Names { model: &nowhere, agent: walker.agent, user: "nobody" };
            let oneself =
                walker.name == "an administrator" && route.right.row().holders.contains(&Holder::Oneself);
            compared += 1;
            if route.path == "/v1/logout" && walker.name == "an administrator" {
                let answer = ask(&connection, walker, &line(&route, names, &digest)).await;
                assert_eq!(answer.status, 401, "the superuser has ended this user's sessions on the way");
                continue;
            }
            let may = walker.may(route.right, &model.uuid) || oneself;
            let sees = walker.may(Right::ReadModel, &model.uuid);
            compare((&connection, walker), &route, (names, missing), &digest, (may, sees)).await;
        }
    }
    let operations: usize =
        openapi()["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(compared, operations * walkers.len(), "every operation of the document is walked");
    fixture.stop().await;
}

/// Deploys two units, one on each agent, and removes the second. Returns their model. The third agent has a unit in
/// another model.
async fn with_a_unit_that_went_away(
    controller: &Listening,
    [first, second, third]: [(&AgentName, &Client); 3],
) -> ModelUuid {
    let operator = controller.on_socket();
    let add_model = async |name: &str| {
        let add = ControllerCommand::add_model(name.parse().unwrap());
        match operator.controller_command(add).await.unwrap() {
            Answer::Model { uuid } => uuid,
            other => panic!("{other:?}"),
        }
    };
    let (uuid, other) = (add_model("m").await, add_model("other").await);
    let digest = operator.upload_charm(charm()).await.unwrap().digest;
    for (model, agents) in [(uuid, vec![first.0, second.0]), (other, vec![third.0])] {
        let units = u32::try_from(agents.len()).unwrap();
        let Command::Deploy(mut tiny) = deploy(digest, units) else { panic!("no deploy") };
        tiny.placement = agents.into_iter().cloned().map(Placement::Agent).collect();
        operator.command(&model.into(), Command::Deploy(tiny)).await.unwrap();
    }
    let mut elsewhere = third.1.assignments(third.0).await.unwrap();
    next_where(&mut elsewhere, |assigned| assigned.models.contains_key(&other)).await;
    let mut assigned = second.1.assignments(second.0).await.unwrap();
    next_where(&mut assigned, |assigned| assigned.models.contains_key(&uuid)).await;
    let force = Some(Force { max_wait: 0 });
    let remove = Command::RemoveUnit { unit: unit("tiny/1"), force, storage: UnitStorage::default() };
    operator.command(&uuid.into(), remove).await.unwrap();
    next_where(&mut assigned, |assigned| assigned.models.is_empty()).await;
    uuid
}

#[tokio::test]
async fn every_route_answers_agents_over_tls_as_the_table_says() {
    let controller = Listening::open_patient().await;
    let agents = ["one", "two", "three", "six"].map(|name| name.parse::<AgentName>().unwrap());
    let mut shown_by = Vec::new();
    let mut clients = Vec::new();
    for agent in &agents {
        let (key, issued) = joined(&controller, agent).await;
        shown_by.push(shown(&key, &issued));
        let client = showing(&controller, &key, &issued);
        client.register(agent, &host()).await.unwrap();
        clients.push(client);
    }
    let _connected = clients[0].assignments(&agents[0]).await.unwrap();
    let host = |place: usize| (&agents[place], &clients[place]);
    let uuid = with_a_unit_that_went_away(&controller, [host(0), host(2), host(3)]).await;
    let model = uuid.to_string();
    // Its key was the agent's until another host joined as the agent.
    let (key, issued) = joined(&controller, &"four".parse().unwrap()).await;
    let _newer = joined(&controller, &"four".parse().unwrap()).await;
    // It was the agent until it was removed.
    let (removed_key, removed) = joined(&controller, &"five".parse().unwrap()).await;
    let remove = ControllerCommand::RemoveAgent { agent: "five".parse().unwrap(), force: false };
    controller.on_socket().controller_command(remove).await.unwrap();

    let mut walkers = Vec::new();
    let own = [Holder::SameAgent, Holder::RunnersAgent];
    let itself = [Holder::SameAgent];
    for (name, agent, about, holds) in [
        ("the agent", "one", "one", &own[..]),
        ("another host's agent", "two", "one", &[]),
        ("another host's agent, for itself", "two", "two", &itself),
        ("an agent whose unit went away", "three", "one", &[]),
        ("an agent whose unit went away, for itself", "three", "three", &itself),
        ("the runner of another model", "six", "one", &[]),
        ("the runner of another model, for itself", "six", "six", &itself),
    ] {
        // Headers over TLS count for nothing.
        let named = Walker {
            headers: vec![("periapt-agent", "one".to_owned())],
            ..Walker::agent(name, agent, holds).about_itself(about)
        };
        let place = agents.iter().position(|known| known.as_str() == agent).unwrap();
        walkers.push((connected(&controller, &shown_by[place]).await, named));
    }
    let nobody = |name| Walker::nobody(name, vec![("periapt-agent", "one".to_owned())]);
    for (name, certificate) in [
        ("a caller without a certificate", ClientCertificate::default()),
        ("an agent whose name another host has joined with", shown(&key, &issued)),
        ("a removed agent", shown(&removed_key, &removed)),
    ] {
        walkers.push((connected(&controller, &certificate).await, nobody(name)));
    }
    let digest = Digest::of(&charm()).to_string();
    let nowhere = ModelUuid(uuid::Uuid::from_u128(77)).to_string();
    for route in route_rights() {
        for (connection, walker) in &walkers {
            let names = Names { model: &model, agent: walker.agent, user: "admin" };
            let missing = Names { model: &nowhere, agent: walker.agent, user: "nobody" };
            let may = walker.may(route.right, &uuid);
            compare((connection, walker), &route, (names, missing), &digest, (may, false)).await;
        }
    }
    controller.close().await;
}

#[tokio::test]
async fn a_charm_is_downloaded_by_those_who_run_or_read_it_alone() {
    let fixture = Fixture::start().await;
    let Deployed { model, assignments: _connected, .. } = fixture.deployed(1).await;
    let _two = fixture.as_agent("two").connect().await;
    let digest = Digest::of(&charm());
    let tenant = join(&fixture, "tenant").await.token.reveal();
    let reader = join(&fixture, "reader").await.token.reveal();
    let read = Command::GrantModel { user: "reader".parse().unwrap(), access: ModelAccess::Read };
    model.command(read).await.unwrap();
    let scope = TokenScope { access: ModelAccess::Read, models: vec![] };
    let new = NewApiToken { name: "ci".into(), scope, lifetime_seconds: 60 };
    let ci = fixture.client.make_token(&new).await.unwrap().token.reveal();
    let address = fixture.handle.address();
    let missing = Digest::of(b"no such charm");
    for (who, header, status) in [
        ("the agent", ("periapt-agent", "one".to_owned()), 200),
        ("another agent", ("periapt-agent", "two".to_owned()), 404),
        ("another tenant", ("authorization", format!("Bearer {tenant}")), 404),
        ("a reader", ("authorization", format!("Bearer {reader}")), 200),
        ("a superuser's token", ("authorization", format!("Bearer {ci}")), 200),
    ] {
        let headers = [(header.0, header.1.as_str())];
        let answer = raw::answered(address, &format!("GET /v1/charms/{digest}"), &headers, "").await;
        assert_eq!(answer.status, status, "{who}");
        if status == 404 {
            let absent = raw::answered(address, &format!("GET /v1/charms/{missing}"), &headers, "").await;
            let text = |answer: &Response, digest: &Digest| {
                String::from_utf8_lossy(&answer.body).replace(&digest.to_string(), "DIGEST")
            };
            assert_eq!(text(&answer, &digest), text(&absent, &missing), "{who}");
        }
    }
    fixture.stop().await;
}
