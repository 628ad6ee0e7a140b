//! Several controllers of one log, in one process: commands through any of them, leaders that are cut off or end, and
//! the same state everywhere.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use periapt_client::ClientError;
use periapt_controller::{LogBounds, Options, ReplicationOptions, RunError};
use periapt_host_api::{
    ErrorCode, ModelName, Revision, StoreId,
    api::{ModelSelector, SecretQuery},
    command::{Command, ControllerCommand, LogUse, MemberInfo, MemberRole},
    secret::{Confidential, SecretData},
    status::MemberStatus,
};
use periapt_log::{Content, Entry, Log as _, LogHead};
use periapt_store::{MemoryStore, Order, Record, Store as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    fixture::{self, Faults, TIMEOUT},
    raw,
    set::{LOG, Member, Set},
};

const ID: &str = "4f0c8f5e-6f0a-4f39-9a41-1f2a53b0c002";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_to_any_controller_is_carried_out_once_and_seen_by_its_sender_at_once() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    for (member, name) in [(&one, "a"), (&two, "b"), (&three, "c")] {
        member.add_model(name).await.unwrap();
        assert!(member.models().await.contains(&name.to_owned()), "{name} was answered");
    }
    let again = two.add_model("a").await.unwrap_err();
    assert_eq!(again.refusal().unwrap().code, ErrorCode::AlreadyExists, "{again}");
    let (revision, entities) = set.fold();
    for state in set.settled(&[&one, &two, &three]).await {
        assert_eq!(state.revision, revision);
        assert_eq!(state.entities, Vec::from_iter(entities.clone()));
        assert!(state.note.is_some());
    }
    for member in [one, two, three] {
        assert_eq!(member.models().await, ["a", "b", "c"]);
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_added_by_a_following_controller_has_its_content_at_all() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.add_model("a").await.unwrap();
    for (number, member) in [&one, &two].into_iter().enumerate() {
        let content = SecretData::from_texts([("password".to_owned(), number.to_string())]).unwrap();
        let (name, model) =
            (format!("secret-{number}"), member.client.models().await.unwrap().remove(0).uuid);
        let add = Command::AddSecret {
            id: None,
            name: name.clone(),
            content: Confidential::Open(content.clone()),
            description: String::new(),
        };
        let model = ModelSelector::Uuid(model);
        member.client.command(&model, add).await.unwrap();
        set.settled(&[&one, &two]).await;
        let query = SecretQuery { reveal: true, revision: None };
        for shown in [&one, &two] {
            let secret = shown.client.secret(&model, &name, &query).await.unwrap().unwrap();
            assert_eq!(secret.content.as_ref(), Some(&content), "{name}");
        }
    }
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_controller_leads_when_the_leading_one_ends_and_it_comes_back_as_a_follower() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.add_model("a").await.unwrap();
    let memory = Arc::clone(&one.memory);
    one.stop().await;
    two.add_model("b").await.unwrap();
    let one = set.start_on("one", memory).await;
    one.add_model("c").await.unwrap();
    assert_eq!(one.models().await, ["a", "b", "c"]);
    set.settled(&[&one, &two]).await;
    assert_eq!(two.models().await, ["a", "b", "c"]);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leading_controller_that_is_cut_off_from_the_log_answers_nothing_until_it_follows() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.add_model("a").await.unwrap();
    one.access.cut_off();
    // The first controller cannot know yet that it is cut off: the command waits for the log.
    let in_doubt = tokio::spawn({
        let client = one.client.clone();
        async move { client.controller_command(ControllerCommand::add_model(ModelName::new("b").unwrap())).await }
    });
    two.leads("two").await;
    two.add_model("c").await.unwrap();
    assert!(!in_doubt.is_finished(), "what is not in the log is not answered");
    one.access.reconnect();
    // It had no effect with the first controller, which passed it on to the second one.
    in_doubt.await.unwrap().unwrap();
    set.settled(&[&one, &two]).await;
    for member in [&one, &two] {
        assert_eq!(member.models().await, ["a", "b", "c"]);
    }
    let terms: Vec<u64> = set
        .log
        .entries()
        .iter()
        .filter_map(|stored| {
            let entry = Entry::decode(stored.position, &stored.bytes).unwrap();
            matches!(entry.content, Content::Term(_)).then_some(entry.term.0)
        })
        .collect();
    assert_eq!(terms, [1, 2], "each leadership begins with an entry");
    one.stop().await;
    two.stop().await;
}

