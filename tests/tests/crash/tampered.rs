//! Tests of the audit: it must detect books, counts and models with a single error each, and a charm that miscounts.

#![expect(clippy::panic, reason = "a test that panics has failed, as it should")]

use anyhow::{Context as _, ensure};
use periapt_host_api::{
    UnitName,
    api::UnitDetails,
    command::ResolveMode,
    journal::{HookOutcome, JournalRecord},
};
use periapt_tests::HookHistory;

use crate::{
    history::audit,
    observed::Observed,
    prepared,
    projection::Projection,
    services::Services,
    similar,
    steps::{Edition, Plan, Step},
};

/// A function that introduces an error.
type Tampering = fn(&mut HookHistory, &mut Observed);

/// Returns the unit whose books are tampered with.
fn alpha() -> UnitName {
    "alpha/0".parse().unwrap_or_else(|error| panic!("{error}"))
}

fn journal(history: &mut HookHistory) -> &mut std::collections::BTreeMap<u64, JournalRecord> {
    history.journals.entry(alpha()).or_default()
}

/// Returns the `seq` of the newest hook that was committed, or of the newest that failed.
fn newest(history: &mut HookHistory, failed: bool) -> u64 {
    let is_wanted = |record: &&JournalRecord| matches!(record.outcome, HookOutcome::Failed { .. }) == failed;
    let found = journal(history).values().filter(is_wanted).map(|record| record.seq).max();
    found.unwrap_or_else(|| panic!("no such hook: failed={failed}"))
}

/// Changes a value of the unit's own bag.
fn rewrite(observed: &mut Observed, endpoint: &str, key: &str, change: impl FnOnce(&str) -> String) {
    let unit: &mut UnitDetails = observed.units.get_mut(&alpha()).unwrap_or_else(|| panic!("no alpha/0"));
    let mut relations = unit.relations.iter_mut();
    let relation = relations.find(|relation| relation.endpoint.as_str() == endpoint);
    let data = &mut relation.unwrap_or_else(|| panic!("no relation of {endpoint}")).local_unit.data;
    let value = change(&data[key]);
    data.insert(key.to_owned(), value);
}

fn count(observed: &mut Observed, difference: i64) {
    rewrite(observed, "tally", "hooks", |value| {
        (value.parse::<i64>().unwrap_or_default() + difference).to_string()
    });
}

const TAMPERINGS: [(&str, Tampering); 9] = [
    ("a hook was counted twice", |_, observed| count(observed, 1)),
    ("a hook was not counted", |_, observed| count(observed, -1)),
    ("a committed hook is not in the journal", |history, _| {
        let seq = newest(history, false);
        journal(history).remove(&seq);
    }),
    ("a hook that was committed is said to have failed", |history, _| {
        let seq = newest(history, false);
        let failed = HookOutcome::Failed { message: "the sandbox crashed".to_owned() };
        journal(history).entry(seq).and_modify(|record| record.outcome = failed);
    }),
    ("a hook that failed is said to be committed", |history, _| {
        let seq = newest(history, true);
        journal(history).entry(seq).and_modify(|record| record.outcome = HookOutcome::Handled);
    }),
    ("a hook failed that nobody asked to", |history, _| {
        let seq = newest(history, true);
        let other = HookOutcome::Failed { message: "out of memory".to_owned() };
        journal(history).entry(seq).and_modify(|record| record.outcome = other);
    }),
    ("the ledger has lost its last line", |_, observed| {
        rewrite(observed, "peer", "ledger", |ledger| {
            ledger.rsplit_once('\n').map_or_else(String::new, |(before, _)| before.to_owned())
        });
    }),
    ("the ledger's lines have changed places", |_, observed| {
        rewrite(observed, "peer", "ledger", |ledger| ledger.lines().rev().collect::<Vec<_>>().join("\n"));
    }),
    ("the unit has run more than it has committed", |_, observed| {
        if let Some(unit) = observed.units.get_mut(&alpha()) {
            unit.record.seq = 1;
        }
    }),
];

#[test]
fn whatever_is_wrong_in_the_books_or_the_model_is_noticed() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let services = Services::start()?;
        let mut operator = prepared(&services).await?;
        let mut plan = Plan::default();
        let steps = [
            Step::Break("alpha", 1),
            Step::Mend("alpha", 2, ResolveMode::NoRetry),
            Step::Refresh("alpha", Edition::Second, false),
            Step::Break("alpha", 3),
            Step::Mend("alpha", 4, ResolveMode::Retry),
        ];
        for step in &steps {
            operator.perform(step).await.map_err(|error| services.explain(error))?;
            plan.apply(step);
        }
        let observed = operator.settled(&plan).await.map_err(|error| services.explain(error))?;
        operator.verify(&plan).await?;
        let history = operator.history().clone();
        audit(&history, &observed).context("nothing is wrong yet")?;
        for (what, wrong) in TAMPERINGS {
            let (mut history, mut observed) = (history.clone(), observed.clone());
            wrong(&mut history, &mut observed);
            ensure!(audit(&history, &observed).is_err(), "the audit does not notice that {what}");
        }

        let right = Projection::of(&observed)?;
        similar(&right, &right)?;
        let mut other = observed.clone();
        other.units.remove(&alpha());
        ensure!(similar(&Projection::of(&other)?, &right).is_err(), "a unit that is missing is not noticed");
        plan.apply(&Step::Refresh("alpha", Edition::First, false));
        ensure!(operator.verify(&plan).await.is_err(), "a command without effect is not noticed");

        // The audit also detects a charm that miscounts: the script overwrites the unit's count.
        plan.apply(&Step::Refresh("alpha", Edition::Second, false));
        operator.miscount("alpha").await?;
        let observed = operator.settled(&plan).await.map_err(|error| services.explain(error))?;
        let error = audit(operator.history(), &observed).err().context("a wrong counter is not noticed")?;
        ensure!(format!("{error:#}").contains("were counted"), "it is noticed for another reason: {error:#}");
        Ok(())
    })
}
