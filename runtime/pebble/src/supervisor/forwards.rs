//! Log targets as they get lines.
//!
//! A target keeps no lines. It knows the place of its next line in the ring of each service, and one push at a time is
//! on its way to it. So a target that is slow or gone costs no memory and holds up no other one. A line that leaves its
//! ring before a target has it is lost to that target, and counted.

use std::{collections::BTreeMap, time::Duration};

use super::Supervisor;
use crate::{
    log::{EndedLines, LINE_COST, Logs},
    log_push::{
        LogPush, LogPushForm, LogPushLine, LogPushLocation, LogPushResult, LogPushStream, LogTargetState,
        expanded,
    },
    message::{LogPushId, PodOutput},
    plan::{LogTarget, LogTargetKind},
};

/// The time for which a line waits for others.
const GATHER_TIME: Duration = Duration::from_secs(1);

/// The lines that are sent without waiting for others, and the most lines of a push.
const FULL_LINES: usize = 100;

/// The bytes of output that are sent without waiting for others: far fewer than a ring keeps.
const FULL_BYTES: usize = 16 << 10;

/// The most bytes of a push beside its first line and the labels of that, other labels included.
const MAX_BYTES: usize = 64 << 10;

/// The first and the longest pause after a push that failed.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The least time between two states of a target that the operator is told.
const TOLD_PAUSE: Duration = Duration::from_secs(60);

/// The time in which the last lines are sent at the end of a pod.
pub(super) const END_TIME: Duration = Duration::from_secs(3);

/// A log target of the plan.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    config: LogTarget,
    /// The form and the place of pushes, or the reason in words why there are none.
    way: Result<(LogPushForm, LogPushLocation), String>,
    /// The place of the next line of each service whose lines go to the target, among all that the service has ended.
    places: BTreeMap<String, u64>,
    /// The lines that ended since the last push was made.
    fresh: EndedLines,
    state: State,
    /// The pushes that failed since the last one that did not.
    failures: u32,
    health: Health,
    /// The health that the operator was told last, and when.
    told: (Health, Option<Duration>),
    /// The lines that were lost since the operator was told.
    pub(super) lost: u64,
}

/// The state of pushes to a target.
#[derive(Debug, Clone)]
enum State {
    /// No line waits.
    Idle,
    /// Lines wait until this time.
    Waiting { until: Duration },
    /// Lines are on their way.
    Pushing(Pushing),
}

/// A push that has not ended.
#[derive(Debug, Clone)]
struct Pushing {
    push: LogPushId,
    lines: usize,
    /// The places after the lines of the push.
    ends: BTreeMap<String, u64>,
    /// True if more lines wait than one push has.
    is_full: bool,
    /// True if the target was changed since.
    is_stale: bool,
}

/// The health of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Health {
    /// It takes lines, or has not been tried.
    Well,
    /// It refuses lines, with the reason in words.
    Refuses(String),
    /// Nothing reaches it, with the reason in words.
    Fails(String),
}

impl Health {
    /// Returns true if both are the same for an operator, whatever the reason.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Returns the trouble in words.
    fn words(&self) -> Option<String> {
        match self {
            Self::Well => None,
            Self::Refuses(reason) => Some(format!("lines are lost: {reason}")),
            Self::Fails(reason) => Some(format!("lines cannot be forwarded: {reason}")),
        }
    }
}

/// Lines that are to be sent.
struct Batch {
    streams: Vec<LogPushStream>,
    pushing: Pushing,
}

fn way(target: &LogTarget) -> Result<(LogPushForm, LogPushLocation), String> {
    let form = match target.kind {
        Some(LogTargetKind::Loki) => LogPushForm::Loki,
        Some(LogTargetKind::OpenTelemetry) => LogPushForm::OpenTelemetry,
        Some(LogTargetKind::Syslog) | None => {
            return Err("its type is syslog; pods send to loki and opentelemetry alone".to_owned());
        }
    };
    Ok((form, LogPushLocation::read(&target.location)?))
}

