//! A benchmark of several controllers: commits beside one controller with its own store and beside a bare loop of etcd,
//! how far followers lag, what watchers cost, how long clients wait when the leading controller is killed or stopped, and
//! how long a controller with an empty disk takes to join. It fails if acknowledged commands were lost or doubled.
//!
//! Run by `tools/bench ha`; docs/performance.md explains the rows. `PERIAPT_BENCH_PARTS` chooses among `commits`, `watchers` and
//! `sizes` (failovers, handovers and joins). `PERIAPT_BENCH_SIZES` is a list of sizes in units.
//! `PERIAPT_BENCH_ROUNDS` is the number of failovers and of handovers for each size. `PERIAPT_BENCH_LAG_SECONDS` is the
//! duration of the load under which followers lag. Three servers of etcd, three controllers, their disk and the clients
//! share this machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are its output, and how far it is")]

mod bare;
mod commits;
mod failover;
mod share;
mod site;
mod times;
mod watchers;

use std::{env, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use periapt_tests::{Acknowledged, CommandDeviations, MemoryUse};

use bare::Entries;
use commits::{Commits, Lag, stale};
use failover::Ending;
use share::{SHARE, Share};
use site::{Cpu, Site};
use times::Times;
use watchers::Watchers;

/// The duration of the bare loop.
const BARE: Duration = Duration::from_secs(5);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let measured = text("PERIAPT_BENCH_PARTS", "commits watchers sizes");
    let measured: Vec<&str> = measured.split_whitespace().collect();
    let unknown = measured.iter().find(|part| !["commits", "watchers", "sizes"].contains(part));
    ensure!(!measured.is_empty(), "PERIAPT_BENCH_PARTS names nothing: commits, watchers or sizes expected");
    if let Some(unknown) = unknown {
        bail!("PERIAPT_BENCH_PARTS names commits, watchers and sizes, not {unknown:?}");
    }
    let sizes = numbers("PERIAPT_BENCH_SIZES", "1000 10000")?;
    let rounds = numbers("PERIAPT_BENCH_ROUNDS", "10")?.into_iter().max().unwrap_or_default();
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let lasting = numbers("PERIAPT_BENCH_LAG_SECONDS", "10")?.into_iter().max().unwrap_or_default();
    let mut deviations = CommandDeviations::default();
    if measured.contains(&"commits") {
        deviations += commits_and_lag(parent, Duration::from_secs(lasting.try_into()?)).await?;
        println!();
        deviations += commits_of_shares(parent).await?;
        println!();
    }
    if measured.contains(&"watchers") {
        watchers(parent).await?;
        println!();
    }
    if measured.contains(&"sizes") {
        deviations += failovers_and_joins(parent, sizes, rounds).await?;
        println!();
    }
    if measured != ["watchers"] {
        println!("{deviations}");
    }
    ensure!(deviations.is_none(), "acknowledged commands have not one effect each: {deviations}");
    Ok(())
}

/// Measures watchers of a follower.
async fn watchers(parent: &Path) -> anyhow::Result<()> {
    let site = Site::of_three(parent)?;
    let Watchers { count, each, told } = Watchers::measured(&site).await?;
    println!("| watchers of a follower | KiB each | told: p50 ms | p99 ms |");
    println!("| ---: | ---: | ---: | ---: |");
    let ms = |percent| told.at(percent).as_secs_f64() * 1e3;
    println!("| {count} | {:.1} | {:.1} | {:.1} |", each / 1024.0, ms(50), ms(99));
    Ok(())
}

