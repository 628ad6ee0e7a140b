//! Requests that change something, and the rights for all.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Supervisor, services::Run, waiters::Waiter};
use crate::{
    change::{ChangeKind, NewTask, Status, Work},
    identity::Access,
    message::{
        AddLayer, ChangeId, ChecksAction, ChecksBody, NoticeBody, PodAnswer, PodCaller, PodOutput,
        PodRefusal, PodRequest, RequestId, ServicesAction, ServicesBody, SignalsBody, TaskId,
    },
    notice::{self, CUSTOM, Occurrence},
    plan::{Adding, Layer, Plan, start_order, stop_order, waits},
    signal::Signal,
};

/// Returns the right that a request needs.
fn needs(request: &PodRequest) -> Access {
    match request {
        PodRequest::SystemInfo | PodRequest::Health { .. } => Access::Untrusted,
        PodRequest::Metrics => Access::Metrics,
        PodRequest::Plan
        | PodRequest::Services { .. }
        | PodRequest::Changes { .. }
        | PodRequest::Change(_)
        | PodRequest::WaitChange(..)
        | PodRequest::Checks { .. }
        | PodRequest::Notices(_)
        | PodRequest::Notify(_)
        | PodRequest::Notice(_)
        | PodRequest::Identities
        | PodRequest::Warnings { .. }
        | PodRequest::Logs { .. } => Access::Read,
        PodRequest::Authorize
        | PodRequest::AddLayer(_)
        | PodRequest::ActOnServices(_)
        | PodRequest::Signal(_)
        | PodRequest::AbortChange(_)
        | PodRequest::Exec(_)
        | PodRequest::Websocket(..)
        | PodRequest::ActOnChecks(_)
        | PodRequest::ActOnIdentities(_)
        | PodRequest::Okay(_) => Access::Admin,
    }
}

impl Supervisor {
    pub(super) fn request(&mut self, id: RequestId, caller: PodCaller, request: PodRequest) {
        let access = self.identities.access(caller);
        if access < needs(&request) {
            let (status, kind) = (401, Some("login-required"));
            let refusal = PodRefusal { status, kind, message: "access denied".to_owned() };
            self.outputs.push(PodOutput::Respond(id, Err(refusal)));
            return;
        }
        let answer = match request {
            PodRequest::Authorize => Ok(PodAnswer::Sync(Value::Null)),
            PodRequest::SystemInfo => Ok(self.system_info()),
            PodRequest::Health { level, names } => Ok(self.health(level, &names)),
            PodRequest::Plan => Ok(PodAnswer::Sync(self.stack.plan().to_yaml().into())),
            PodRequest::AddLayer(body) => self.add_layer(&body),
            PodRequest::Services { names } => Ok(self.services_shown(&names)),
            PodRequest::ActOnServices(body) => self.act_on_services(&body),
            PodRequest::Signal(body) => self.signal(&body),
            PodRequest::Changes { select, service } => self.changes_shown(&select, service.as_deref()),
            PodRequest::Change(change) => {
                self.find_change(&change).and_then(|change| self.change_shown(change))
            }
            PodRequest::WaitChange(change, timeout) => match self.find_change(&change) {
                Ok(change) if self.active.contains(&change) => {
                    let until = timeout.map(|timeout| self.now.since_start.saturating_add(timeout));
                    let timeout = timeout.unwrap_or_default();
                    return self.wait(id, Waiter::Change { change, until, timeout });
                }
                Ok(change) => self.change_shown(change),
                Err(refusal) => Err(refusal),
            },
            PodRequest::AbortChange(change) => {
                self.find_change(&change).and_then(|change| self.abort(change))
            }
            PodRequest::Exec(body) => match self.may_begin() {
                Ok(()) => self.exec(*body),
                Err(refusal) => Err(refusal),
            },
            PodRequest::Websocket(task, name) => self.websocket(&task, name),
            PodRequest::Checks { level, names } => Ok(self.checks_shown(level, &names)),
            PodRequest::ActOnChecks(body) => self.act_on_checks(&body),
            PodRequest::Notices(query) => match self.notices_shown(&query, caller, access) {
                Ok((found, user)) => match query.timeout.filter(|_| found.is_empty()) {
                    None => Ok(PodAnswer::Sync(found.into())),
                    Some(timeout) => {
                        let until = self.now.since_start.saturating_add(timeout);
                        return self.wait(id, Waiter::Notices { query, user, until });
                    }
                },
                Err(refusal) => Err(refusal),
            },
            PodRequest::Notify(body) => self.notify(body, caller),
            PodRequest::Notice(notice) => {
                let user = (access < Access::Admin).then_some(caller.user_id);
                self.notice_shown(&notice, user)
            }
            PodRequest::Metrics => Ok(self.metrics()),
            PodRequest::Identities => Ok(PodAnswer::Sync(self.identities.shown())),
            PodRequest::ActOnIdentities(body) => {
                self.identities.act(&body, &self.options.limits).map(|()| PodAnswer::Sync(Value::Null))
            }
            PodRequest::Warnings { all } => Ok(PodAnswer::Sync(match all {
                true => self.warnings.all(),
                false => self.warnings.pending(),
            })),
            PodRequest::Okay(until) => {
                Ok(PodAnswer::Sync(self.warnings.acknowledge(until, self.now.date).into()))
            }
            PodRequest::Logs { services, newest, from } => {
                Ok(PodAnswer::Logs(self.logs.read(&services, from, newest), self.logs.next()))
            }
        };
        self.outputs.push(PodOutput::Respond(id, answer));
    }