impl Forward {
    fn new(config: LogTarget) -> Self {
        Self {
            way: way(&config),
            config,
            places: BTreeMap::new(),
            fresh: EndedLines::default(),
            state: State::Idle,
            failures: 0,
            health: Health::Well,
            told: (Health::Well, None),
            lost: 0,
        }
    }

    pub(super) fn wake(&self) -> Option<Duration> {
        let push = match self.state {
            State::Waiting { until } => Some(until),
            State::Idle | State::Pushing(_) => None,
        };
        push.into_iter().chain(self.tells_at()).min()
    }

    /// Returns the time at which the operator is to be told of the target's health, if that is due.
    fn tells_at(&self) -> Option<Duration> {
        let (told, at) = &self.told;
        let next = at.map_or(Duration::ZERO, |at| at.saturating_add(TOLD_PAUSE));
        (!told.is_like(&self.health)).then_some(next)
    }

    /// Sets the services whose lines go to the target. Those that are new begin with their next line.
    fn select<'a>(&mut self, services: impl Iterator<Item = &'a String>, logs: &Logs) {
        let before = std::mem::take(&mut self.places);
        self.places = services
            .map(|service| {
                let place = before.get(service).copied().unwrap_or_else(|| logs.count(service));
                (service.clone(), place)
            })
            .collect();
    }

    /// Takes what the plan says of the target now.
    fn change(&mut self, config: &LogTarget, now: Duration) {
        self.way = way(config);
        self.config = config.clone();
        match &mut self.state {
            State::Pushing(pushing) => pushing.is_stale = true,
            state => *state = State::Waiting { until: now },
        }
        self.forget_failures();
    }

    /// Forgets what was wrong with the target, without a word to the operator.
    fn forget_failures(&mut self) {
        self.failures = 0;
        self.health = Health::Well;
        self.told.0 = Health::Well;
    }

    fn is_full(&self) -> bool {
        self.fresh.count >= FULL_LINES || self.fresh.bytes >= FULL_BYTES
    }

    /// Takes lines of a service whose lines go to the target.
    fn lines_ended(&mut self, ended: EndedLines, now: Duration) {
        self.fresh.count = self.fresh.count.saturating_add(ended.count);
        self.fresh.bytes = self.fresh.bytes.saturating_add(ended.bytes);
        let is_full = self.is_full();
        match &mut self.state {
            State::Idle if is_full => self.state = State::Waiting { until: now },
            State::Idle => self.state = State::Waiting { until: now.saturating_add(GATHER_TIME) },
            // A target that fails keeps its pause.
            State::Waiting { until } if is_full && self.failures == 0 => *until = now.min(*until),
            State::Waiting { .. } | State::Pushing(_) => {}
        }
    }

    /// Takes the lines that have left their rings off those that wait.
    fn skip_lost(&mut self, logs: &Logs) {
        for (service, place) in &mut self.places {
            let kept_from = logs.dropped(service);
            if *place < kept_from {
                self.lost = self.lost.saturating_add(kept_from - *place);
                *place = kept_from;
            }
        }
    }

    /// Goes on after the lines of a push.
    fn advance(&mut self, pushing: &Pushing) {
        for (service, end) in &pushing.ends {
            if let Some(place) = self.places.get_mut(service) {
                *place = (*place).max(*end);
            }
        }
    }

    /// Returns the state after a push that has ended well, or badly for good.
    fn next_state(&self, pushing: &Pushing, now: Duration) -> State {
        if pushing.is_full || pushing.is_stale || self.is_full() {
            State::Waiting { until: now }
        } else if self.fresh.count > 0 {
            State::Waiting { until: now.saturating_add(GATHER_TIME) }
        } else {
            State::Idle
        }
    }
}

