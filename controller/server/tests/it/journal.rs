//! The journal: pages that are bounded in bytes, without data that needs more access.

use std::collections::BTreeSet;

use periapt_host_api::{
    Digest, ErrorCode, Revision,
    agent::RunnerCommand,
    api::{Journal, JournalQuery},
    commit::UnitCommit,
    event::Event,
    journal::{HIDDEN, HookCosts, HookOutcome, JournalRecord, RecordedCall, RecordedCalls, Unrecorded},
    record::UnitRecord,
};

use crate::{
    fixture::{Fixture, code_of, unit},
    logs::Logging,
    raw,
};

/// Returns the calls of a hook that read a secret by both interfaces (typed and hook tool), and much else.
fn calls(bytes: usize) -> RecordedCalls {
    let call = |function: &str, arguments: &str, answer| RecordedCall {
        function: function.to_owned(),
        arguments: arguments.to_owned(),
        answer,
    };
    RecordedCalls {
        calls: vec![
            call("config.get", "[\"a\"]", 0),
            call("secrets.get", "[\"secret:a\"]", 1),
            call("hook-tools.run", "[\"secret-get\",[\"secret:a\"],\"\"]", 2),
            call("hook-tools.run", "[\"config-get\",[],\"\"]", 0),
        ],
        answers: vec!["x".repeat(bytes), "{\"password\":\"hunter2\"}".into(), "\"hunter2\"".into()],
        secrets: vec![],
        omitted: 0,
        unrecorded: Unrecorded::default(),
    }
}

async fn commit(logging: &Logging, name: &str, seq: u64, event: Event, calls: RecordedCalls) {
    commit_ended(logging, name, seq, event, calls, HookOutcome::Handled).await;
}

async fn commit_ended(
    logging: &Logging,
    name: &str,
    seq: u64,
    event: Event,
    calls: RecordedCalls,
    outcome: HookOutcome,
) {
    let journal = JournalRecord {
        seq,
        event,
        attempt: 1,
        snapshot: Revision(1),
        charm: Digest::of(b"a"),
        component: Digest::of(b"b"),
        engine: "wasmtime 48".into(),
        started_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        outcome,
        costs: HookCosts::default(),
        coalesced: vec![],
        calls,
        seed: "5eed".into(),
        sealed: None,
    };
    let commit = UnitCommit {
        unit: unit(name),
        seq,
        incarnation: logging.incarnation,
        record: UnitRecord { seq: seq + 1, ..UnitRecord::default() },
        effects: Default::default(),
        transitions: Default::default(),
        leader_term: None,
        early: vec![],
        journal: Some(journal),
        uncommitted_usage: Default::default(),
    };
    let commit = RunnerCommand::Commit(Box::new(commit));
    let (agent, model) = (&logging.deployed.agent, &logging.deployed.model.uuid);
    agent.client.runner_command(&agent.name, model, commit).await.unwrap();
}

fn seqs(journal: &Journal) -> Vec<(String, u64)> {
    journal.entries.iter().map(|entry| (entry.unit.to_string(), entry.record.seq)).collect()
}

#[tokio::test]
async fn a_hook_that_was_not_recorded_whole_is_shown_as_not_replayable() {
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    let unrecorded = Unrecorded { limit: 262_144, streams: [("web".to_owned(), 9)].into() };
    let cut = RecordedCalls { omitted: 2, unrecorded, ..calls(1) };
    commit(&logging, "tiny/0", 0, Event::Install, calls(1)).await;
    commit(&logging, "tiny/0", 1, Event::Start, cut).await;
    let selector = logging.deployed.model.selector();
    let journal = fixture.client.journal(&selector, Some(&unit("tiny/0"))).await.unwrap();
    let reasons: Vec<_> = journal.entries.iter().map(|entry| entry.not_replayable.as_deref()).collect();
    assert_eq!(reasons, [None, Some("9 bytes of its stream to web were not kept (limit 262144)")]);
    assert!(journal.entries.iter().all(|entry| entry.record.calls.calls.is_empty()), "calls are left out");
    fixture.stop().await;
}

#[tokio::test]
async fn hooks_are_shown_in_the_order_of_their_commits() {
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    commit(&logging, "tiny/0", 0, Event::Install, calls(1)).await;
    commit(&logging, "tiny/1", 0, Event::Install, calls(1)).await;
    commit(&logging, "tiny/0", 1, Event::Start, calls(1)).await;
    let selector = logging.deployed.model.selector();
    let of_one = fixture.client.journal(&selector, Some(&unit("tiny/0"))).await.unwrap();
    let events: Vec<_> = of_one.entries.iter().map(|entry| entry.record.event.clone()).collect();
    assert_eq!(events, [Event::Install, Event::Start]);
    let of_all = fixture.client.journal(&selector, None).await.unwrap();
    assert_eq!(seqs(&of_all), [("tiny/0".into(), 0), ("tiny/1".into(), 0), ("tiny/0".into(), 1)]);
    let nobodys = fixture.client.journal(&selector, Some(&unit("tiny/7"))).await;
    assert_eq!(code_of(nobodys), ErrorCode::NotFound);
    let shown = fixture.client.unit(&selector, &unit("tiny/0")).await.unwrap();
    assert_eq!((shown.journal.len(), shown.record.seq), (2, 2));
    fixture.stop().await;
}

