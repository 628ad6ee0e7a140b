//! The current model of a controller, with its owner: other users may have models of the same name.

use std::{fmt, str::FromStr};

use periapt_host_api::{ModelName, NameError, UserName, api::ModelSelector, command::ModelSummary};
use serde::{Deserialize, Serialize};

/// A selected model. Its form in the client's file is `USER/NAME`, or `NAME` in entries of earlier versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct CurrentModel {
    owner: Option<UserName>,
    name: ModelName,
}

impl CurrentModel {
    /// Selects a model by its owner and name.
    pub(crate) fn new(owner: UserName, name: ModelName) -> Self {
        Self { owner: Some(owner), name }
    }

    /// Returns the model as requests name it.
    pub(crate) fn selector(&self) -> ModelSelector {
        match &self.owner {
            Some(owner) => ModelSelector::Owned(owner.clone(), self.name.clone()),
            None => ModelSelector::Name(self.name.clone()),
        }
    }

    /// Returns `USER/NAME`. `user` is the logged-in user, who owns a model without a noted owner.
    pub(crate) fn qualified(&self, user: &UserName) -> String {
        format!("{}/{}", self.owner.as_ref().unwrap_or(user), self.name)
    }

    /// Returns the model as Juju shows it to a user: `NAME` if the user owns it, else `USER/NAME`.
    pub(crate) fn shown_to(&self, user: &UserName) -> String {
        match &self.owner {
            Some(owner) if owner != user => format!("{owner}/{}", self.name),
            _ => self.name.to_string(),
        }
    }

    /// Returns true if this is the model of a summary that `user` was shown.
    pub(crate) fn is(&self, model: &ModelSummary, user: &UserName) -> bool {
        self.name == model.name && *self.owner.as_ref().unwrap_or(user) == model.owner
    }
}

impl From<&ModelSummary> for CurrentModel {
    fn from(model: &ModelSummary) -> Self {
        Self::new(model.owner.clone(), model.name.clone())
    }
}

impl FromStr for CurrentModel {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Ok(match text.split_once('/') {
            Some((owner, name)) => Self::new(UserName::new(owner)?, ModelName::new(name)?),
            None => Self { owner: None, name: ModelName::new(text)? },
        })
    }
}

impl TryFrom<String> for CurrentModel {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<CurrentModel> for String {
    fn from(model: CurrentModel) -> Self {
        model.to_string()
    }
}

impl fmt::Display for CurrentModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.selector().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_keeps_its_owner_and_one_of_an_earlier_version_is_its_users_own() {
        let (jane, joe) = ("jane".parse().unwrap(), "joe".parse().unwrap());
        let check = |text: &str, selector: &str, of_jane: &str, of_joe: &str| {
            let model: CurrentModel = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(&model).unwrap(), text);
            assert_eq!(model.selector(), selector.parse().unwrap());
            assert_eq!((model.shown_to(&jane).as_str(), model.shown_to(&joe).as_str()), (of_jane, of_joe));
        };
        check("jane/blog", "jane/blog", "blog", "jane/blog");
        check("blog", "blog", "blog", "blog");
        assert_eq!("blog".parse::<CurrentModel>().unwrap().qualified(&joe), "joe/blog");
        assert_eq!("jane/blog".parse::<CurrentModel>().unwrap().qualified(&joe), "jane/blog");
        for wrong in ["", "a/b/c", "/blog", "jane/"] {
            assert!(wrong.parse::<CurrentModel>().is_err(), "{wrong}");
        }
    }
}