impl Supervisor {
    /// Gives log targets the services and the places that the plan has now. Lines of before stay behind.
    pub(super) fn follow_log_targets(&mut self) {
        let now = self.now.since_start;
        let plan = self.stack.plan();
        let mut failing = Vec::new();
        for (name, config) in &plan.log_targets {
            let forward = self.forwards.entry(name.clone()).or_insert_with(|| Forward::new(config.clone()));
            let had_services = !forward.places.is_empty();
            forward.select(plan.services.keys().filter(|service| config.selects(service)), &self.logs);
            let is_other = |known: &LogTarget| {
                (known.kind, &known.location, &known.labels)
                    != (config.kind, &config.location, &config.labels)
            };
            let has_changed = is_other(&forward.config);
            if has_changed {
                forward.change(config, now);
            }
            if forward.places.is_empty() {
                forward.forget_failures();
            } else if let Err(reason) = &forward.way
                && (has_changed || !had_services)
            {
                failing.push((name.clone(), reason.clone()));
            }
        }
        for (name, reason) in failing {
            self.set_health(&name, Health::Fails(reason));
        }
    }

    /// Tells log targets that lines of a service have ended.
    pub(super) fn lines_ended(&mut self, service: &str, ended: EndedLines) {
        if ended.count == 0 {
            return;
        }
        let now = self.now.since_start;
        for forward in self.forwards.values_mut() {
            if forward.way.is_ok() && forward.places.contains_key(service) {
                forward.lines_ended(ended, now);
            }
        }
    }

