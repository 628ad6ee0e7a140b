//! The application's settings; constant within one hook (`hook-model.md` 5.2).

use periapt_host_api::settings::OptionValue;

use crate::run::HookRun;

impl HookRun {
    /// One option; none if it is unset and has no default, or is unknown (O02).
    pub(crate) fn config_value(&self, key: &str) -> Option<&OptionValue> {
        self.snapshot.meta().admitted(&self.snapshot.application().config, key)
    }

    /// All options of the charm, sorted, with their values.
    pub(crate) fn config_options(&self) -> impl Iterator<Item = (&str, Option<&OptionValue>)> {
        self.snapshot.meta().options.keys().map(|key| (key.as_str(), self.config_value(key)))
    }
}