    /// Refuses a new change while too many are in progress, or while the pod ends.
    fn may_begin(&self) -> Result<(), PodRefusal> {
        if self.is_ending() {
            return Err(PodRefusal::busy("the pod ends"));
        }
        let (changes, tasks) = self.changes.in_progress();
        let limits = &self.options.limits;
        match changes >= limits.changes || tasks >= limits.tasks {
            true => Err(PodRefusal::busy(format!(
                "{changes} changes with {tasks} tasks are in progress; try again later"
            ))),
            false => Ok(()),
        }
    }

    fn add_layer(&mut self, body: &AddLayer) -> Result<PodAnswer, PodRefusal> {
        if body.action != "add" {
            return Err(PodRefusal::bad(format!("invalid action {:?}", body.action)));
        }
        if body.format != "yaml" {
            return Err(PodRefusal::bad(format!("invalid format {:?}", body.format)));
        }
        let limits = &self.options.limits;
        let refuse = |error: crate::plan::LayerError| PodRefusal::bad(error.to_string());
        let adding = if body.combine { Adding::Combined } else { Adding::OnTop };
        let layer = Layer::read(&body.label, &body.layer, limits).map_err(refuse)?;
        self.stack.add(&body.label, layer, adding, limits).map_err(refuse)?;
        self.state_changed();
        if !self.is_ending() {
            self.follow_plan();
            self.follow_log_targets();
        }
        Ok(PodAnswer::Sync(Value::Bool(true)))
    }

