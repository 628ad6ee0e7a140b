//! The controller and model that environment variables select.

use std::{env, ffi::OsString};

use super::ModelRef;
use crate::{
    data::ControllerName,
    error::{Explain as _, Result},
};

/// The variable that names the controller, where no option does.
const CONTROLLER_VARIABLE: &str = "PERIAPT_CONTROLLER";

/// The variable that names the model, where no option does.
const MODEL_VARIABLE: &str = "PERIAPT_MODEL";

/// The selection by environment variables, for commands without an option. An empty variable counts as not set. An
/// invalid value is an error only for commands that use it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    controller: Option<String>,
    model: Option<String>,
}

impl Environment {
    /// Reads the environment of this process.
    pub(crate) fn of_process() -> Self {
        Self::read(|name| env::var_os(name))
    }

    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name| {
            variable(name).map(|text| text.to_string_lossy().into_owned()).filter(|text| !text.is_empty())
        };
        Self { controller: set(CONTROLLER_VARIABLE), model: set(MODEL_VARIABLE) }
    }

    /// Returns the kind, the variable and the value that override the selection of all commands.
    pub(crate) fn overriding(&self) -> Option<(&'static str, &'static str, &str)> {
        let controller = self.controller.as_deref().map(|name| ("controller", CONTROLLER_VARIABLE, name));
        controller.or_else(|| self.model.as_deref().map(|name| ("model", MODEL_VARIABLE, name)))
    }

    /// Returns the named controller.
    pub(crate) fn controller(&self) -> Result<Option<ControllerName>> {
        let parsed = self.controller.as_ref().map(|text| text.parse::<ControllerName>()).transpose();
        parsed.explain(|| CONTROLLER_VARIABLE.to_owned())
    }

    /// Returns the named model.
    pub(crate) fn model(&self) -> Result<Option<ModelRef>> {
        let parsed = self.model.as_ref().map(|text| text.parse::<ModelRef>()).transpose();
        parsed.explain(|| MODEL_VARIABLE.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(controller: &str, model: &str) -> Environment {
        let (controller, model) = (controller.to_owned(), model.to_owned());
        Environment::read(move |name| match name {
            CONTROLLER_VARIABLE => Some(controller.clone().into()),
            MODEL_VARIABLE => Some(model.clone().into()),
            _ => None,
        })
    }

    #[test]
    fn what_is_empty_is_not_set_and_what_is_wrong_is_told_where_it_counts() {
        let nothing = environment("", "");
        assert_eq!((nothing.controller().unwrap(), nothing.model().unwrap()), (None, None));
        let both = environment("staging", "local:blog");
        assert_eq!(both.controller().unwrap().unwrap().as_str(), "staging");
        assert_eq!(both.model().unwrap(), Some("local:blog".parse().unwrap()));
        let wrong = environment("a b", "::");
        assert!(wrong.controller().unwrap_err().to_string().starts_with("PERIAPT_CONTROLLER: "));
        assert!(wrong.model().unwrap_err().to_string().starts_with("PERIAPT_MODEL: "));
    }
}
