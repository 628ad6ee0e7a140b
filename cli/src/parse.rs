//! What several verbs read from a command line.

pub(crate) mod base;
pub(crate) mod bindings;
pub(crate) mod cloud;
pub(crate) mod constraints;
pub(crate) mod credential;
pub(crate) mod duration;
pub(crate) mod offer;
pub(crate) mod placement;
pub(crate) mod removal;
pub(crate) mod settings;
pub(crate) mod storage;

use periapt_host_api::{NameError, offer::OfferUrlError, storage::DirectiveError};

use crate::data::ControllerNameError;

/// A word of a command line that is not what it should be: what is wrong with it, or what would be right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    /// It has another form.
    #[error("{0}")]
    Form(String),
    /// A name in it cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A controller's name in it cannot be one.
    #[error(transparent)]
    Controller(#[from] ControllerNameError),
    /// An offer's URL in it cannot be one.
    #[error(transparent)]
    Offer(#[from] OfferUrlError),
    /// What it asks of storage cannot be.
    #[error(transparent)]
    Directive(#[from] DirectiveError),
}

impl ParseError {
    /// It has another form.
    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self::Form(text.into())
    }
}
