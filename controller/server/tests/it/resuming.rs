//! Streams that go on at another controller of the same log.

use std::collections::BTreeMap;

use periapt_host_api::{
    ModelName,
    api::WatchPosition,
    command::{Answer, ControllerCommand},
    view::{View, ViewEntity},
};

use crate::{
    fixture::{Model, charm, deploy, next, next_where},
    set::Set,
    watches::set_title,
};

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
