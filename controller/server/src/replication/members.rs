//! The controllers of one log, as this controller knows them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use periapt_host_api::{
    LEVEL, Level, Refusal, Revision,
    command::{FailingWorker, LogUse, MemberInfo, MemberRole},
    excerpt,
    program::{ProgramTarget, RunningProgram},
};
use periapt_model::entity::ControllerMember;
use periapt_program::Programs;
use tokio::sync::watch;

use super::{
    Freshness, RecentEntries, Role, RoleReceiver,
    rollout::{Step, next_step},
};
use crate::{
    metrics::metrics,
    presence::{MemberReport, Presence, PresenceReport},
    published::Subscription,
    supervision::{WorkerHealth, bounded},
};

/// The most controllers that are shown.
const MAX_MEMBERS: usize = 64;

/// The controllers of one log. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Members {
    /// This controller; none if it is alone.
    own: Option<OwnMember>,
    freshness: Freshness,
    role: RoleReceiver,
    presence: Presence,
    state: Subscription,
    /// The list that the leading controller told a following one.
    told: Arc<Mutex<Vec<MemberInfo>>>,
    /// The URLs of all known controllers, in order; none if this one knows no other.
    urls: Arc<watch::Sender<Vec<String>>>,
    /// This controller's programs; none if it does not replace itself.
    programs: Option<Programs>,
    /// The number of the target that the leading controller told this one to take.
    ordered: Arc<Mutex<Option<u64>>>,
    /// The newest entries of the log.
    recent: RecentEntries,
    /// The size of the log that the leading controller told a following one.
    told_log: Arc<Mutex<Option<LogUse>>>,
    /// True while this controller takes the state of the one that leads.
    takes_state: Arc<AtomicBool>,
    /// This controller's workers.
    workers: WorkerHealth,
}

/// A controller among those of its log, as it is known from its start on.
#[derive(Debug, Clone)]
pub(crate) struct OwnMember {
    /// The name.
    pub(crate) name: String,
    /// The URL.
    pub(crate) url: String,
    /// The level that the program knows.
    pub(crate) level: Level,
}

/// The time in which this controller takes the state of the one that leads.
pub(super) struct TakingState(Arc<AtomicBool>);

impl Drop for TakingState {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Members {
    pub(crate) fn new(
        own: Option<OwnMember>,
        (freshness, role): (Freshness, RoleReceiver),
        presence: Presence,
        state: Subscription,
        programs: Option<Programs>,
        recent: RecentEntries,
        workers: WorkerHealth,
    ) -> Self {
        let (told, urls, ordered) = (Arc::default(), Arc::default(), Arc::default());
        let (told_log, takes_state) = (Arc::default(), Arc::default());
        Self {
            own,
            freshness,
            role,
            presence,
            state,
            told,
            urls,
            programs,
            ordered,
            recent,
            told_log,
            takes_state,
            workers,
        }
    }

    /// Takes the report of a following controller.
    ///
    /// # Errors
    /// The refusal of a controller that was removed.
    pub(crate) fn report(&self, report: PresenceReport) -> Result<(), Refusal> {
        if self.state.current().root.is_removed_member(&report.member) {
            let text = format!("controller {:?} was removed", excerpt::shortened(&report.member));
            return Err(Refusal::permission_denied(text));
        }
        self.presence.report(report);
        self.show_urls();
        Ok(())
    }

    /// Takes the list of the leading controller.
    pub(crate) fn take(&self, mut told: Vec<MemberInfo>) {
        told.truncate(MAX_MEMBERS);
        for member in &mut told {
            member.failing_workers = bounded(std::mem::take(&mut member.failing_workers));
        }
        *self.told.lock() = told;
        self.show_urls();
    }

    /// Takes the size of the log that the leading controller knows.
    pub(super) fn take_log(&self, told: Option<LogUse>) {
        *self.told_log.lock() = told;
    }

    /// Returns the entries that the log has; none if this controller is alone, or does not know.
    pub(crate) fn log(&self) -> Option<LogUse> {
        self.own.as_ref()?;
        let leads = self.role.borrow().leads_in().is_some();
        if leads { Some(self.recent.usage()) } else { *self.told_log.lock() }
    }