    pub(super) fn tick_forwards(&mut self) {
        let now = self.now.since_start;
        let due = |forward: &Forward| matches!(forward.state, State::Waiting { until } if until <= now);
        let names: Vec<String> =
            self.forwards.iter().filter(|(_, it)| due(it)).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.push(&name);
        }
        let is_told = |forward: &Forward| forward.tells_at().is_some_and(|at| at <= now);
        let names: Vec<String> =
            self.forwards.iter().filter(|(_, it)| is_told(it)).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.tell_health(&name);
        }
    }

    /// Sends a target the lines that wait for it.
    fn push(&mut self, name: &str) {
        let push = self.next_push();
        let Some(forward) = self.forwards.get_mut(name) else { return };
        forward.state = State::Idle;
        forward.skip_lost(&self.logs);
        let Ok((form, location)) = forward.way.clone() else { return };
        forward.fresh = EndedLines::default();
        let Some(Batch { streams, pushing }) = self.batch(name, push) else { return };
        if let Some(forward) = self.forwards.get_mut(name) {
            forward.state = State::Pushing(pushing);
            let lines = LogPush { target: name.to_owned(), form, location, streams };
            self.outputs.push(PodOutput::Push(push, Box::new(lines)));
        }
    }

    /// Gathers the oldest lines that wait for a target; none if none waits.
    fn batch(&self, name: &str, push: LogPushId) -> Option<Batch> {
        let forward = self.forwards.get(name)?;
        // The next line of each service, by the number that it has in the pod.
        let mut next: BTreeMap<u64, (&str, u64)> = BTreeMap::new();
        for (service, place) in &forward.places {
            if let Some(line) = self.logs.line(service, *place) {
                next.insert(line.number, (service.as_str(), *place));
            }
        }
        let mut streams: BTreeMap<&str, LogPushStream> = BTreeMap::new();
        let mut pushing = Pushing { push, lines: 0, ends: BTreeMap::new(), is_full: false, is_stale: false };
        let mut bytes = 0_usize;
        while let Some((_, (service, place))) = next.pop_first() {
            let Some(line) = self.logs.line(service, place) else { continue };
            let labels = (!streams.contains_key(service)).then(|| self.labels(&forward.config, service));
            if pushing.lines > 0 {
                let of_labels = labels.iter().flatten().map(|(label, value)| label.len() + value.len());
                bytes = bytes.saturating_add(of_labels.sum::<usize>() + line.message.len() + LINE_COST);
                if pushing.lines >= FULL_LINES || bytes > MAX_BYTES {
                    pushing.is_full = true;
                    break;
                }
            }
            let stream = streams.entry(service).or_insert_with(|| LogPushStream {
                service: service.to_owned(),
                labels: labels.unwrap_or_default(),
                lines: Vec::new(),
            });
            stream.lines.push(LogPushLine { time: line.time, message: line.message.clone() });
            pushing.lines += 1;
            pushing.ends.insert(service.to_owned(), place + 1);
            if let Some(after) = self.logs.line(service, place + 1) {
                next.insert(after.number, (service, place + 1));
            }
        }
        (pushing.lines > 0).then(|| Batch { streams: streams.into_values().collect(), pushing })
    }

    /// Returns a target's labels for the lines of a service, with the variables that the service was started with.
    fn labels(&self, target: &LogTarget, service: &str) -> BTreeMap<String, String> {
        let run = self.services.get(service).map(|run| &run.config);
        let config = run.or_else(|| self.stack.plan().services.get(service));
        let (none, most) = (BTreeMap::new(), self.options.limits.label);
        let variables = config.map_or(&none, |config| &config.environment);
        let expand = |(name, value): (&String, &String)| (name.clone(), expanded(value, variables, most));
        target.labels.iter().map(expand).collect()
    }

    /// Takes the end of a push.
    pub(super) fn pushed(&mut self, push: LogPushId, result: LogPushResult) {
        let now = self.now.since_start;
        let is_it = |forward: &Forward| matches!(&forward.state, State::Pushing(it) if it.push == push);
        let found = self.forwards.iter().find(|(_, forward)| is_it(forward));
        let Some(name) = found.map(|(name, _)| name.clone()) else { return };
        let Some(forward) = self.forwards.get_mut(&name) else { return };
        let State::Pushing(pushing) = std::mem::replace(&mut forward.state, State::Idle) else { return };
        let health = match result {
            LogPushResult::Taken => {
                forward.advance(&pushing);
                Health::Well
            }
            LogPushResult::Refused(reason) => {
                forward.advance(&pushing);
                forward.lost = forward.lost.saturating_add(pushing.lines as u64);
                Health::Refuses(reason)
            }
            LogPushResult::Failed(reason) => Health::Fails(reason),
        };
        let failures = forward.failures;
        let is_failure = matches!(health, Health::Fails(_)) && !pushing.is_stale;
        if is_failure {
            let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
            let pause = self.with_jitter(pause.min(LONGEST_PAUSE));
            if let Some(forward) = self.forwards.get_mut(&name) {
                forward.failures = failures.saturating_add(1);
                forward.state = State::Waiting { until: now.saturating_add(pause) };
            }
        } else {
            forward.failures = 0;
            forward.state = forward.next_state(&pushing, now);
        }
        // The end of a push to its former place says nothing of a target.
        if !pushing.is_stale {
            self.set_health(&name, health);
        }
    }

    /// Sets the health of a target. A change for the worse is a warning.
    fn set_health(&mut self, name: &str, health: Health) {
        let Some(forward) = self.forwards.get_mut(name) else { return };
        if forward.places.is_empty() {
            return forward.forget_failures();
        }
        let is_news = !forward.health.is_like(&health);
        forward.health = health;
        if is_news {
            if let Some(words) = forward.health.words() {
                let message = format!("log target {name:?}: {words}");
                self.warnings.add(self.now.date, &message, &self.options.limits);
            }
            self.tell_health(name);
        }
    }

    /// Tells the operator of a target's health, unless the operator was told of the target a short time ago.
    fn tell_health(&mut self, name: &str) {
        let now = self.now.since_start;
        let Some(forward) = self.forwards.get_mut(name) else { return };
        if forward.tells_at().is_none_or(|at| at > now) {
            return;
        }
        forward.told = (forward.health.clone(), Some(now));
        let state = match forward.health.words() {
            Some(words) => LogTargetState::Fails(words),
            None => LogTargetState::Takes { lost: std::mem::take(&mut forward.lost) },
        };
        self.outputs.push(PodOutput::LogTarget(name.to_owned(), state));
    }

    /// Sends the lines that wait for targets that take lines. Returns true if there are none any more.
    pub(super) fn has_sent_lines(&mut self) -> bool {
        let waits =
            |forward: &Forward| forward.failures == 0 && matches!(forward.state, State::Waiting { .. });
        let names: Vec<String> =
            self.forwards.iter().filter(|(_, it)| waits(it)).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.push(&name);
        }
        let is_open = |forward: &Forward| forward.failures == 0 && !matches!(forward.state, State::Idle);
        !self.forwards.values().any(is_open)
    }
}