    fn act_on_services(&mut self, body: &ServicesBody) -> Result<PodAnswer, PodRefusal> {
        self.may_begin()?;
        let refuse = |error: crate::plan::LayerError| PodRefusal::bad(error.to_string());
        let plan = self.stack.plan();
        let named = || body.services.iter().map(String::as_str);
        let (verb, kind) = match body.action {
            ServicesAction::Start => ("Start", ChangeKind::Start),
            ServicesAction::Stop => ("Stop", ChangeKind::Stop),
            ServicesAction::Restart => ("Restart", ChangeKind::Restart),
            ServicesAction::Replan => ("Replan", ChangeKind::Replan),
            ServicesAction::Autostart => ("Autostart", ChangeKind::Autostart),
        };
        let is_by_name =
            matches!(body.action, ServicesAction::Start | ServicesAction::Stop | ServicesAction::Restart);
        if is_by_name && body.services.is_empty() {
            return Err(PodRefusal::bad(format!("no services to {}", body.action.as_str())));
        }
        if !is_by_name && !body.services.is_empty() {
            return Err(PodRefusal::bad(format!("{} accepts no service names", body.action.as_str())));
        }
        let runs = |name: &String| self.services.get(name).is_some_and(Run::is_active);
        let enabled =
            || plan.services.iter().filter(|(_, it)| it.is_enabled()).map(|(name, _)| name.as_str());
        let (stop, start) = match body.action {
            ServicesAction::Start => (Vec::new(), start_order(plan, named()).map_err(refuse)?),
            ServicesAction::Stop => {
                let mut stop = stop_order(plan, named()).map_err(refuse)?;
                stop.retain(|name| body.services.contains(name) || runs(name));
                (stop, Vec::new())
            }
            ServicesAction::Restart => {
                let mut stop = stop_order(plan, named()).map_err(refuse)?;
                stop.retain(|name| body.services.contains(name) && runs(name));
                (stop, start_order(plan, named()).map_err(refuse)?)
            }
            ServicesAction::Autostart => {
                if enabled().next().is_none() {
                    let (status, kind) = (400, Some("no-default-services"));
                    return Err(PodRefusal { status, kind, message: "no default services".to_owned() });
                }
                (Vec::new(), start_order(plan, enabled()).map_err(refuse)?)
            }
            ServicesAction::Replan => {
                let changed: BTreeSet<&str> = self
                    .services
                    .iter()
                    .filter(|it| is_stale(plan, it.0, it.1))
                    .map(|it| it.0.as_str())
                    .collect();
                let mut stop = stop_order(plan, changed.iter().copied()).map_err(refuse)?;
                stop.retain(|name| changed.contains(name.as_str()));
                let mut start =
                    start_order(plan, enabled().chain(changed.iter().copied())).map_err(refuse)?;
                start.retain(|name| changed.contains(name.as_str()) || !runs(name));
                (stop, start)
            }
        };
        let tasks = tasks(plan, &stop, &start);
        let shown = if start.is_empty() { &stop } else { &start };
        // A change is named after what was asked for, if something was.
        let shown = if body.services.is_empty() { shown } else { &body.services };
        let summary = match shown.as_slice() {
            [] => format!("{verb} - no services"),
            [one] => format!("{verb} service {one:?}"),
            [one, others @ ..] => format!("{verb} service {one:?} and {} more", others.len()),
        };
        let change = self.create_change(kind, summary, tasks);
        if body.action == ServicesAction::Replan {
            let stopped: Vec<String> = self
                .checks
                .iter()
                .filter(|(_, run)| run.active.is_none() && run.config.is_enabled())
                .map(|(name, _)| name.clone())
                .collect();
            for name in stopped {
                self.start_check(&name);
            }
        }
        Ok(PodAnswer::Async(change, Value::Null))
    }

    fn signal(&mut self, body: &SignalsBody) -> Result<PodAnswer, PodRefusal> {
        let signal = Signal::from_name(&body.signal)
            .ok_or_else(|| PodRefusal::bad(format!("invalid signal name {:?}", body.signal)))?;
        if body.services.is_empty() {
            return Err(PodRefusal::bad("must specify one or more services"));
        }
        let mut processes = BTreeSet::new();
        for name in &body.services {
            let process = self.services.get(name).and_then(Run::process).ok_or_else(|| PodRefusal {
                status: 500,
                kind: None,
                message: format!("cannot send signal to {name:?}: service is not running"),
            })?;
            processes.insert(process);
        }
        self.outputs.extend(processes.into_iter().map(|process| PodOutput::Signal(process, signal)));
        Ok(PodAnswer::Sync(Value::Bool(true)))
    }

