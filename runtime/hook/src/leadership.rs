//! Leadership and leader settings (`docs/hook-model.md` 5.6).

use periapt_host_api::relation::Settings;

use crate::{
    CallAnswer, CallError, CallTime,
    context::{HookContext, HookRun},
    effects::Target,
    lease::Interruption,
};

/// The typed interface: `leadership`.
impl HookContext {
    /// Returns true if the unit is leader, and stays so for 30 seconds from the answer.
    pub fn is_leader(&mut self, now: CallTime) -> CallAnswer<Result<bool, CallError>> {
        self.leader_call("leadership.is-leader", (), |run| run.is_leader(now))
    }

    /// Returns the leader settings.
    pub fn leader_get(&mut self) -> Settings {
        self.call("leadership.get-settings", (), |run| run.leader_settings())
    }

    /// Writes leader settings, all or nothing; leader only.
    pub fn leader_set(
        &mut self,
        now: CallTime,
        changes: &[(String, String)],
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("leadership.set-settings", (changes,), |run| {
            run.check_call(changes.iter().map(|(key, value)| key.len() + value.len()).sum())?;
            run.write_leader_settings(now, changes.iter().cloned().collect())
        })
    }
}

impl HookRun {
    /// Returns true if the unit leads its application, and stays so for 30 seconds.
    pub(crate) fn is_leader(&mut self, now: CallTime) -> Result<bool, Interruption> {
        Ok(self.leader_term(now)?.is_some())
    }

    /// Returns the leader settings, with this hook's writes.
    pub(crate) fn leader_settings(&self) -> Settings {
        self.effects.merged(Some(&self.snapshot.application().leader_settings), Target::LeaderSettings)
    }

    /// Returns one leader setting.
    pub(crate) fn leader_setting(&self, key: &str) -> Option<String> {
        let base = Some(&self.snapshot.application().leader_settings);
        self.effects.merged_value(base, Target::LeaderSettings, key)
    }

    /// Writes leader settings, all or nothing; leader only.
    pub(crate) fn write_leader_settings(
        &mut self,
        now: CallTime,
        changes: Settings,
    ) -> Result<(), Interruption> {
        let Some(term) = self.leader_term(now)? else {
            let text = "cannot write leadership settings: cannot write settings: not the leader";
            return Err(CallError::NotLeader(text.to_owned()).into());
        };
        let stored = Some(&self.snapshot.application().leader_settings);
        self.effects.write(Target::LeaderSettings, stored, changes, &self.limits)?;
        self.effects.rest_on(term);
        Ok(())
    }
}
