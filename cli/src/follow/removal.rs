//! The reasons why a removal waits, printed during a wait and when a command gives up.

use std::collections::BTreeMap;

use periapt_host_api::status::{FullStatus, PlacedUnit};

use crate::context::Context;

/// The most things that one message names; it has the number of the others.
const NAMED: usize = 10;

/// A unit that is stuck: its hook has failed, or its agent does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StuckUnit {
    unit: String,
    reason: String,
    /// True if `resolved` helps.
    failed: bool,
}

/// Iterates over the units that are stuck.
fn stuck(status: &FullStatus) -> impl Iterator<Item = StuckUnit> {
    status.units().filter_map(|PlacedUnit { name, unit, .. }| {
        let failed = unit.workload_status.current == "error";
        let agent = &unit.juju_status;
        let reason = match (failed, agent.current.as_str()) {
            (true, _) => unit.workload_status.message.clone(),
            (false, "lost" | "failed") if agent.message.is_empty() => format!("agent {}", agent.current),
            (false, "lost" | "failed") => format!("agent {}: {}", agent.current, agent.message),
            (false, _) => return None,
        };
        Some(StuckUnit { unit: name.to_owned(), reason, failed })
    })
}

/// The printed state of one dying model, so that nothing is printed twice.
#[derive(Debug)]
pub(crate) struct Waiting {
    model: String,
    /// The last printed reason of each unit.
    stuck: BTreeMap<String, String>,
    /// The last printed counts.
    left: String,
    hinted: bool,
}

/// The next action of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep<'a> {
    /// Force the removal by this command.
    Force(&'a str),
    /// The removal is forced already, and ends at its time-out.
    Forced,
}

impl Waiting {
    /// Creates the state before the first message.
    pub(crate) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), stuck: BTreeMap::new(), left: String::new(), hinted: false }
    }

    /// Prints the news: each newly stuck unit or new reason, and new counts.
    pub(crate) fn report(&mut self, context: &Context, status: &FullStatus, next_step: NextStep<'_>) {
        for line in self.news(status, next_step) {
            context.say(line);
        }
    }

    fn news(&mut self, status: &FullStatus, next_step: NextStep<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        let left = left(status);
        if left != self.left {
            lines.push(format!("Waiting for model {}: {left}", self.model));
            self.left = left;
        }
        let news: Vec<_> =
            stuck(status).filter(|stuck| self.stuck.get(&stuck.unit) != Some(&stuck.reason)).collect();
        lines.extend(news.iter().take(NAMED).map(|stuck| {
            format!("Waiting for unit {} in model {}: {}", stuck.unit, self.model, stuck.reason)
        }));
        if news.len() > NAMED {
            lines.push(format!("Waiting for {} more units that are stuck", news.len() - NAMED));
        }
        if let Some(first) = news.first().filter(|_| !self.hinted) {
            lines.extend(hint(first, &self.model, next_step).map(|hint| format!("hint: {hint}")));
            self.hinted = true;
        }
        self.stuck.extend(news.into_iter().map(|stuck| (stuck.unit, stuck.reason)));
        lines
    }
}

/// Formats the counts of remaining things.
fn left(status: &FullStatus) -> String {
    let storage = status.storage.as_ref().map_or(0, |storage| storage.storage.len());
    let counts = [
        (status.applications.len(), "application"),
        (status.units().count(), "unit"),
        (status.machines.len(), "machine"),
        (storage, "storage instance"),
        (status.remote_applications.len(), "saas application"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, what)| format!("{count} {what}(s)")).collect();
    match counts.is_empty() {
        true => "what is left of it".to_owned(),
        false => counts.join(", "),
    }
}

