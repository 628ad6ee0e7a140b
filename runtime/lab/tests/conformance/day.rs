//! A day of leases, retries, timers and time-outs in seconds, with clock changes and paused processes
//! (`docs/hook-model.md` 1.9, U-20, D-3).

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use periapt_host_api::{
    command::{Command, Force},
    status::{AgentStatus, Life},
};
use periapt_lab::{Lab, RandomNumbers};

use crate::bench::{LOCAL, charm, does, fails};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The agents, of which each has one unit of `a`. The first also has `f`, whose start hook always fails.
const AGENTS: [&str; 3] = ["host", "second", "third"];

fn three_agents(seed: u64) -> Lab {
    let mut lab = Lab::new(seed).unwrap();
    for agent in ["second", "third"] {
        lab.add_agent(agent).unwrap();
    }
    lab.deploy("a", &charm(LOCAL), 3).unwrap();
    lab.run_until_idle().unwrap();
    lab.deploy_to("f", &charm(&LOCAL.replace("local", "failing")), 1, "host").unwrap();
    let mut failing = does("is-leader");
    failing.extend(fails());
    lab.script("f/0", "start", failing).unwrap();
    for unit in units() {
        lab.script(&unit, "update-status", does("is-leader")).unwrap();
    }
    lab.run_until_idle().unwrap();
    let agents: Vec<_> = units().map(|unit| agent_of(&lab, &unit)).collect();
    assert_eq!(agents, AGENTS, "one unit each");
    lab
}

fn units() -> impl Iterator<Item = String> {
    (0..3).map(|number| format!("a/{number}"))
}

fn agent_of(lab: &Lab, unit: &str) -> String {
    lab.state().unwrap().agent_of(lab.unit(unit).unwrap()).unwrap().to_string()
}

/// A hook that called `is-leader`: unit, hook, attempt, time by the clock of leases, answer.
type Asked = (String, String, u32, u64, bool);

fn asked(lab: &Lab) -> Vec<Asked> {
    asked_since(lab, 0)
}

/// Returns the hooks that called `is-leader`, after the first `hooks` of the trace.
fn asked_since(lab: &Lab, hooks: usize) -> Vec<Asked> {
    let asked = lab.trace()[hooks..].iter().filter_map(|traced| {
        let call =
            traced.tools.iter().find(|call| call.argv.first().is_some_and(|name| name == "is-leader"))?;
        let leads = call.output.stdout.trim() == "True";
        Some((traced.unit.to_string(), traced.event.hook_name(), traced.attempt, call.at.boot_ms, leads))
    });
    asked.collect()
}

/// Each second of a day without faults has one leader.
#[test]
fn d06_c09_k03_a_day_of_timers_is_what_their_intervals_say() {
    let mut lab = three_agents(7);
    let began = lab.elapsed();
    let leader = lab.believers("a").unwrap();
    assert_eq!(leader.len(), 1);
    while lab.elapsed() - began < Duration::from_secs(DAY) {
        lab.advance(Duration::from_secs(20)).unwrap();
        assert_eq!(lab.believers("a").unwrap(), leader, "renewed all day, and by nobody else");
    }
    let asked = asked(&lab);
    for unit in units() {
        let ticks = asked.iter().filter(|(of, hook, ..)| *of == unit && hook == "update-status").count();
        // The interval is 300 s, moved by a fifth either way; the sum of many moves is small.
        assert!((274..=302).contains(&ticks), "{unit}: {ticks} in a day");
        let leads = leader[0].to_string() == unit;
        assert!(asked.iter().filter(|(of, ..)| *of == unit).all(|(.., told)| *told == leads), "{unit}");
    }
    let attempts: Vec<u64> =
        asked.iter().filter(|(of, ..)| of == "f/0").map(|(_, _, _, at, _)| *at).collect();
    let waits: Vec<u64> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (index, wait) in waits.iter().enumerate() {
        let nominal = (5_000 << index.min(10)).min(300_000);
        let least = nominal * 9 / 10;
        let most = (nominal * 11 / 10).min(300_000);
        assert!((least..=most).contains(wait), "wait {index}: {wait} ms");
    }
    assert!((286..=330).contains(&attempts.len()), "{} attempts", attempts.len());
}

