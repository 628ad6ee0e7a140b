//! Commands that followers pass on while others are under way to the controller that leads.

use std::time::Duration;

use periapt_client::{Client, Identity, Options};
use periapt_host_api::{
    ModelName, Revision,
    api::ModelSelector,
    command::{Command, CommandResult, ControllerCommand},
};
use tokio::time::sleep;

use super::{
    chance::Chance,
    fold::Fold,
    log::LogWeather,
    sessions::CALLERS,
    world::{End, World},
};

/// A moment in which messages arrive. It is far shorter than a leadership.
const MOMENT: Duration = Duration::from_millis(100);

/// The commands of a large request: more than one group and one batch take.
const MANY: usize = 600;

/// Returns a world in which the first host's controller leads the others, and nothing is left to do.
async fn led_by_the_first() -> World {
    let world = World::new(&mut Chance::new(0));
    for host in 0..world.hosts.len() {
        world.start(&world.hosts[host]).await;
        // The first one leads before the next one starts.
        client(&world, host).models().await.unwrap();
        while world.archive.end() == Revision(0) {
            sleep(MOMENT).await;
        }
    }
    world.settled().await.unwrap();
    // The leading controller lists the others meanwhile.
    sleep(Duration::from_secs(10)).await;
    world.settled().await.unwrap();
    world
}

/// Returns a client of one host's controller.
fn client(world: &World, host: usize) -> Client {
    let caller = world.network.caller(CALLERS[host]);
    let options = Options::in_memory(caller, &[world.hosts[host].address], Identity::Local);
    let within = Duration::from_secs(20);
    Client::new(options.with_retry_timeout(within).with_unanswered_retry_timeout(within)).unwrap()
}

/// Has the first host's controller wait for the log, or go on.
fn stand_still(world: &World, is_paused: bool) {
    world.hosts[0].set_log(LogWeather { is_paused, ..LogWeather::default() });
}

#[test]
fn commands_of_followers_are_in_the_leaders_next_batch_though_earlier_ones_are_not_answered() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = led_by_the_first().await;
        let add = |host: usize, name: &str| {
            let (client, name) = (client(&world, host), ModelName::new(name).unwrap());
            tokio::spawn(async move { client.controller_command(ControllerCommand::add_model(name)).await })
        };
        stand_still(&world, true);
        let first = add(1, "first");
        sleep(MOMENT).await;
        let mut others = Vec::new();
        for (host, name) in [(1, "second"), (0, "local"), (2, "third"), (1, "fourth")] {
            others.push(add(host, name));
            sleep(MOMENT).await;
        }
        assert!(!first.is_finished() && others.iter().all(|other| !other.is_finished()), "H2");
        stand_still(&world, false);
        for added in std::iter::once(first).chain(others) {
            added.await.unwrap().unwrap();
        }
        for host in [1, 2] {
            assert_eq!(client(&world, host).models().await.unwrap().len(), 5, "H5");
        }
        let fold = Fold::of(&world.archive.entries()).unwrap();
        let at = |name: &str| fold.added[name].as_slice();
        let [batch] = at("local") else { panic!("H4: {:?}", fold.added) };
        for name in ["second", "third", "fourth"] {
            assert_eq!(at(name), [*batch], "{name} waited for an answer: {:?}", fold.added);
        }
        assert!(at("first") < at("local"));
        world.stop().await;
    });
}

#[test]
fn commands_of_one_request_keep_their_order_over_groups_and_leaders() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = led_by_the_first().await;
        let by = client(&world, 1);
        by.controller_command(ControllerCommand::add_model(ModelName::new("m").unwrap())).await.unwrap();
        let model: ModelSelector = "m".parse().unwrap();
        let writes = |round: &str| -> Vec<Command> {
            let value = |number: usize| [("apt-mirror".to_owned(), format!("{round}-{number}"))].into();
            let write = |number| Command::SetModelConfig { set: value(number), reset: Vec::new() };
            (0..MANY).map(write).collect()
        };
        for (round, is_lost) in [("led", false), ("lost", true)] {
            stand_still(&world, true);
            let (sender, to, commands) = (by.clone(), model.clone(), writes(round));
            let sent = tokio::spawn(async move { sender.commands(&to, commands).await });
            sleep(MOMENT).await;
            assert!(!sent.is_finished(), "H2");
            match is_lost {
                // Another controller leads next. It may be the one that has passed the commands on.
                true => world.end(&world.hosts[0], End::PowerLoss).await,
                false => stand_still(&world, false),
            }
            let results = sent.await.unwrap().unwrap().results;
            assert_eq!(results.len(), MANY);
            let refused = results.iter().find(|result| !matches!(result, CommandResult::Ok(_)));
            assert!(refused.is_none(), "{refused:?}");
            let config = by.model_config(&model).await.unwrap();
            let value = config.0.get("apt-mirror").and_then(|setting| setting.value.as_str());
            assert_eq!(value, Some(&*format!("{round}-{}", MANY - 1)), "the last one has the last word");
        }
        world.heal().await;
        world.settled().await.unwrap();
        let fold = Fold::of(&world.archive.entries()).unwrap();
        assert_eq!(fold.writes["m"], 2 * MANY, "H4");
        world.stop().await;
    });
}