/// Waits until the status of a model, as a controller tells it, has such controllers.
async fn status_until(of: &Member, holds: impl Fn(&BTreeMap<String, MemberStatus>) -> bool) {
    let told = async {
        while !holds(&of.client.status(&"a".parse().unwrap()).await.unwrap().controller.members) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, told).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_status_tells_who_leads_and_how_far_the_others_are_behind() {
    let set = Set::new();
    let one = set.start("one").await;
    one.leads("one").await;
    one.add_model("a").await.unwrap();
    let alone = one.client.status(&"a".parse().unwrap()).await.unwrap();
    assert!(alone.controller.members.is_empty(), "{:?}", alone.controller);

    let two = set.start("two").await;
    let both = [("one", MemberRole::Leader), ("two", MemberRole::Follower)];
    for member in [&one, &two] {
        status_until(member, |told| {
            told.iter().map(|(name, member)| (name.as_str(), member.role)).eq(both)
                && told.values().all(|member| member.behind == 0 && !member.stale)
        })
        .await;
    }
    two.cut_off();
    one.add_model("b").await.unwrap();
    status_until(&one, |told| told["one"].behind == 0 && told["two"].behind > 0).await;
    two.reconnect();
    status_until(&one, |told| told["two"].behind == 0).await;
    one.stop().await;
    two.stop().await;
}

/// Adds a model as `curl` does, and returns the result.
async fn add_model_raw(address: SocketAddr, id: Option<&str>, name: &str) -> Value {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(id.map(|id| ("Periapt-Request-Id", id)));
    let add = ControllerCommand::add_model(ModelName::new(name).unwrap());
    let body = json!({ "commands": [add] }).to_string();
    let response = raw::request(address, "POST /v1/commands", &headers, &body).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["results"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_id_has_one_effect_and_one_answer_whichever_controllers_it_is_sent_to() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    one.leads("one").await;
    let first = add_model_raw(two.handle.address(), Some(ID), "a").await;
    assert!(first["ok"]["model"]["uuid"].is_string(), "{first}");
    one.stop().await;
    for member in [&three, &two] {
        assert_eq!(add_model_raw(member.handle.address(), Some(ID), "a").await, first);
    }
    assert_eq!(two.added().await, 1);
    let other = add_model_raw(three.handle.address(), Some(ID), "b").await;
    assert_eq!(other["error"]["code"], "bad-request", "{other}");
    let without = add_model_raw(three.handle.address(), None, "a").await;
    assert_eq!(without["error"]["code"], "already-exists", "{without}");
    for member in [two, three] {
        assert_eq!(member.models().await, ["a"]);
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_deposed_leader_holds_is_carried_out_once_if_its_request_has_an_id() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    one.leads("one").await;
    one.access.cut_off();
    // The leading controller takes both, and waits for the log. The followers do not learn what became of them.
    let [with, without] = [(&two, Some(ID), "a"), (&three, None, "b")].map(|(member, id, name)| {
        let address = member.handle.address();
        tokio::spawn(async move { add_model_raw(address, id, name).await })
    });
    let answer = with.await.unwrap();
    assert!(answer["ok"]["model"]["uuid"].is_string(), "another controller has carried it out: {answer}");
    let unknown = without.await.unwrap();
    assert_eq!(unknown["error"]["code"], "outcome-unknown", "{unknown}");
    assert_eq!(two.models().await, ["a"]);
    one.access.reconnect();
    // What the first controller held goes to the one that leads now. It has the answer to one command already.
    while one.models().await != ["a", "b"] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(add_model_raw(one.handle.address(), Some(ID), "a").await, answer);
    assert_eq!(one.added().await, 2);
    for member in [one, two, three] {
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_writes_nothing_is_answered_once_the_log_has_confirmed_the_term() {
    let set = Set::new();
    let one = set.start("one").await;
    one.leads("one").await;
    let address = one.handle.address();
    let first = add_model_raw(address, Some(ID), "a").await;
    one.cut_off();
    // The answer is kept, so nothing is written. Another controller may lead by now, and have changed all.
    let again = tokio::spawn(async move { add_model_raw(address, Some(ID), "a").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!again.is_finished(), "the log has not confirmed the term");
    one.reconnect();
    assert_eq!(again.await.unwrap(), first);
    one.stop().await;
}

#[tokio::test]
async fn a_store_of_another_log_or_of_none_is_refused_before_anything_is_written() {
    let set = Set::new();
    let refused = async |memory: MemoryStore, replication: Option<ReplicationOptions>| {
        let options = Options {
            replication,
            ..fixture::options(Arc::new(memory), Faults::default(), &set.blobs("one"))
        };
        options.build().await.err().unwrap().to_string()
    };
    let replication = || Some(set.replication("one", &set.log.member()));
    let other = MemoryStore::new(StoreId(uuid::Uuid::from_u128(71)));
    let error = refused(other, replication()).await;
    assert!(error.contains("is not fed from the log 00000000-0000-0000-0000-000000000046"), "{error}");
    let alone = MemoryStore::new(LOG);
    alone.commit(periapt_store::Batch::default()).await.unwrap();
    let error = refused(alone, replication()).await;
    assert!(error.contains("is not fed from the log"), "{error}");
    let fed = MemoryStore::new(LOG);
    let note = Some(LogHead::empty(LOG).encode());
    fed.commit(periapt_store::Batch { note, ..Default::default() }).await.unwrap();
    let error = refused(fed, None).await;
    assert!(error.contains("start the controller with --log"), "{error}");
    assert_eq!(set.log.member().id(), LOG);
    assert!(set.log.entries().is_empty());
}

/// Returns all records of a store, by sequence.
async fn records(memory: &MemoryStore) -> Vec<(Vec<u8>, Vec<Record>)> {
    let mut all = Vec::new();
    for sequence in memory.sequences(None, usize::MAX).await.unwrap() {
        let order = Order::OldestFirst { after: None };
        let records = memory.records(&sequence, order, usize::MAX).await.unwrap();
        all.push((sequence, records));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_trimmed_and_who_needs_what_it_does_not_have_takes_the_leaders_state() {
    let set = Set::bounded(LogBounds { kept: 0, ..LogBounds::default() });
    let (one, two) = (set.start("one").await, set.start("two").await);
    for name in ["a", "b", "c"] {
        two.add_model(name).await.unwrap();
    }
    let (memory, two_s) = (Arc::clone(&two.memory), set.settled(&[&two]).await);
    two.stop().await;
    // The only other controller is away, and its last report does not count any more: nothing goes.
    tokio::time::sleep(Duration::from_secs(8)).await;
    one.add_model("d").await.unwrap();
    let first = |set: &Set| set.log.entries().first().map(|entry| entry.position);
    for _ in 0..20 {
        set.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(first(&set), Some(Revision(1)));

    let three = set.start("three").await;
    let trimmed = async {
        while first(&set) <= Some(two_s[0].revision) {
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, trimmed).await.unwrap();
    // One comes back to what the log does not have any more, and one joins.
    let two = set.start_on("two", memory).await;
    let four = set.start("four").await;
    four.add_model("e").await.unwrap();
    let states = set.settled(&[&one, &two, &three, &four]).await;
    for (member, state) in [&one, &two, &three, &four].into_iter().zip(&states) {
        assert_eq!(*state, states[0]);
        assert_eq!(member.models().await, ["a", "b", "c", "d", "e"]);
        assert_eq!(records(&member.memory).await, records(&one.memory).await);
    }
    for member in [one, two, three, four] {
        member.stop().await;
    }
}

/// Waits until what the leading controller tells of another one is so.
async fn until_told(by: &Member, name: &str, is_so: impl Fn(&MemberInfo) -> bool) {
    let told = async {
        loop {
            let members = by.client.controller().await.unwrap().members;
            if members.iter().any(|member| member.name == name && is_so(member)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, told).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_room_cuts_a_controller_off_that_is_away_and_it_comes_back_by_the_leaders_state() {
    const MOST: u64 = 8 << 10;
    let set = Set::bounded(LogBounds { kept: 4 << 10, most: MOST });
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.leads("one").await;
    one.add_model("first").await.unwrap();
    set.settled(&[&one, &two]).await;
    until_told(&one, "two", |member| member.revision > Revision(0)).await;
    two.cut_off();
    let had = two.memory.load().await.unwrap().revision;
    until_told(&one, "two", |member| !member.cut_off).await;

    // The other controller's last report counts for some seconds, and then none: neither holds the writer up.
    let first = |set: &Set| set.log.entries().first().map(|entry| entry.position);
    let mut added = 0;
    let written = async {
        while first(&set) <= Some(Revision(had.0 + 1)) {
            one.add_model(&format!("m{added}")).await.unwrap();
            added += 1;
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while set.log_bytes() > MOST {
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, written).await.unwrap();
    until_told(&one, "two", |member| member.cut_off).await;
    let told = async {
        loop {
            let entries = set.log.entries().len() as u64;
            let log = LogUse { entries, bytes: set.log_bytes(), bound: MOST };
            if one.client.controller().await.unwrap().log == Some(log) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, told).await.unwrap();

    two.reconnect();
    let states = tokio::time::timeout(TIMEOUT, set.settled(&[&one, &two])).await.unwrap();
    assert_eq!(states[0], states[1]);
    assert_eq!(two.models().await, one.models().await);
    assert_eq!(two.models().await.len(), added + 1);
    assert_eq!(records(&two.memory).await, records(&one.memory).await);
    until_told(&one, "two", |member| !member.cut_off && member.revision >= states[1].revision).await;
    two.add_model("last").await.unwrap();
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_whose_entries_are_gone_says_why_it_waits_until_another_one_leads() {
    let set = Set::bounded(LogBounds { kept: 0, ..LogBounds::default() });
    let one = set.start("one").await;
    one.leads("one").await;
    let (two, three) = (set.start("two").await, set.start("three").await);
    one.add_model("a").await.unwrap();
    set.settled(&[&two]).await;
    two.cut_off();
    let at = two.memory.load().await.unwrap().revision;
    for name in ["b", "c", "d"] {
        one.add_model(name).await.unwrap();
    }
    // What it lacks goes once its last report does not count any more.
    let trimmed = async {
        while set.log.entries().first().is_none_or(|entry| entry.position.0 <= at.0 + 2) {
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, trimmed).await.unwrap();
    let memory = Arc::clone(&three.memory);
    set.settled(&[&three]).await;
    one.stop().await;
    three.stop().await;

    two.reconnect();
    let says = async {
        loop {
            let problem = two.client.controller().await.unwrap().problem;
            match problem.is_some_and(|problem| problem.contains("no controller leads that has the entries"))
            {
                true => return,
                false => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(TIMEOUT, says).await.unwrap();
    let three = set.start_on("three", memory).await;
    let goes_on = async {
        while two.client.controller().await.unwrap().problem.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, goes_on).await.unwrap();
    assert_eq!(two.models().await, ["a", "b", "c", "d"]);
    for member in [two, three] {
        member.stop().await;
    }
}

/// Removes a controller, as soon as it is listed.
async fn remove(set: &Set, by: &Member, name: &str) {
    let removed = async {
        loop {
            let command = ControllerCommand::RemoveController { name: name.into() };
            match by.client.controller_command(command).await {
                Ok(_) => return,
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => {}
                Err(failure) => panic!("{failure}"),
            }
            set.clock.advance(Duration::from_secs(2));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, removed).await.unwrap();
}

/// Waits until a controller has ended, and returns its last word.
async fn last_word(running: JoinHandle<Result<(), RunError>>) -> String {
    match tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err() {
        RunError::Removed(word) => word,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_removed_ends_stays_out_and_is_counted_no_more() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    let unknown = ControllerCommand::RemoveController { name: "four".into() };
    let refused = three.client.controller_command(unknown).await.unwrap_err();
    assert!(refused.to_string().contains("controller \"four\" not found"), "{refused}");

    // A follower ends, and so it does when it starts again.
    remove(&set, &three, "two").await;
    let Member { memory, running, .. } = two;
    let word = last_word(running).await;
    assert!(word.contains("controller \"two\" was removed") && word.contains("a new token"), "{word}");
    let (_, _, running) = fixture::run(set.options("two", memory, &set.log.member())).await;
    last_word(running).await;
    let names = async |member: &Member| -> Vec<String> {
        let members = member.client.controller().await.unwrap().members;
        members.into_iter().map(|member| member.name).collect()
    };
    assert_eq!(names(&one).await, ["one", "three"]);

    // The one that leads answers, ends, and another one leads.
    remove(&set, &three, "one").await;
    last_word(one.running).await;
    three.add_model("a").await.unwrap();
    assert_eq!(names(&three).await, ["three"]);
    let last = ControllerCommand::RemoveController { name: "three".into() };
    let refused = three.client.controller_command(last).await.unwrap_err();
    assert!(refused.to_string().contains("is the only one"), "{refused}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_other_keys_ends_with_a_word_and_writes_nothing() {
    let set = Set::new();
    let one = set.start("one").await;
    one.add_model("a").await.unwrap();
    let memory = Arc::new(MemoryStore::new(LOG));
    let options = Options {
        seal: periapt_controller::SealKey::new(&[6; 32]).unwrap(),
        ..set.options("two", Arc::clone(&memory), &set.log.member())
    };
    let (_, _, running) = fixture::run(options).await;
    let ended = tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err().to_string();
    assert!(ended.contains("controller \"one\" of this log has other keys than this one"), "{ended}");
    assert_eq!(memory.load().await.unwrap().revision, Revision(0));
    one.stop().await;
}