/// Returns the hooks of a day on hosts whose clocks are set by these steps, one at each event.
fn day_with_clock(steps: &[SignedDuration]) -> (Vec<Asked>, Vec<usize>) {
    let mut lab = three_agents(7);
    let (began, mut leaders, mut sets) = (lab.elapsed(), Vec::new(), steps.iter().cycle());
    while lab.elapsed() - began < Duration::from_secs(DAY / 4) {
        lab.advance(Duration::from_secs(97)).unwrap();
        leaders.push(lab.believers("a").unwrap().len());
        if let Some(by) = sets.next() {
            lab.set_clock(*by);
        }
        let now_ms = u64::try_from(lab.elapsed().as_millis()).unwrap();
        assert!(AGENTS.iter().all(|agent| lab.root().is_alive(&agent.parse().unwrap(), now_ms)));
    }
    (asked(&lab), leaders)
}

#[test]
fn a_clock_that_is_set_forward_or_back_moves_no_lease_no_retry_and_no_timer() {
    let undisturbed = day_with_clock(&[]);
    assert!(undisturbed.0.len() > 200 && undisturbed.1.iter().all(|leaders| *leaders == 1));
    let (hours, days) = (SignedDuration::from_hours, |days: i64| SignedDuration::from_hours(24 * days));
    for steps in [
        vec![hours(1), hours(-1)],
        vec![hours(-1)],
        vec![days(30)],
        vec![days(-3_650), SignedDuration::from_millis(-1), days(20_000), SignedDuration::from_secs(7)],
    ] {
        assert!(day_with_clock(&steps) == undisturbed, "{steps:?}");
    }
}

/// The clock may have been set since the times in a record that a starting agent reads.
#[test]
fn no_retry_is_lost_when_the_clock_is_set_back_while_the_agent_is_down() {
    for by in [-30 * 86_400, -3_600, -60, 60, 30 * 86_400] {
        let mut lab = three_agents(3);
        lab.advance(Duration::from_secs(2 * HOUR)).unwrap();
        lab.kill_agent("host").unwrap();
        lab.set_clock(SignedDuration::from_secs(by));
        lab.start_agent("host").unwrap();
        let (before, started) = (asked(&lab).len(), lab.elapsed());
        lab.advance(Duration::from_secs(361)).unwrap();
        let after = asked(&lab).split_off(before);
        let first = |unit: &str| after.iter().find(|(of, ..)| of == unit).map(|(_, _, _, at, _)| *at);
        let within = |unit: &str, seconds: u64| {
            let at = first(unit).unwrap_or_else(|| panic!("{unit} never, after {by} s"));
            assert!(at <= (started + Duration::from_secs(seconds)).as_millis() as u64, "{unit} late, {by} s");
        };
        within("f/0", 301);
        within("a/0", 361);
    }
}

/// A forced removal without its agent happens at its time-out, to the second.
#[test]
fn a_time_out_comes_when_it_should() {
    let mut lab = three_agents(5);
    // With another agent the unit would go there.
    for agent in AGENTS {
        lab.kill_agent(agent).unwrap();
    }
    lab.advance(Duration::from_secs(HOUR)).unwrap();
    assert_eq!(lab.statuses("a/2").unwrap().1.status, AgentStatus::Lost);
    let force = Some(Force { max_wait: 600 });
    lab.command(&Command::RemoveUnit { unit: "a/2".parse().unwrap(), force, storage: Default::default() })
        .unwrap();
    lab.advance(Duration::from_secs(599)).unwrap();
    assert_eq!(lab.unit("a/2").unwrap().life, Life::Dying);
    lab.advance(Duration::from_secs(1)).unwrap();
    assert!(lab.unit("a/2").is_err());
}

/// A fault of an agent.
#[derive(Debug, Clone, Copy)]
enum AgentFault {
    Paused,
    CutOff,
    /// The agent is paused, and is still cut off for a while when it resumes.
    PausedThenCutOff,
}

fn begin(lab: &mut Lab, agent: &str, fault: AgentFault) {
    match fault {
        AgentFault::Paused => lab.pause_agent(agent).unwrap(),
        AgentFault::CutOff => lab.cut_off(agent).unwrap(),
        AgentFault::PausedThenCutOff => {
            lab.cut_off(agent).unwrap();
            lab.pause_agent(agent).unwrap();
        }
    }
}