/// Returns the hint for a stuck unit.
fn hint(stuck: &StuckUnit, model: &str, next_step: NextStep<'_>) -> Option<String> {
    let unit = &stuck.unit;
    let resolved = stuck.failed.then(|| {
        format!(
            "`periapt resolved -m {model} {unit}` runs its hook again, and with --no-retry passes over it"
        )
    });
    let forced = match next_step {
        NextStep::Force(command) => Some(format!("`{command}` does not wait for units for ever")),
        NextStep::Forced => None,
    };
    let hints: Vec<_> = resolved.into_iter().chain(forced).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

/// Formats the reasons why a model is still there, for a command that gives up: one on each line, units that do not
/// go by themselves first.
pub(crate) fn still_there(status: &FullStatus) -> String {
    let stuck = stuck(status).map(|stuck| format!("unit {}: {}", stuck.unit, stuck.reason));
    let mut reasons: Vec<String> = stuck.collect();
    for (name, application) in &status.applications {
        reasons.extend(application.waits_for.iter().map(|reason| format!("{name}: {reason}")));
    }
    for PlacedUnit { name, unit, .. } in status.units() {
        reasons.extend(unit.waits_for.iter().map(|reason| format!("{name}: {reason}")));
    }
    let more = reasons.len().saturating_sub(NAMED);
    reasons.truncate(NAMED);
    reasons.extend((more > 0).then(|| format!("and {more} more")));
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}

/// Prints the units that block the removals of a command, with hints.
pub(crate) fn tell_of_stuck<T: ToString>(
    context: &Context,
    status: &FullStatus,
    concerns: impl Fn(&PlacedUnit<'_>) -> bool,
    verb: &str,
    removed: &[T],
) {
    let concerned: Vec<&str> = status.units().filter(|unit| concerns(unit)).map(|unit| unit.name).collect();
    let stuck: Vec<_> = stuck(status).filter(|stuck| concerned.contains(&stuck.unit.as_str())).collect();
    for StuckUnit { unit, reason, .. } in stuck.iter().take(NAMED) {
        context.say(format_args!("unit {unit} is stuck: {reason}"));
    }
    if stuck.len() > NAMED {
        context.say(format_args!("{} more units are stuck", stuck.len() - NAMED));
    }
    let model = &status.model.name;
    let removed: Vec<_> = removed.iter().map(ToString::to_string).collect();
    let force = format!("periapt {verb} -m {model} {} --force", removed.join(" "));
    if let Some(hint) = stuck.first().and_then(|first| hint(first, model, NextStep::Force(&force))) {
        context.say(format_args!("hint: {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    const FORCE: NextStep<'static> = NextStep::Force("periapt destroy-model shop --force");

    /// Returns the fixture with one unit's hook failed.
    fn failing(message: &str) -> FullStatus {
        let mut status = fixture::settled();
        for application in status.applications.values_mut() {
            for (name, unit) in &mut application.units {
                let failed = name == "wordpress/2";
                unit.workload_status.current = if failed { "error" } else { "active" }.to_owned();
                unit.workload_status.message = if failed { message } else { "" }.to_owned();
                unit.juju_status.current = "idle".to_owned();
            }
        }
        status
    }

    #[test]
    fn a_failed_unit_is_told_once_and_again_when_it_fails_otherwise() {
        let mut waiting = Waiting::new("shop");
        let first = waiting.news(&failing("hook failed: \"stop\""), FORCE);
        let told = "Waiting for unit wordpress/2 in model shop: hook failed: \"stop\"";
        assert!(first[0].starts_with("Waiting for model shop: "), "{first:?}");
        assert_eq!(first[1], told);
        assert_eq!(
            first[2],
            "hint: `periapt resolved -m shop wordpress/2` runs its hook again, and with --no-retry passes over it; \
             `periapt destroy-model shop --force` does not wait for units for ever"
        );
        assert_eq!(first.len(), 3);
        let mut running = failing("");
        running.applications.values_mut().flat_map(|application| application.units.values_mut()).for_each(
            |unit| {
                unit.workload_status.current = "maintenance".to_owned();
            },
        );
        for status in [failing("hook failed: \"stop\""), running, failing("hook failed: \"stop\"")] {
            assert_eq!(waiting.news(&status, FORCE), Vec::<String>::new(), "a retry is no news");
        }
        let next = waiting.news(&failing("hook failed: \"remove\""), FORCE);
        assert_eq!(next, [told.replace("stop", "remove")]);
    }

    #[test]
    fn what_is_forced_is_not_told_to_be_forced() {
        let news = Waiting::new("shop").news(&failing("hook failed"), NextStep::Forced);
        assert!(news[2].starts_with("hint: `periapt resolved") && !news[2].contains("--force"), "{news:?}");
    }

    #[test]
    fn many_units_are_counted() {
        let mut status = failing("hook failed");
        let application = status.applications.get_mut("wordpress").unwrap();
        let unit = application.units["wordpress/2"].clone();
        application.units.extend((100..130).map(|number| (format!("wordpress/{number}"), unit.clone())));
        let news = Waiting::new("shop").news(&status, FORCE);
        assert_eq!(news.len(), 1 + NAMED + 2, "{news:?}");
        assert_eq!(news[1 + NAMED], "Waiting for 21 more units that are stuck");
        let told = still_there(&status);
        assert_eq!(told.lines().count(), 1 + NAMED + 1, "{told}");
        assert!(told.starts_with("\n  unit wordpress/100: hook failed\n"), "{told}");
    }
}