    /// Sets the gauges of this controller's part among several.
    pub(crate) fn measure(&self) {
        let metrics = metrics();
        let (leads, term) = match &*self.role.borrow() {
            Role::Leading(term) => (1, Some(term.0)),
            Role::Following(leader) => (0, leader.as_ref().map(|leader| leader.term.0)),
        };
        metrics.leads.set(&[], leads);
        if let Some(term) = term {
            metrics.term.set(&[], term);
        }
        let applied = self.state.current().revision();
        metrics.revision.set(&[], applied.0);
        metrics.behind.set(&[], self.freshness.end().map_or(0, |end| end.0.saturating_sub(applied.0)));
        let age = self.freshness.age().unwrap_or_default().as_millis();
        metrics.age.set(&[], u64::try_from(age).unwrap_or(u64::MAX));
        // Of the controllers of a log, the one that leads counts its entries.
        let log = if leads == 1 { self.log() } else { None };
        let LogUse { entries, bytes, bound } = log.unwrap_or(LogUse { entries: 0, bytes: 0, bound: 0 });
        metrics.log_entries.set(&[], entries);
        metrics.log_bytes.set(&[], bytes);
        metrics.log_bound.set(&[], bound);
    }

    /// Returns the names of the other controllers that need entries which the log does not have any more.
    pub(super) fn cut_off(&self) -> Vec<String> {
        self.list().into_iter().filter(|member| member.cut_off).map(|member| member.name).collect()
    }

    /// Shows that this controller takes the state of the one that leads, until the guard is dropped.
    pub(super) fn taking_state(&self) -> TakingState {
        self.takes_state.store(true, Ordering::Relaxed);
        TakingState(Arc::clone(&self.takes_state))
    }

    /// Returns the URLs of all known controllers, and each change of them; none if this one knows no other.
    pub(crate) fn urls(&self) -> watch::Receiver<Vec<String>> {
        self.urls.subscribe()
    }

    fn show_urls(&self) {
        let mut urls: Vec<_> = self.list().into_iter().map(|member| member.url).collect();
        urls.retain(|url| !url.is_empty());
        urls.sort();
        if urls.len() > 1 {
            self.urls.send_if_modified(|shown| {
                let is_new = *shown != urls;
                *shown = urls;
                is_new
            });
        }
    }

    /// Returns all known controllers, by name; none if this one is alone. One that has not started yet has no URL.
    pub(crate) fn list(&self) -> Vec<MemberInfo> {
        let Some(OwnMember { name, url, level }) = &self.own else { return Vec::new() };
        let current = self.state.current();
        let revision = current.revision();
        let (role, mut list) = match &*self.role.borrow() {
            Role::Leading(_) => (MemberRole::Leader, self.followers()),
            Role::Following(_) => (MemberRole::Follower, self.told.lock().clone()),
        };
        // What is stored outlives the memory of reports.
        let is_new = |name: &str| list.iter().all(|member| member.name != name);
        let away: Vec<_> = current.root.members().filter(|(name, _)| is_new(name)).map(away).collect();
        list.extend(away);
        list.retain(|member| member.name != *name && !current.root.is_removed_member(&member.name));
        let stale = self.freshness.is_stale();
        let cut_off = self.takes_state.load(Ordering::Relaxed);
        let (name, url, level) = (name.clone(), url.clone(), *level);
        let (program, failing_workers) = (self.running(), self.failing_workers());
        list.push(MemberInfo {
            name,
            url,
            role,
            revision,
            level,
            stale,
            cut_off,
            away: false,
            program,
            failing_workers,
        });
        list.sort_by(|left, right| left.name.cmp(&right.name));
        list
    }

    /// Returns the program that this controller runs, if it may replace itself.
    pub(crate) fn running(&self) -> Option<RunningProgram> {
        self.programs.as_ref().map(Programs::running)
    }

    /// Returns this controller's workers that failed a short while ago.
    pub(crate) fn failing_workers(&self) -> Vec<FailingWorker> {
        self.workers.failing()
    }

    /// Returns the program that all controllers are to run.
    pub(crate) fn target(&self) -> Option<ProgramTarget> {
        self.state.current().root.controller().and_then(|controller| controller.program.clone())
    }

    /// Returns the next step of the rollout of a program, as the controller that leads knows it.
    pub(crate) fn step(&self, target: &ProgramTarget) -> Step {
        match &self.own {
            Some(_) => next_step(target, &self.list(), |name| self.is_running(name)),
            None => match self.running() {
                Some(program) if program.failure_of(target).is_some() => Step::Stopped,
                Some(program) if program.is(target) => Step::Done,
                Some(program) if !program.trial => Step::Replace(String::new()),
                _ => Step::Wait,
            },
        }
    }