    fn act_on_checks(&mut self, body: &ChecksBody) -> Result<PodAnswer, PodRefusal> {
        if body.checks.is_empty() {
            return Err(PodRefusal::bad(format!("no checks to {}", body.action.as_str())));
        }
        if self.is_ending() {
            return Err(PodRefusal::busy("the pod ends"));
        }
        let names: BTreeSet<&String> = body.checks.iter().collect();
        if let Some(unknown) = names.iter().find(|name| !self.checks.contains_key(**name)) {
            return Err(PodRefusal::missing(format!("cannot find check {unknown:?}")));
        }
        let mut changed = Vec::new();
        for name in names {
            let has_changed = match body.action {
                ChecksAction::Start => self.start_check(name),
                ChecksAction::Stop => self.stop_check(name),
            };
            if has_changed {
                changed.push(name.clone());
            }
        }
        Ok(PodAnswer::Sync(json!({ "changed": changed })))
    }

    fn notify(&mut self, body: NoticeBody, caller: PodCaller) -> Result<PodAnswer, PodRefusal> {
        if body.action != "add" {
            return Err(PodRefusal::bad(format!("invalid action {:?}", body.action)));
        }
        if body.kind != CUSTOM {
            return Err(PodRefusal::bad(format!(
                "invalid type {:?} (can only add \"custom\" notices)",
                body.kind
            )));
        }
        notice::check(&body.key, &body.data, &self.options.limits).map_err(PodRefusal::bad)?;
        let NoticeBody { key, data, repeat_after, .. } = body;
        let id = self.occur(Occurrence { user: caller.user_id, kind: CUSTOM, key, data, repeat_after });
        Ok(PodAnswer::Sync(json!({ "id": id.to_string() })))
    }

    fn abort(&mut self, id: ChangeId) -> Result<PodAnswer, PodRefusal> {
        let tasks: Vec<(TaskId, Status, bool)> = self.changes.get(id).map_or(Vec::new(), |change| {
            let shown = change.tasks.iter().filter(|task| !task.status.is_ready());
            shown.map(|task| (task.id, task.status, task.work == Work::Exec)).collect()
        });
        if tasks.is_empty() {
            return Err(PodRefusal::bad(format!("cannot abort change {id} with nothing pending")));
        }
        for (task, status, is_exec) in tasks {
            match (status, is_exec) {
                (Status::Doing | Status::Do, true) => {
                    self.abort_task(task);
                    self.kill_exec(task, "aborted");
                }
                (Status::Do, false) => self.hold_task(task),
                // A service that starts or stops goes on until it has: half of either is neither.
                _ => {}
            }
        }
        self.change_shown(id)
    }
}

/// Returns true for a service that runs otherwise than the plan has it.
fn is_stale(plan: &Plan, name: &str, run: &Run) -> bool {
    let Some(planned) = plan.services.get(name) else { return false };
    let mut planned = planned.clone();
    planned.mode = run.config.mode;
    run.is_active() && planned != run.config
}

/// Returns the tasks that stop, then start services.
fn tasks(plan: &Plan, stop: &[String], start: &[String]) -> Vec<NewTask> {
    let place = |names: &[String], name: &String| names.iter().position(|it| it == name);
    let mut tasks = Vec::with_capacity(stop.len() + start.len());
    let stop_waits = waits(plan, stop);
    for name in stop {
        let later = stop_waits.iter().filter(|(_, earlier)| earlier.contains(name));
        tasks.push(NewTask {
            work: Work::Stop(name.clone()),
            kind: "stop",
            summary: format!("Stop service {name:?}"),
            after: later.filter_map(|(other, _)| place(stop, other)).collect(),
        });
    }
    let start_waits = waits(plan, start);
    for name in start {
        let earlier = start_waits.get(name).into_iter().flatten();
        let earlier = earlier.filter_map(|other| Some(stop.len() + place(start, other)?));
        tasks.push(NewTask {
            work: Work::Start(name.clone()),
            kind: "start",
            summary: format!("Start service {name:?}"),
            after: (0..stop.len()).chain(earlier).collect(),
        });
    }
    tasks
}
