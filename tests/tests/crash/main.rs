//! The state after crashes: a killer sends SIGKILL to the controller, the agent's keeper and its runners at random
//! moments, while an operator changes a model whose charms count their hooks: settings, units, relations, charms,
//! hooks that fail and are resolved in either way.
//!
//! Afterwards each unit's count, its ledger and the journal agree; the effect of each acknowledged command is there;
//! and the model equals the one that the same commands make without kills.
//!
//! `PERIAPT_CRASH_KILLS` is the number of kills: 10 by default, 100 in the long form. `PERIAPT_CRASH_SEED` repeats
//! the commands and draws of a run from its printed seed; the instruction that a kill hits remains random.

#![expect(clippy::print_stdout, reason = "a seed that nobody sees repeats nothing")]
#![expect(clippy::indexing_slicing, reason = "a test that panics has failed, as it should")]

mod history;
mod killer;
mod observed;
mod operator;
mod projection;
mod random;
mod services;
mod steps;
mod tampered;

use std::{
    env, fs,
    path::PathBuf,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use killer::Killer;
use operator::Operator;
use periapt_tests::{packed, packed_edition};
use projection::Projection;
use random::RandomNumbers;
use services::Services;
use steps::{Plan, Step};

/// The default number of kills: some of each kind.
const KILLS: u32 = 10;

fn number<T: std::str::FromStr>(variable: &str) -> anyhow::Result<Option<T>> {
    match env::var(variable) {
        Ok(text) => Ok(Some(text.parse().ok().with_context(|| format!("{variable}={text} is no number"))?)),
        Err(_) => Ok(None),
    }
}

/// Returns a random seed.
fn any_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8)
}

#[test]
fn what_was_acknowledged_is_there_and_each_hook_counts_once_whatever_process_is_killed() -> anyhow::Result<()>
{
    let kills = number("PERIAPT_CRASH_KILLS")?.unwrap_or(KILLS);
    let seed = number("PERIAPT_CRASH_SEED")?.unwrap_or_else(any_seed);
    println!("PERIAPT_CRASH_SEED={seed} PERIAPT_CRASH_KILLS={kills}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (steps, disturbed) = runtime.block_on(storm(seed, kills))?;
    let undisturbed = runtime.block_on(calm(&steps))?;
    similar(&disturbed, &undisturbed)
}

/// Runs an operator until the killer is done. Returns the operator's steps and the resulting model.
async fn storm(seed: u64, kills: u32) -> anyhow::Result<(Vec<Step>, Projection)> {
    let mut services = Services::start()?;
    let mut operator = prepared(&services).await?;
    let mut random = RandomNumbers::new(seed);
    let killer = Killer::new(kills, random.split());
    let (done, progress) = (killer.done(), operator.progress());
    let began = Instant::now();
    let counts = tokio::task::spawn_blocking(move || {
        let counts = killer.run(&mut services, &progress);
        (services, counts)
    });
    let mut plan = Plan::default();
    let mut steps = Vec::new();
    let work = async {
        while !done.load(Ordering::Acquire) {
            let step = plan.next(&mut random);
            operator.perform(&step).await?;
            plan.apply(&step);
            operator.verify(&plan).await?;
            steps.push(step);
            tokio::time::sleep(Duration::from_millis(random.below(15))).await;
        }
        anyhow::Ok(())
    };
    let worked = work.await;
    // A failed operator ends the killer, too.
    done.store(true, Ordering::Release);
    let (services, counts) = counts.await?;
    worked.map_err(|error| services.explain(error))?;
    while let Some(step) = plan.last(&mut random) {
        operator.perform(&step).await.map_err(|error| services.explain(error))?;
        plan.apply(&step);
        steps.push(step);
    }
    let counts = counts.map_err(|error| services.explain(error))?;
    println!("{} steps in {:.1?}, {} hooks seen; {counts}", steps.len(), began.elapsed(), operator.hooks());
    let projection = finish(&mut operator, &plan).await.map_err(|error| services.explain(error))?;
    Ok((steps, projection))
}

/// Runs the same steps without kills.
async fn calm(steps: &[Step]) -> anyhow::Result<Projection> {
    let services = Services::start()?;
    let mut operator = prepared(&services).await?;
    let mut plan = Plan::default();
    let began = Instant::now();
    let work = async {
        for step in steps {
            operator.perform(step).await?;
            plan.apply(step);
        }
        finish(&mut operator, &plan).await
    };
    let projection = work.await.map_err(|error| services.explain(error))?;
    println!("undisturbed: {:.1?}, {} hooks seen", began.elapsed(), operator.hooks());
    Ok(projection)
}

/// Prepares an operator with a model that all steps rely on.
async fn prepared(services: &Services) -> anyhow::Result<Operator> {
    let archives = [packed("probe", services.path())?, packed_edition("probe", "second", services.path())?];
    let read = |path: &PathBuf| fs::read(path).with_context(|| format!("reading {}", path.display()));
    let archives = [read(&archives[0])?, read(&archives[1])?];
    Operator::prepare(services.url(), archives).await.map_err(|error| services.explain(error))
}

/// Waits until the model settles, and checks everything.
async fn finish(operator: &mut Operator, plan: &Plan) -> anyhow::Result<Projection> {
    let observed = operator.settled(plan).await?;
    operator.verify(plan).await?;
    history::audit(operator.history(), &observed)?;
    Projection::of(&observed)
}

fn similar(disturbed: &Projection, undisturbed: &Projection) -> anyhow::Result<()> {
    let difference = disturbed.difference(undisturbed);
    ensure!(difference.is_empty(), "the model differs (- undisturbed, + disturbed):\n{difference}");
    Ok(())
}