    /// Returns the number of the target that a controller is to take now, by the one that leads.
    pub(crate) fn order_for(&self, member: &str) -> Option<u64> {
        let target = self.target()?;
        matches!(self.step(&target), Step::Replace(name) if name == member).then_some(target.number)
    }

    /// Takes the order of the leading controller to take a target; none: it is not this controller's turn.
    pub(crate) fn take_order(&self, number: Option<u64>) {
        *self.ordered.lock() = number;
    }

    /// Returns true if it is this controller's turn to take a target.
    pub(crate) fn is_due(&self, target: &ProgramTarget) -> bool {
        if self.role.borrow().leads_in().is_none() {
            return *self.ordered.lock() == Some(target.number);
        }
        let own = self.own.as_ref().map_or("", |own| &own.name);
        matches!(self.step(target), Step::Replace(name) if name == own)
    }

    /// Returns true if this controller shares its log with others, or may.
    pub(crate) fn is_one_of_several(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the highest level that the programs of all known controllers know. One that is away counts with what it
    /// last reported.
    pub(crate) fn level(&self) -> Level {
        self.list().into_iter().map(|member| member.level).fold(self.own_level(), Level::min)
    }

    /// Returns the level that this controller's program knows.
    pub(super) fn own_level(&self) -> Level {
        self.own.as_ref().map_or(LEVEL, |own| own.level)
    }

    /// Returns true if a controller of this name runs: it is this one, leads, or has reported a moment ago.
    pub(crate) fn is_running(&self, name: &str) -> bool {
        let is_own = self.own.as_ref().is_some_and(|own| own.name == name);
        let leads = match &*self.role.borrow() {
            Role::Following(Some(leader)) => leader.announcement.member == name,
            _ => false,
        };
        // One that was removed a moment ago is remembered by its last report.
        let is_removed = self.state.current().root.is_removed_member(name);
        !is_removed && (is_own || leads || self.presence.members().contains_key(name))
    }

    /// Returns the URLs of the other known controllers: first the one that leads.
    pub(crate) fn others(&self) -> Vec<String> {
        let Some(own) = &self.own else { return Vec::new() };
        let mut others = self.list();
        others.retain(|member| member.name != own.name && !member.url.is_empty());
        others.sort_by_key(|member| member.role != MemberRole::Leader);
        let mut urls: Vec<_> = others.into_iter().map(|member| member.url).collect();
        // The log tells who leads before any report does.
        if let Role::Following(Some(leader)) = &*self.role.borrow() {
            let url = &leader.announcement.url;
            urls.retain(|known| known != url);
            urls.insert(0, url.clone());
        }
        urls
    }

    /// Returns the controllers that follow this one, and those that it knew before and that have not reported since: an
    /// operator sees how far they are behind, and clients keep their addresses.
    fn followers(&self) -> Vec<MemberInfo> {
        let mut told = self.told.lock();
        let mut known = self.reported();
        let is_new = |member: &MemberInfo| known.iter().all(|known| known.name != member.name);
        let silent: Vec<_> = told.iter().filter(|member| is_new(member)).cloned().collect();
        // Nobody knows whether the workers of a silent one still fail.
        let silent = silent.into_iter().map(|member| MemberInfo {
            role: MemberRole::Follower,
            away: true,
            failing_workers: Vec::new(),
            ..member
        });
        known.extend(silent);
        known.truncate(MAX_MEMBERS);
        for member in &mut known {
            // Of one that has never reported nothing is known.
            member.cut_off = member.revision > Revision(0) && self.recent.has_lost(member.revision);
        }
        told.clone_from(&known);
        known
    }

    fn reported(&self) -> Vec<MemberInfo> {
        let reports = self.presence.members().into_iter().take(MAX_MEMBERS);
        let member = |(name, report): (String, MemberReport)| MemberInfo {
            name,
            url: report.url,
            role: MemberRole::Follower,
            revision: Revision(report.applied),
            level: report.level,
            stale: report.stale,
            cut_off: false,
            away: false,
            program: report.program,
            failing_workers: report.failing_workers,
        };
        reports.map(member).collect()
    }
}

/// Returns what is known of a stored controller that has not reported.
fn away((name, member): (&str, &ControllerMember)) -> MemberInfo {
    MemberInfo {
        name: name.to_owned(),
        url: member.url.clone().unwrap_or_default(),
        role: MemberRole::Follower,
        revision: Revision(0),
        level: member.level,
        stale: false,
        cut_off: false,
        away: true,
        program: None,
        failing_workers: Vec::new(),
    }
}
