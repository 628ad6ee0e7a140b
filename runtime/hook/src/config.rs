//! The application's configuration, constant within one hook (`docs/hook-model.md` 5.2).

use periapt_host_api::settings::OptionValue;

use crate::run::HookRun;

impl HookRun {
    /// Returns one option's value. None if it is unset without a default, or unknown (O02).
    pub(crate) fn config_value(&self, key: &str) -> Option<&OptionValue> {
        self.snapshot.meta().admitted(&self.snapshot.application().config, key)
    }

    /// Iterates over all options of the charm with their values, sorted by name.
    pub(crate) fn config_options(&self) -> impl Iterator<Item = (&str, Option<&OptionValue>)> {
        self.snapshot.meta().options.keys().map(|key| (key.as_str(), self.config_value(key)))
    }
}