#[tokio::test]
async fn of_one_unit_hooks_that_failed_are_shown_before_the_newest() {
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    for seq in 0..120 {
        let outcome = match seq % 40 {
            3 => HookOutcome::Failed { message: "no".into() },
            _ => HookOutcome::Handled,
        };
        commit_ended(&logging, "tiny/0", seq, Event::ConfigChanged, calls(1), outcome).await;
    }
    let selector = logging.deployed.model.selector();
    let journal = fixture.client.journal(&selector, Some(&unit("tiny/0"))).await.unwrap();
    let shown: Vec<u64> = seqs(&journal).into_iter().map(|(_, seq)| seq).collect();
    assert_eq!(shown, [3, 43].into_iter().chain(70..120).collect::<Vec<_>>());
    fixture.stop().await;
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_and_the_next_goes_on_behind_it() {
    const HOOKS: u64 = 8;
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    for seq in 0..HOOKS {
        for name in ["tiny/0", "tiny/1"] {
            commit(&logging, name, seq, Event::Start, calls(500_000)).await;
        }
    }
    let selector = logging.deployed.model.selector();
    for query in [
        JournalQuery::default(),
        JournalQuery { unit: Some(unit("tiny/1")), calls: true, ..JournalQuery::default() },
    ] {
        let (mut query, mut seen, mut pages) = (query, BTreeSet::new(), 0);
        let wanted = if query.unit.is_some() { HOOKS } else { 2 * HOOKS };
        loop {
            let page = fixture.client.journal_page(&selector, &query).await.unwrap();
            assert!(page.entries.len() <= 6, "{} entries of half a MiB each", page.entries.len());
            for hook in seqs(&page) {
                assert!(seen.insert(hook), "each is given once");
            }
            pages += 1;
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!(seen.len() as u64, wanted);
        assert!(pages > 1);
    }
    assert_eq!(fixture.client.journal(&selector, None).await.unwrap().entries.len() as u64, 2 * HOOKS);
    let wrong = JournalQuery { after: Some("tiny".into()), ..JournalQuery::default() };
    assert_eq!(code_of(fixture.client.journal_page(&selector, &wrong).await), ErrorCode::BadRequest);
    fixture.stop().await;
}

#[tokio::test]
async fn calls_and_secrets_are_given_to_who_asks_for_them_and_may() {
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    commit(&logging, "tiny/0", 0, Event::Install, calls(1)).await;
    commit(&logging, "tiny/0", 1, Event::Start, calls(2)).await;
    let selector = logging.deployed.model.selector();
    let one = JournalQuery { unit: Some(unit("tiny/0")), seq: Some(1), ..JournalQuery::default() };
    let asked = async |query: &JournalQuery| {
        let page = fixture.client.journal_page(&selector, query).await.unwrap();
        let [entry] = page.entries.as_slice() else { panic!("{page:?}") };
        entry.record.clone()
    };
    let plain = asked(&one).await;
    assert_eq!((plain.seq, plain.calls, plain.seed), (1, RecordedCalls::default(), String::new()));

    let with_calls = asked(&JournalQuery { calls: true, ..one.clone() }).await;
    assert_eq!(with_calls.seed, "");
    assert_eq!(with_calls.calls.answers, ["xx", HIDDEN, HIDDEN]);
    let arguments: Vec<_> = with_calls.calls.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["[\"a\"]", HIDDEN, HIDDEN, "[\"config-get\",[],\"\"]"]);

    let all = asked(&JournalQuery { calls: true, secrets: true, ..one.clone() }).await;
    assert_eq!((all.seed.as_str(), all.calls), ("5eed", calls(2)));

    let shown = fixture.client.unit(&selector, &unit("tiny/0")).await.unwrap();
    assert!(shown.journal.iter().all(|hook| hook.seed.is_empty() && hook.calls == RecordedCalls::default()));
    let of_none = JournalQuery { unit: None, seq: None, calls: true, ..one };
    assert_eq!(code_of(fixture.client.journal_page(&selector, &of_none).await), ErrorCode::BadRequest);
    let path = format!("GET /v1/models/{selector}/journal?secrets");
    let agent = raw::request(fixture.handle.address(), &path, &[("periapt-agent", "one")], "").await;
    assert_eq!(agent.status, 403);
    fixture.stop().await;
}
