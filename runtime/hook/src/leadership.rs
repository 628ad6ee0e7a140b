//! Leadership and leader settings (`docs/hook-model.md` 5.6).

use periapt_host_api::relation::Settings;

use crate::{CallError, CallTime, effects::Target, lease::Interruption, run::HookRun};

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