/// Measures the ends of leading controllers and joins with so many units. Returns how many acknowledged commands were lost or
/// doubled.
async fn failovers_and_joins(
    parent: &Path,
    sizes: Vec<usize>,
    rounds: usize,
) -> anyhow::Result<CommandDeviations> {
    println!(
        "| units | failover s: p50 | p99 | handover s: p50 | p99 | start of a follower s | MiB: leader | follower | KiB a unit: leader | follower |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let (mut measured, mut deviations) = (Vec::new(), CommandDeviations::default());
    for units in sizes {
        let (figures, after_failovers) = of_size(parent, units, rounds).await?;
        measured.push((units, figures));
        deviations += after_failovers;
    }
    println!();
    println!(
        "| units | cold start s: by the log | by a snapshot | MiB: stored state | leader | follower | MB of batches: content | in the log | ratio |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (units, figures) in measured {
        figures.print(units);
    }
    Ok(deviations)
}

/// Returns the text of a variable, by default `usual`.
fn text(variable: &str, usual: &str) -> String {
    env::var(variable).unwrap_or_else(|_| usual.to_owned())
}

/// Parses a variable with numbers between spaces, by default `usual`.
fn numbers(variable: &str, usual: &str) -> anyhow::Result<Vec<usize>> {
    let text = text(variable, usual);
    let numbers = text.split_whitespace().map(str::parse).collect::<Result<_, _>>();
    numbers.with_context(|| format!("{variable} must be numbers with spaces between them, not {text:?}"))
}

/// Measures commits of one controller, of three, and of a bare loop with the entries of the three; and how far followers
/// lag. Returns how many acknowledged commands were lost or doubled.
async fn commits_and_lag(parent: &Path, lasting: Duration) -> anyhow::Result<CommandDeviations> {
    let (alone, mut deviations) = {
        let site = Site::alone(parent)?;
        let alone = Commits::measured(&site, 0, &[0]).await?;
        let deviations = site.deviations(&alone.acknowledged).await?;
        (alone, deviations)
    };
    let site = Site::of_three(parent)?;
    let leader = site.leader().await?;
    let from = site.revision(leader).await?;
    let at_leader = Commits::measured(&site, leader, &[leader]).await?;
    let through = site.revision(leader).await?;
    let entries = Entries::of(&site, from, through).await?;
    let everywhere = Commits::measured(&site, leader, &[0, 1, 2]).await?;
    let bare = site.etcd()?.puts_a_second(bare::noise(&entries.sizes), BARE).await?;
    let mut acknowledged = at_leader.acknowledged.clone();
    acknowledged.append(everywhere.acknowledged.clone());
    // Before more commands come: the audit log keeps the newest 100,000.
    deviations += site.deviations(&acknowledged).await?;

    println!(
        "| 64 clients | commits/s | beside one controller | entries/s | KB an entry: content | in the log | beside a bare loop |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let row = |name: &str, commits: &Commits, entry: String, beside: String| {
        let ratio = commits.rate / alone.rate;
        println!(
            "| {name} | {:.0} | {ratio:.2} | {:.0} | {entry} | {beside} |",
            commits.rate, commits.batches
        );
    };
    let unknown = || " | ".to_owned();
    row("one controller, RocksDB", &alone, unknown(), String::new());
    let mean = |bytes: usize| bytes as f64 / entries.sizes.len().max(1) as f64 / 1e3;
    let (content, stored) = (mean(entries.content), mean(entries.stored()));
    let beside = format!("{:.2}", at_leader.batches / bare);
    row("three, at the leader", &at_leader, format!("{content:.1} | {stored:.1}"), beside);
    row("three, at each", &everywhere, unknown(), String::new());
    println!("| a bare loop of etcd | | | {bare:.0} | | {stored:.1} | 1.00 |");

    println!();
    println!("| µs CPU a command | leading controller | the two others | servers of etcd | clients |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let named = [
        ("one controller, RocksDB", &alone),
        ("three, at the leader", &at_leader),
        ("three, at each", &everywhere),
    ];
    for (name, Commits { cpu, .. }) in named {
        let Cpu { leader, followers, etcd, clients } = cpu;
        println!("| {name} | {leader:.0} | {followers:.0} | {etcd:.0} | {clients:.0} |");
    }

    let Lag { times, rate, database } = stale(&site, leader, lasting).await?;
    println!();
    println!(
        "| followers' lag | s | commits/s | p50 ms | p99 ms | longest ms | etcd's database MB at most |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let (seconds, database) = (lasting.as_secs(), database as f64 / 1e6);
    let ms = |percent| times.at(percent).as_secs_f64() * 1e3;
    println!("| | {seconds} | {rate:.0} | {:.1} | {:.1} | {:.1} | {database:.0} |", ms(50), ms(99), ms(100));
    Ok(deviations)
}

/// Measures commits of one controller, and of three whose leading one has the same share of a processor. Returns how many
/// acknowledged commands were lost or doubled.
async fn commits_of_shares(parent: &Path) -> anyhow::Result<CommandDeviations> {
    let mut deviations = CommandDeviations::default();
    let share = match Share::create() {
        Ok(share) => share,
        Err(reason) => {
            eprintln!("commits of controllers with a share of a processor are left out: {reason:#}");
            return Ok(deviations);
        }
    };
    println!(
        "| 64 clients, a controller with {:.2} of a processor | commits/s | beside one controller | entries/s |",
        f64::from(SHARE) / 1e3
    );
    println!("| --- | ---: | ---: | ---: |");
    let mut first = None;
    for (name, is_alone) in [("one, RocksDB", true), ("three, the leading one", false)] {
        let site = if is_alone { Site::alone(parent)? } else { Site::of_three(parent)? };
        let leader = if is_alone { 0 } else { site.leader().await? };
        share.give(site.host(leader)?)?;
        let commits = Commits::measured(&site, leader, &[leader]).await?;
        if !is_alone {
            ensure!(site.leader().await? == leader, "another controller leads, which has no share");
        }
        deviations += site.deviations(&commits.acknowledged).await?;
        let ratio = commits.rate / *first.get_or_insert(commits.rate);
        println!("| {name} | {:.0} | {ratio:.2} | {:.0} |", commits.rate, commits.batches);
    }
    Ok(deviations)
}

/// The figures of a size that stand beside those of the stored state.
struct OfSize {
    /// The time until a controller with an empty disk has applied what the whole log has.
    by_log: Duration,
    /// The same where the log was trimmed, so that the controller takes a snapshot first.
    by_snapshot: Duration,
    /// The bytes of all keys and values of the state in the store.
    stored: u64,
    /// The memory of the leading controller in bytes.
    leads: u64,
    /// The memory of a follower in bytes.
    follows: u64,
    /// The entries that made the units.
    made: Entries,
}

impl OfSize {
    fn print(&self, units: usize) {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (content, stored) = (self.made.content as f64 / 1e6, self.made.stored() as f64 / 1e6);
        println!(
            "| {units} | {:.2} | {:.2} | {:.1} | {:.0} | {:.0} | {content:.1} | {stored:.1} | {:.1} |",
            self.by_log.as_secs_f64(),
            self.by_snapshot.as_secs_f64(),
            mib(self.stored),
            mib(self.leads),
            mib(self.follows),
            content / stored,
        );
    }
}

/// Measures failovers, handovers, starts, and memory with some units. Counts also which acknowledged commands were lost or
/// doubled.
async fn of_size(parent: &Path, units: usize, rounds: usize) -> anyhow::Result<(OfSize, CommandDeviations)> {
    let mut site = Site::of_three(parent)?;
    let empty = site.leader().await?;
    let before = MemoryUse::by(site.host(empty)?)?.controller();
    let from = site.revision(empty).await?;
    site.deploy(empty, units).await?;
    site.settled().await?;
    let made = Entries::of(&site, from, site.revision(empty).await?).await?;
    let (mut killed, mut stopped) = (Times::default(), Times::default());
    let (mut start, mut acknowledged) = (Times::default(), Acknowledged::default());
    for round in 0..rounds {
        for (ending, times) in [(Ending::Kill, &mut killed), (Ending::Stop, &mut stopped)] {
            let ended = failover::measured(&site, ending).await?;
            times.push(ended.gap);
            start.push(site.restarted(ended.host).await?);
            eprintln!("{units} units: {ending:?} {round}: {:.2} s", ended.gap.as_secs_f64());
            let (model, commands) = ended.acknowledged;
            acknowledged.add(model, commands);
        }
    }
    let leader = site.leader().await?;
    let follower = (0..3).find(|host| *host != leader).context("a follower")?;
    let held = |host| anyhow::Ok(MemoryUse::by(site.host(host)?)?.controller());
    let (leads, follows) = (held(leader)?, held(follower)?);
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / units as f64 / 1024.0;
    let seconds = |times: &Times, percent| times.at(percent).as_secs_f64();
    println!(
        "| {units} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.1} | {:.1} |",
        seconds(&killed, 50),
        seconds(&killed, 99),
        seconds(&stopped, 50),
        seconds(&stopped, 99),
        seconds(&start, 50),
        leads as f64 / f64::from(1 << 20),
        follows as f64 / f64::from(1 << 20),
        each(leads),
        each(follows),
    );
    // After the memory was measured.
    let deviations = site.deviations(&acknowledged).await?;
    let by_log = site.joined(parent).await?;
    site.trim().await?;
    let by_snapshot = site.joined(parent).await?;
    let stored = site.stored_bytes().await?;
    Ok((OfSize { by_log, by_snapshot, stored, leads, follows, made }, deviations))
}
