//! Workloads under kills: runner, keeper, pods and workloads of a real agent are killed at random moments, while clients ask
//! their exposed ports in a loop and the workloads make notices.
//!
//! Each time everything comes back, and no client is without an answer for longer than `docs/workloads.md` says. A
//! notice that a workload's Pebble acknowledged is told to the charm exactly once, unless its pod has died, and at most
//! once then. At the end no process and no cgroup is left.
//!
//! `PERIAPT_WORKLOAD_KILLS` is the number of kills, and `PERIAPT_WORKLOAD_SEED` repeats the draws of a run from its printed
//! seed; the moments at which kills hit remain random.

use std::{collections::BTreeMap, env, str::FromStr, time::Duration};

use anyhow::{Context as _, ensure};
use periapt_lab::RandomNumbers;

mod client;
mod outage;
mod own_processes;
mod scene;
mod units;

use client::ANSWERED_WITHIN;
use own_processes::Part;
use scene::Scene;

/// The number of kills, unless told otherwise: two of each part.
const KILLS: u32 = 8;

/// The longest time in which an agent or a pod starts, on a machine that others use: an agent kills a pod that takes
/// longer.
const STARTS_WITHIN: Duration = Duration::from_secs(45);

/// The longest time in which a service starts, on a machine that others use.
const SERVICE_STARTS_WITHIN: Duration = Duration::from_secs(15);

/// The longest pause before a pod is started again.
const POD_PAUSE: Duration = Duration::from_secs(60);

/// The longest pause before a service is started again.
const SERVICE_PAUSE: Duration = Duration::from_secs(30);

/// The longest gap after two deaths: one may come in the pause or the start that the other one has caused.
const TWO_AT_ONCE: Duration = Duration::from_secs(120);

/// The processes that one outage kills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Killed {
    /// A process of one part.
    One(Part),
    /// A second process, while the first one starts again.
    Two,
}

impl Killed {
    /// Returns its name.
    fn name(self) -> &'static str {
        match self {
            Self::One(part) => part.name(),
            Self::Two => "two at once",
        }
    }

    /// Returns the longest time without an answer.
    fn longest_gap(self) -> Duration {
        match self {
            // Nothing that clients use has to start.
            Self::One(Part::Runner) => ANSWERED_WITHIN,
            // It is started again at once.
            Self::One(Part::Keeper) => STARTS_WITHIN,
            Self::One(Part::Pod) => POD_PAUSE + STARTS_WITHIN,
            Self::One(Part::Workload) => SERVICE_PAUSE + SERVICE_STARTS_WITHIN,
            Self::Two => TWO_AT_ONCE,
        }
    }
}

/// The longest gaps of the clients, by what was killed and the unit that they ask.
type Gaps = BTreeMap<(Killed, &'static str), Duration>;

fn number<T: FromStr>(variable: &str) -> anyhow::Result<Option<T>> {
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

/// Prints a line.
#[expect(clippy::print_stdout, reason = "a seed that nobody sees repeats nothing, and the gaps are figures")]
fn told(line: &str) {
    println!("{line}");
}

#[test]
fn workloads_come_back_and_no_notice_is_lost_whatever_process_is_killed() -> anyhow::Result<()> {
    let kills = number("PERIAPT_WORKLOAD_KILLS")?.unwrap_or(KILLS);
    let seed = number("PERIAPT_WORKLOAD_SEED")?.unwrap_or_else(any_seed);
    told(&format!("PERIAPT_WORKLOAD_SEED={seed} PERIAPT_WORKLOAD_KILLS={kills}"));
    let mut scene = Scene::start()?;
    let gaps = kill_all(&mut scene, kills, RandomNumbers::new(seed)).map_err(|error| scene.explain(error))?;
    for ((killed, unit), gap) in &gaps {
        told(&format!("{:<20} {unit:<10} longest gap {:.2} s", killed.name(), gap.as_secs_f64()));
    }
    scene.end()?;
    for ((killed, unit), gap) in gaps {
        let (name, longest) = (killed.name(), killed.longest_gap());
        ensure!(gap <= longest, "{name}: {unit} did not answer for {gap:?}, longer than {longest:?}");
    }
    Ok(())
}

fn kill_all(scene: &mut Scene, kills: u32, mut random: RandomNumbers) -> anyhow::Result<Gaps> {
    let mut gaps = Gaps::new();
    let (mut left, mut round) = (kills, Vec::new());
    while left > 0 {
        if round.is_empty() {
            round = Part::ALL.to_vec();
        }
        let part = round.swap_remove(random.below(round.len()));
        // Sometimes another process dies while this one starts again.
        let other = Part::ALL.get(random.below(Part::ALL.len())).copied();
        let second = other.filter(|_| left > 1 && random.below(4) == 0);
        left -= 1 + u32::from(second.is_some());
        let killed = second.map_or(Killed::One(part), |_| Killed::Two);
        for (unit, gap) in scene.outage(part, second, &mut random)? {
            let longest = gaps.entry((killed, unit)).or_default();
            *longest = gap.max(*longest);
        }
    }
    Ok(gaps)
}
