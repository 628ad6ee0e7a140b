//! The commands that controllers acknowledged, beside what a controller shows of them afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::AddAssign,
};

use periapt_host_api::{
    api::ModelSelector,
    audit::{AuditEntry, AuditOutcome},
};

/// The number of acknowledged commands of each model.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged(BTreeMap<ModelSelector, u64>);

impl Acknowledged {
    /// Adds acknowledged commands of a model, which its UUID selects.
    pub fn add(&mut self, model: ModelSelector, commands: u64) {
        *self.0.entry(model).or_default() += commands;
    }

    /// Adds all commands of another set.
    pub fn append(&mut self, other: Self) {
        for (model, commands) in other.0 {
            self.add(model, commands);
        }
    }

    /// Returns the models with the number of their commands.
    pub fn models(&self) -> impl Iterator<Item = (&ModelSelector, u64)> {
        self.0.iter().map(|(model, commands)| (model, *commands))
    }

    /// Returns the number of all commands.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Compares the commands with all entries of the audit log, which has one for each command that was carried out:
    /// `act` is the name that it gives them. `outdated` are the models that show another value than the last command's.
    pub fn compare(
        &self,
        act: &str,
        entries: &[AuditEntry],
        outdated: &BTreeSet<ModelSelector>,
    ) -> CommandDeviations {
        let mut carried_out: BTreeMap<&str, u64> = BTreeMap::new();
        for AuditEntry { request, .. } in entries {
            if request.act == act && request.outcome == AuditOutcome::Done {
                *carried_out.entry(&request.subject).or_default() += 1;
            }
        }
        let mut deviations = CommandDeviations::default();
        for (model, commands) in self.models() {
            let entered = carried_out.get(format!("model {model}").as_str()).copied().unwrap_or_default();
            let missing = commands.saturating_sub(entered);
            deviations += CommandDeviations {
                lost: missing.max(u64::from(outdated.contains(model))),
                doubled: entered.saturating_sub(commands),
            };
        }
        deviations
    }
}

/// The acknowledged commands without an effect, and the effects beyond the first of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandDeviations {
    /// The commands without an effect.
    pub lost: u64,
    /// The effects beyond the first.
    pub doubled: u64,
}

impl CommandDeviations {
    /// Returns true if each command had one effect.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign for CommandDeviations {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.doubled += other.doubled;
    }
}

/// Formats them as `lost 0, doubled 0`.
impl fmt::Display for CommandDeviations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lost {}, doubled {}", self.lost, self.doubled)
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ErrorCode, Timestamp, audit::AuditedRequest};

    use super::*;

    fn uuid(number: usize) -> String {
        format!("4f2b3c1e-0000-4000-8000-{number:012}")
    }

    fn model(number: usize) -> ModelSelector {
        uuid(number).parse().unwrap()
    }

    fn entry(act: &str, number: usize, outcome: AuditOutcome) -> AuditEntry {
        let request = AuditedRequest {
            at: Timestamp::UNIX_EPOCH,
            user: None,
            session: None,
            address: "local".into(),
            act: act.into(),
            subject: format!("model {}", uuid(number)),
            outcome,
        };
        AuditEntry::after(None, request)
    }

    #[track_caller]
    fn check(entered: &[usize], outdated: &[usize], expected: &str) {
        let mut acknowledged = Acknowledged::default();
        acknowledged.add(model(0), 2);
        acknowledged.add(model(1), 1);
        let mut entries: Vec<_> =
            entered.iter().map(|number| entry("set", *number, AuditOutcome::Done)).collect();
        // Neither is an effect of the commands.
        entries.push(entry("other", 0, AuditOutcome::Done));
        entries.push(entry("set", 0, AuditOutcome::Refused(ErrorCode::NotFound)));
        let outdated = outdated.iter().map(|number| model(*number)).collect();
        assert_eq!(acknowledged.compare("set", &entries, &outdated).to_string(), expected);
    }

    #[test]
    fn each_acknowledged_command_has_one_effect_or_is_counted() {
        check(&[0, 1, 0], &[], "lost 0, doubled 0");
        check(&[0, 1], &[], "lost 1, doubled 0");
        check(&[0, 0, 0, 1], &[], "lost 0, doubled 1");
        // One model's surplus makes up for no other model's loss.
        check(&[0, 0, 0], &[], "lost 1, doubled 1");
        check(&[], &[], "lost 3, doubled 0");
    }

    #[test]
    fn a_model_that_shows_an_older_value_has_lost_a_command() {
        check(&[0, 0, 1], &[1], "lost 1, doubled 0");
        check(&[0, 1], &[0], "lost 1, doubled 0");
    }
}
