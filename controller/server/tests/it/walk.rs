//! A walk along every route as every kind of caller: the controller answers as the table of rights says, and what a
//! caller may not see is answered as what does not exist.

use std::collections::BTreeSet;

use periapt_controller::{RouteRight, openapi, route_rights};
use periapt_host_api::{
    Digest, ModelUuid,
    access::{ControllerAccess, ModelAccess},
    command::{Command, ControllerCommand},
    user::{NewApiToken, TokenScope},
};
use periapt_model::{Holder, Right, SubjectKind};

use crate::{
    fixture::{Deployed, Fixture, charm},
    raw::{self, Response},
    users::{join, with_token},
};

/// A caller, with the holders that apply to it for the subjects of this walk.
struct Walker {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    holds: BTreeSet<Holder>,
    kind: Kind,
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
        Self { name, headers, holds, kind: Kind::User }
    }

    fn nobody(name: &'static str, headers: Vec<(&'static str, String)>) -> Self {
        Self { name, headers, holds: [Holder::Anyone].into(), kind: Kind::Nobody }
    }

    fn agent(name: &'static str, agent: &str, holds: &[Holder]) -> Self {
        let headers = vec![("periapt-agent", agent.to_owned())];
        let holds = holds.iter().copied().chain([Holder::Anyone, Holder::AnyAgent]).collect();
        Self { name, headers, holds, kind: Kind::Agent }
    }

    fn may(&self, right: Right) -> bool {
        right.row().holders.iter().any(|holder| self.holds.contains(holder))
    }

    fn sees_the_model(&self) -> bool {
        self.may(Right::ReadModel)
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
        .replace("{digest}", digest);
    assert!(!path.contains('{'), "{path} has a part that this test does not know");
    format!("{} {path}", route.method)
}

async fn ask(fixture: &Fixture, walker: &Walker, line: &str) -> Response {
    let mut headers: Vec<(&str, &str)> =
        walker.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("content-type", "application/json"));
    // No request has a body that makes sense, so that no walker changes anything.
    raw::answered(fixture.handle.address(), line, &headers, "!").await
}

/// Returns the code of a refusal, and its text without the names that the request held.
fn told(answer: &Response, names: Names<'_>) -> (u16, String) {
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
    let digest = Digest::of(&charm()).to_string();
    let grant = |model: &crate::fixture::Model, user: &str, access| {
        let command = Command::GrantModel { user: user.parse().unwrap(), access };
        let (client, selector) = (model.client.clone(), model.selector());
        async move { client.command(&selector, command).await.unwrap() }
    };
    let mut tokens = std::collections::BTreeMap::new();
    for name in ["tenant", "reader", "writer", "owner", "root", "revoked", "disabled", "removed"] {
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
        Walker::user("a reader", token("reader"), &[read]),
        Walker::user("a writer", token("writer"), &[read, write, any]),
        Walker::user("an administrator", token("owner"), &[read, write, admin, any]),
        Walker::user("a superuser", token("root"), &[read, write, admin, any, Holder::Superuser]),
        Walker::agent("the agent", "one", &[Holder::SameAgent, Holder::RunnersAgent]),
        Walker::agent("another host's agent", "two", &[]),
    ];
    let there = |user| Names { model: "MODEL", agent: "one", user };
    let uuid = model.uuid.to_string();
    let nowhere = ModelUuid(uuid::Uuid::from_u128(77)).to_string();
    let mut compared = 0;
    let mut routes = route_rights();
    // Logging out needs no body, and ends the session of each walker who has one: it comes last.
    routes.sort_by_key(|route| route.path == "/v1/logout");
    for route in routes {
        for walker in &walkers {
            let names = Names { model: &uuid, ..there("owner") };
            let answer = ask(&fixture, walker, &line(&route, names, &digest)).await;
            let at = format!("{} {} as {}: {}", route.method, route.path, walker.name, answer.status);
            let oneself =
                walker.name == "an administrator" && route.right.row().holders.contains(&Holder::Oneself);
            compared += 1;
            if route.path == "/v1/logout" && walker.name == "an administrator" {
                assert_eq!(answer.status, 401, "the superuser has ended this user's sessions on the way");
                continue;
            }
            if walker.may(route.right) || oneself {
                // The handler refuses content that the unit does not have in the words for a refused caller.
                let by_content = answer.status == 403 && route.path.contains("{resource}");
                let refused = [401, 403, 501].contains(&answer.status);
                assert!(by_content || !refused, "{at} {}", String::from_utf8_lossy(&answer.body));
                continue;
            }
            let missing = Names { model: &nowhere, agent: "one", user: "nobody" };
            match (walker.kind, route.right.row().subject) {
                (Kind::Nobody, _) => assert_eq!(answer.status, 401, "{at}"),
                (Kind::User, SubjectKind::Model) if !walker.sees_the_model() => {
                    let absent = ask(&fixture, walker, &line(&route, missing, &digest)).await;
                    assert_eq!(told(&answer, names), told(&absent, missing), "{at}");
                    assert_eq!(answer.status, 404, "{at}");
                }
                (Kind::User, SubjectKind::User) => {
                    let absent = ask(&fixture, walker, &line(&route, missing, &digest)).await;
                    assert_eq!(told(&answer, names), told(&absent, missing), "{at}");
                    assert_eq!(answer.status, 404, "{at}");
                }
                (Kind::User | Kind::Agent, _) => {
                    assert_eq!(answer.status, 403, "{at}");
                    let absent = ask(&fixture, walker, &line(&route, missing, &digest)).await;
                    assert_eq!(told(&answer, names), told(&absent, missing), "{at}");
                }
            }
        }
    }
    let operations: usize =
        openapi()["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(compared, operations * walkers.len(), "every operation of the document is walked");
    fixture.stop().await;
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
