//! The application's configuration, constant within one hook (`docs/hook-model.md` 5.2).

use periapt_host_api::settings::OptionValue;

use crate::context::{HookContext, HookRun};

/// The typed interface: `config`.
impl HookContext {
    /// Returns one option's value. None if it is unset without a default, or unknown.
    pub fn config_get(&mut self, key: &str) -> Option<OptionValue> {
        self.call("config.get", (key,), |run| run.config_value(key).cloned())
    }

    /// Returns all options that have a value, sorted.
    pub fn config_get_all(&mut self) -> Vec<(String, OptionValue)> {
        self.call("config.get-all", (), |run| {
            let set = run.config_options().filter_map(|(key, value)| Some((key.to_owned(), value?.clone())));
            set.collect()
        })
    }
}

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
