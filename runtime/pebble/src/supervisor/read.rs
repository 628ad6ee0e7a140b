//! Answers that change nothing.

use serde_json::{Value, json};

use super::{Supervisor, services::Run};
use crate::{
    change::Change,
    identity::Access,
    message::{ChangeId, NoticesQuery, PodAnswer, PodCaller, PodRefusal},
    plan::CheckLevel,
};

impl Supervisor {
    pub(super) fn system_info(&self) -> PodAnswer {
        PodAnswer::Sync(json!({ "version": self.options.version, "boot-id": self.options.boot_id }))
    }

    /// Returns the health: no check that counts is down. A workload that must live must live to be ready.
    pub(super) fn health(&self, level: Option<CheckLevel>, names: &[String]) -> PodAnswer {
        let counts = |of: Option<CheckLevel>| match level {
            None => true,
            Some(CheckLevel::Alive) => of == Some(CheckLevel::Alive),
            Some(CheckLevel::Ready) => of.is_some(),
        };
        let mut checks = self
            .checks
            .iter()
            .filter(|(name, run)| counts(run.config.level) && (names.is_empty() || names.contains(name)));
        PodAnswer::Health(checks.all(|(_, run)| run.active.as_ref().is_none_or(|active| !active.is_down)))
    }

    pub(super) fn services_shown(&self, names: &[String]) -> PodAnswer {
        let services = self.stack.plan().services.iter();
        let shown =
            services.filter(|(name, _)| names.is_empty() || names.contains(name)).map(|(name, service)| {
                let run = self.services.get(name);
                let mut shown = json!({
                    "name": name,
                    "startup": if service.is_enabled() { "enabled" } else { "disabled" },
                    "current": run.map_or("inactive", Run::current),
                });
                if let (Some(run), Some(shown)) = (run, shown.as_object_mut()) {
                    shown.insert("current-since".to_owned(), run.changed.to_string().into());
                }
                shown
            });
        PodAnswer::Sync(shown.collect())
    }

    pub(super) fn checks_shown(&self, level: Option<CheckLevel>, names: &[String]) -> PodAnswer {
        let checks = self.checks.iter().filter(|(name, run)| {
            (level.is_none() || run.config.level == level) && (names.is_empty() || names.contains(name))
        });
        let shown = checks.map(|(name, run)| {
            let active = run.active.as_ref();
            let mut shown = json!({
                "name": name,
                "startup": if run.config.is_enabled() { "enabled" } else { "disabled" },
                "status": active.map_or("inactive", |it| if it.is_down { "down" } else { "up" }),
                "successes": run.successes,
                "failures": run.failures,
                "threshold": run.config.threshold(),
            });
            if let Some(shown) = shown.as_object_mut() {
                if let Some(level) = run.config.level {
                    shown.insert("level".to_owned(), level.as_str().into());
                }
                if let Some(active) = active {
                    shown.insert("change-id".to_owned(), active.change.to_string().into());
                }
            }
            shown
        });
        PodAnswer::Sync(shown.collect())
    }

    pub(super) fn changes_shown(&self, select: &str, service: Option<&str>) -> Result<PodAnswer, PodRefusal> {
        let is_selected: fn(&Change) -> bool = match select {
            "all" => |_| true,
            "" | "in-progress" => |change| change.ready.is_none(),
            "ready" => |change| change.ready.is_some(),
            _ => return Err(PodRefusal::bad("select should be one of: all,in-progress,ready")),
        };
        let changes = self.changes.all().filter(|change| is_selected(change));
        let changes = changes.filter(|change| service.is_none_or(|name| change.concerns(name)));
        Ok(PodAnswer::Sync(changes.map(Change::shown).collect()))
    }

    pub(super) fn find_change(&self, id: &str) -> Result<ChangeId, PodRefusal> {
        let known = ChangeId::read(id).filter(|id| self.changes.get(*id).is_some());
        known.ok_or_else(|| PodRefusal::missing(format!("cannot find change with id {id:?}")))
    }

    pub(super) fn change_shown(&self, id: ChangeId) -> Result<PodAnswer, PodRefusal> {
        let change = self.changes.get(id);
        change
            .map(|change| PodAnswer::Sync(change.shown()))
            .ok_or_else(|| PodRefusal::missing(format!("cannot find change with id \"{id}\"")))
    }

    pub(super) fn notice_shown(&self, id: &str, user: Option<Option<u32>>) -> Result<PodAnswer, PodRefusal> {
        let limits = &self.options.limits;
        let found = id.parse().ok().and_then(|id| self.notices.shown(id, user, limits));
        found
            .map(PodAnswer::Sync)
            .ok_or_else(|| PodRefusal::missing(format!("cannot find notice with ID {id:?}")))
    }

    /// Returns the notices of a query, and whose they are: none for all users.
    pub(super) fn notices_shown(
        &self,
        query: &NoticesQuery,
        caller: PodCaller,
        access: Access,
    ) -> Result<(Vec<Value>, Option<Option<u32>>), PodRefusal> {
        if access < Access::Admin && (query.all_users || query.user_id.is_some()) {
            return Err(PodRefusal::forbidden("only admins may use the \"users\" or \"user-id\" filter"));
        }
        if query.all_users && query.user_id.is_some() {
            return Err(PodRefusal::bad("cannot use both \"users\" and \"user-id\" parameters"));
        }
        let user = match query.all_users {
            true => None,
            false => Some(query.user_id.or(caller.user_id)),
        };
        Ok((self.notices.listed(query, user, self.now.date, &self.options.limits), user))
    }
}
