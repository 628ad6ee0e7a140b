//! Streams that go on at another controller of the same log.

use std::{collections::BTreeMap, time::Duration};

use futures_util::StreamExt as _;
use periapt_client::Client;
use periapt_host_api::{
    AgentName, ModelName, ModelUuid, Revision,
    api::WatchPosition,
    command::{Answer, Command, CommandResult, ControllerCommand, MemberRole, Placement},
    view::{View, ViewEntity},
};
use tokio::sync::watch;

use crate::{
    fixture::{Model, TIMEOUT, application, charm, deploy, next, next_where},
    set::{Member, Set},
    watches::set_title,
};

/// The agents of the test with many watchers. Each watches two models.
const AGENTS: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_goes_on_at_another_controller_with_what_it_missed() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.leads("one").await;
    let agent = one.as_agent("a1");
    let mut assignments = agent.connect().await;
    let mut models = BTreeMap::new();
    for name in ["m", "other"] {
        let add = ControllerCommand::add_model(ModelName::new(name).unwrap());
        let Answer::Model { uuid } = two.client.controller_command(add).await.unwrap() else { panic!() };
        models.insert(name, Model { client: two.client.clone(), uuid });
    }
    let (model, other) = (&models["m"], &models["other"]);
    let digest = one.client.upload_charm(charm()).await.unwrap().digest;
    for model in [model, other] {
        model.command(deploy(digest, 1)).await.unwrap();
    }
    next_where(&mut assignments, |assigned| assigned.models.contains_key(&model.uuid)).await;
    let mut watch = agent.client.watch(&agent.name, &model.uuid, None).await.unwrap();
    let first =
        next_where(&mut watch, |frame| frame.puts.iter().any(|entity| matches!(entity, ViewEntity::Unit(_))))
            .await;
    assert_eq!(first.from, None);
    let position = WatchPosition { store: first.store, revision: first.to };
    let mut mirror = View::default();
    mirror.apply(first).unwrap();
    drop((watch, assignments));

    // The other model is written much more often.
    for number in 0..100 {
        for _ in 0..3 {
            other.command(set_title(number.to_string())).await.unwrap();
        }
        model.command(set_title(number.to_string())).await.unwrap();
    }
    one.stop().await;
    two.leads("two").await;
    model.command(set_title("last")).await.unwrap();

    let agent = two.as_agent("a1");
    let missed = next(&mut agent.client.watch(&agent.name, &model.uuid, Some(position)).await.unwrap()).await;
    assert_eq!(missed.from, Some(position.revision), "it is the difference");
    assert!(missed.puts.len() < mirror.entries(), "{missed:?}");
    mirror.apply(missed).unwrap();
    let mut whole = View::default();
    whole.apply(next(&mut agent.client.watch(&agent.name, &model.uuid, None).await.unwrap()).await).unwrap();
    assert_eq!(View { revision: whole.revision, ..mirror }, whole);
    two.stop().await;
}

/// The progress of a watcher: the revision of its view, and the number of full views that it was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    revision: Revision,
    full: usize,
}

/// Watches a model as a runner does: when a stream ends, the watcher goes on at the next controller, from the position
/// that it has.
async fn watch_on(
    clients: Vec<Client>,
    mut at: usize,
    (agent, model): (AgentName, ModelUuid),
    told: watch::Sender<Watched>,
) {
    let (mut view, mut position) = (View::default(), None);
    loop {
        if let Ok(mut frames) = clients[at % clients.len()].watch(&agent, &model, position).await {
            while let Some(Ok(frame)) = frames.next().await {
                let full = usize::from(frame.from.is_none());
                position = Some(WatchPosition { store: frame.store, revision: frame.to });
                view.apply(frame).unwrap();
                told.send_modify(|told| {
                    *told = Watched { revision: view.revision, full: told.full + full };
                });
            }
        }
        // Before its first view, the agent may have no unit of the model yet.
        at += usize::from(position.is_some());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sets an option, and returns the revision at which it is set.
async fn change(model: &Model, title: &str) -> Revision {
    loop {
        let results = model.client.commands(&model.selector(), vec![set_title(title)]).await.unwrap();
        match results.results.as_slice() {
            [CommandResult::Ok(_)] => return results.revision,
            [CommandResult::Error(refusal)] if refusal.code.is_temporary() => {}
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until each watcher has a view of this revision or a later one, and returns the full views that all were sent.
async fn reached(watchers: &mut [watch::Receiver<Watched>], revision: Revision) -> usize {
    let mut full = 0;
    for watcher in watchers {
        let reached = watcher.wait_for(|watched| watched.revision >= revision);
        full += tokio::time::timeout(2 * TIMEOUT, reached).await.unwrap().unwrap().full;
    }
    full
}

/// Waits until another controller than this one leads, as one of the others knows it.
async fn leads_instead_of(before: &str, asked: &Member) {
    let leads = async {
        loop {
            let members = asked.client.controller().await.unwrap().members;
            if members.iter().any(|member| member.role == MemberRole::Leader && member.name != before) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, leads).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_takeover_at_most_one_watcher_in_a_hundred_gets_a_full_view() {
    let set = Set::new();
    let one = set.start("one").await;
    one.leads("one").await;
    let (two, three) = (set.start("two").await, set.start("three").await);
    let (mut agents, mut streams) = (Vec::new(), Vec::new());
    for number in 0..AGENTS {
        let agent = two.as_agent(&format!("a{number}"));
        streams.push(agent.connect().await);
        agents.push(agent);
    }
    let digest = two.client.upload_charm(charm()).await.unwrap().digest;
    let mut models = Vec::new();
    for name in ["m", "other"] {
        let Answer::Model { uuid } = two.add_model(name).await.unwrap() else { panic!() };
        let model = Model { client: two.client.clone(), uuid };
        model.command(deploy(digest, 0)).await.unwrap();
        let placement = agents.iter().map(|agent| Placement::Agent(agent.name.clone())).collect();
        let add = Command::AddUnits {
            application: application("tiny"),
            count: u32::try_from(AGENTS).unwrap(),
            placement,
            attach_storage: Vec::new(),
        };
        model.command(add).await.unwrap();
        models.push(model);
    }

    let (mut tasks, mut of_first, mut of_second) = (Vec::new(), Vec::new(), Vec::new());
    for (number, agent) in agents.iter().enumerate() {
        let clients = [&one, &two, &three].map(|member| member.as_agent(agent.name.as_str()).client);
        for (model, watchers) in models.iter().zip([&mut of_first, &mut of_second]) {
            let told = watch::Sender::new(Watched::default());
            watchers.push(told.subscribe());
            let of = (agent.name.clone(), model.uuid);
            tasks.push(tokio::spawn(watch_on(clients.to_vec(), number, of, told)));
        }
    }
    let first = change(&models[0], "seen").await;
    let second = change(&models[1], "seen").await;
    let before = reached(&mut of_first, first).await + reached(&mut of_second, second).await;
    assert!(before >= 2 * AGENTS, "each began with a full view: {before}");

    // The controller that leads, and a third of all watchers with it, hears nothing from the log any more. It ends the
    // streams once it knows that what it shows is old.
    one.cut_off();
    leads_instead_of("one", &two).await;
    let first = change(&models[0], "after").await;
    let second = change(&models[1], "after").await;
    let after = reached(&mut of_first, first).await + reached(&mut of_second, second).await;
    let again = after - before;
    assert!(again * 100 <= 2 * AGENTS, "{again} full views for {} watchers", 2 * AGENTS);

    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    drop(streams);
    one.reconnect();
    for member in [one, two, three] {
        member.stop().await;
    }
}
