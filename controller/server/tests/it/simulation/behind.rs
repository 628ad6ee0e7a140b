//! Controllers and their clients, step by step, while one of them is behind, stale, or without its log.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, Options, Seen};
use periapt_host_api::{
    AgentName, ErrorCode, ModelName,
    access::ModelAccess,
    api::WatchPosition,
    command::ControllerCommand,
    token::{Token, TokenKind},
    user::{NewApiToken, TokenScope},
};

use super::{
    agents::AGENTS,
    chance::Chance,
    log::{LogDefect, LogWeather},
    scenes,
    sessions::CALLERS,
    world::{End, World},
};
use crate::watches::set_title;

#[test]
fn a_client_that_a_stale_controller_refuses_asks_the_next_one_from_then_on() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(&mut Chance::new(0));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        let urls: Vec<_> = world.hosts.iter().map(|host| format!("http://{}", host.address)).collect();
        let addresses: Vec<_> = world.hosts.iter().map(|host| host.address).collect();
        // It makes one attempt, so that the next request is the one that goes elsewhere.
        let options = Options::in_memory(world.network.caller(CALLERS[0]), &addresses, Identity::Local);
        let client = Client::new(options).unwrap();
        client.models().await.unwrap();
        assert_eq!(client.urls(), urls);

        world.hosts[0].cut_log();
        tokio::time::sleep(Duration::from_secs(8)).await;
        let refused = client.models().await.unwrap_err();
        assert_eq!(refused.refusal().unwrap().code, ErrorCode::TryAgain, "{refused}");
        client.models().await.unwrap();
        assert_eq!(client.urls(), [&*urls[1], &urls[2], &urls[0]]);
        world.heal().await;
        client.models().await.unwrap();
        assert_eq!(client.urls()[0], urls[1], "it has no reason to go back");
        world.stop().await;
    });
}

#[test]
fn a_leading_controller_stops_though_the_log_does_not_answer() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(&mut Chance::new(0));
        for host in &world.hosts[..2] {
            world.start(host).await;
            let caller = world.network.caller(CALLERS[0]);
            let options = Options::in_memory(caller, &[host.address], Identity::Local);
            let client = Client::new(options.with_retry_timeout(Duration::from_secs(5))).unwrap();
            client.models().await.unwrap();
        }
        // It goes on to lead. Within two seconds it lists the second controller, and waits for the log to take that.
        world.hosts[0].set_log(LogWeather { lost_calls: 100, ..LogWeather::default() });
        tokio::time::sleep(Duration::from_secs(5)).await;
        for host in &world.hosts[..2] {
            let stopped = tokio::time::timeout(Duration::from_secs(60), world.end(host, End::Stop));
            stopped.await.unwrap();
        }
    });
}

#[test]
fn a_controller_that_is_behind_waits_for_what_its_caller_saw_at_another_one() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new(&mut Chance::new(0)));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        let client = |host: usize, seen: &Seen| {
            let caller = world.network.caller(CALLERS[0]);
            let options = Options::in_memory(caller, &[world.hosts[host].address], Identity::Local);
            Client::new(options.with_seen(seen.clone())).unwrap()
        };
        let stand_still =
            |is_paused| world.hosts[2].set_log(LogWeather { is_paused, ..LogWeather::default() });
        let (seen, nothing) = (Seen::default(), Seen::default());
        stand_still(true);
        let add = ControllerCommand::add_model(ModelName::new("m").unwrap());
        client(0, &seen).controller_command(add).await.unwrap();
        assert!(client(2, &nothing).models().await.unwrap().is_empty(), "it is behind");
        let before = nothing.position().unwrap();
        assert!(before.revision < seen.position().unwrap().revision);
        let waiting = tokio::spawn({
            let client = client(2, &seen);
            async move { client.models().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        stand_still(false);
        assert_eq!(waiting.await.unwrap().unwrap().len(), 1);

        // It does not wait for ever.
        stand_still(true);
        let add = ControllerCommand::add_model(ModelName::new("n").unwrap());
        client(0, &seen).controller_command(add).await.unwrap();
        let refused = client(2, &seen).models().await.unwrap_err();
        assert_eq!(refused.refusal().unwrap().code, ErrorCode::TryAgain, "{refused}");
        assert!(refused.to_string().contains("behind the others"), "{refused}");
        world.heal().await;
        world.stop().await;
    });
}

#[test]
fn a_token_that_was_just_made_is_known_to_a_controller_that_is_behind() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new(&mut Chance::new(0)));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        // No client tells another one what it has seen.
        let client = |host: usize, identity: Identity| {
            let caller = world.network.caller(CALLERS[0]);
            Client::new(Options::in_memory(caller, &[world.hosts[host].address], identity)).unwrap()
        };
        let stand_still =
            |is_paused| world.hosts[2].set_log(LogWeather { is_paused, ..LogWeather::default() });
        stand_still(true);
        let scope = TokenScope { access: ModelAccess::Read, models: Vec::new() };
        let new = NewApiToken { name: "ci".to_owned(), scope, lifetime_seconds: 600 };
        let token = client(0, Identity::Local).make_token(&new).await.unwrap().token;
        let waiting = tokio::spawn({
            let client = client(2, Identity::Token(token));
            async move { client.models().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        stand_still(false);
        assert!(waiting.await.unwrap().unwrap().is_empty());

        let nobody = client(2, Identity::Token(Token::new(TokenKind::Api, [7; 32])));
        assert_eq!(nobody.models().await.unwrap_err().refusal().unwrap().code, ErrorCode::NotLoggedIn);
        world.stop().await;
    });
}

#[test]
fn a_watch_with_a_position_that_a_controller_has_not_applied_waits_for_it() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::with_agents(&mut Chance::new(0), LogDefect::None));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        let model = scenes::deployed(&world).await;
        world.settled().await.unwrap();
        let agent = AgentName::new(AGENTS[0]).unwrap();
        let client = |host: usize, identity: Identity| {
            let caller = world.network.caller(CALLERS[0]);
            Client::new(Options::in_memory(caller, &[world.hosts[host].address], identity)).unwrap()
        };
        let stand_still =
            |is_paused| world.hosts[2].set_log(LogWeather { is_paused, ..LogWeather::default() });
        stand_still(true);
        let command = client(0, Identity::Local).command(&model.into(), set_title("new")).await;
        command.unwrap();
        let mut frames = client(0, Identity::Agent(agent.clone())).watch(&agent, &model, None).await.unwrap();
        let newest = frames.next().await.unwrap().unwrap();

        // Without its position it is shown what there was before.
        let lagging = client(2, Identity::Agent(agent.clone()));
        let before = lagging.watch(&agent, &model, None).await.unwrap().next().await.unwrap().unwrap();
        assert!(before.to < newest.to, "{} {}", before.to, newest.to);
        let waiting = tokio::spawn({
            let client = client(2, Identity::Agent(agent.clone()));
            let (agent, position) =
                (agent.clone(), WatchPosition { store: newest.store, revision: newest.to });
            async move { client.watch(&agent, &model, Some(position)).await.unwrap().next().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        stand_still(false);
        let shown = waiting.await.unwrap().unwrap().unwrap();
        assert!(shown.to >= newest.to, "{} {}", shown.to, newest.to);
        assert_eq!(shown.from, Some(newest.to), "it goes on with the difference, and gets no whole view");
        world.stop().await;
    });
}