/// Ends a fault, and returns the fault that remains.
fn end(lab: &mut Lab, agent: &str, fault: AgentFault) -> Option<AgentFault> {
    match fault {
        AgentFault::Paused => lab.resume_agent(agent).unwrap(),
        AgentFault::CutOff => lab.reconnect(agent).unwrap(),
        AgentFault::PausedThenCutOff => {
            lab.resume_agent(agent).unwrap();
            return Some(AgentFault::CutOff);
        }
    }
    None
}

#[test]
fn k03_no_pause_or_lost_connection_makes_two_units_lead_or_loses_a_retry() {
    for seed in 0..2 {
        stormy_day(seed);
    }
}

fn stormy_day(seed: u64) {
    let (mut lab, mut random) = (three_agents(seed), RandomNumbers::new(seed));
    let mut troubles: BTreeMap<&str, (AgentFault, Duration)> = BTreeMap::new();
    // The time since which each agent works normally.
    let mut well: BTreeMap<&str, Duration> = AGENTS.into_iter().map(|agent| (agent, lab.elapsed())).collect();
    let mut seen = lab.trace().len();
    let mut told_last: BTreeMap<String, u64> = BTreeMap::new();
    let (mut last_attempt, mut leaders, began) = (lab.elapsed(), Vec::new(), lab.elapsed());
    while lab.elapsed() - began < Duration::from_secs(DAY) {
        let now = lab.elapsed();
        for agent in AGENTS {
            match troubles.get(agent).copied() {
                Some((fault, until)) if until <= now => {
                    troubles.remove(agent);
                    match end(&mut lab, agent, fault) {
                        Some(rest) => {
                            let until = now + Duration::from_secs(1 + random.below(90) as u64);
                            troubles.insert(agent, (rest, until));
                        }
                        None => drop(well.insert(agent, now)),
                    }
                    // The check comes at once, before any other event.
                    assert!(lab.believers("a").unwrap().len() <= 1, "seed {seed}: {agent} wakes");
                }
                None if random.in_thousand(8) => {
                    let kinds = [AgentFault::Paused, AgentFault::CutOff, AgentFault::PausedThenCutOff];
                    // Durations around the lease's length, and far beyond.
                    let lasts = [15, 29, 31, 40, 59, 61, 75, 300][random.below(8)];
                    let fault = kinds[random.below(3)];
                    begin(&mut lab, agent, fault);
                    well.remove(agent);
                    troubles.insert(agent, (fault, now + Duration::from_secs(lasts)));
                }
                _ => {}
            }
        }
        if random.in_thousand(20) {
            lab.set_clock(SignedDuration::from_secs(random.below(7_200) as i64 - 3_600));
        }
        lab.advance(Duration::from_secs(5)).unwrap();

        let believers = lab.believers("a").unwrap();
        assert!(believers.len() <= 1, "seed {seed}: {believers:?} lead at {:?}", lab.elapsed());
        leaders.extend(believers);
        leaders.dedup();
        let news = asked_since(&lab, seen);
        seen = lab.trace().len();
        for (unit, _, _, at, leads) in news {
            if unit == "f/0" {
                last_attempt = Duration::from_millis(at);
            } else if leads {
                // An answer to a charm holds for thirty seconds (5.6).
                let others = told_last.iter().filter(|(other, _)| **other != unit);
                for (other, told) in others {
                    assert!(
                        at >= told + 30_000,
                        "seed {seed}: {other} was told so {} ms before {unit}",
                        at - told
                    );
                }
                told_last.insert(unit, at);
            }
        }
        if let Some(since) = well.get("host") {
            let waited = lab.elapsed().saturating_sub(last_attempt.max(*since));
            assert!(waited <= Duration::from_secs(306), "seed {seed}: no retry for {waited:?}");
        }
    }
    assert!(leaders.len() > 5, "seed {seed}: leadership moved, or nothing was tried: {leaders:?}");
    for (agent, (fault, _)) in troubles {
        if let Some(rest) = end(&mut lab, agent, fault) {
            end(&mut lab, agent, rest);
        }
    }
    lab.advance(Duration::from_secs(361)).unwrap();
    assert_eq!(lab.believers("a").unwrap().len(), 1);
}
