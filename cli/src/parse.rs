//! Parsers of command-line words that several verbs share.

pub(crate) mod base;
pub(crate) mod bindings;
pub(crate) mod cloud;
pub(crate) mod constraints;
pub(crate) mod container;
pub(crate) mod credential;
pub(crate) mod duration;
pub(crate) mod offer;
pub(crate) mod placement;
pub(crate) mod registration;
pub(crate) mod removal;
pub(crate) mod settings;
pub(crate) mod storage;

use periapt_host_api::{NameError, offer::OfferUrlError, storage::DirectiveError};

use crate::data::ControllerNameError;

/// An invalid word of a command line: the mistake, or the valid form.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParseError {
    /// The word has another form.
    #[error("{0}")]
    Form(String),
    /// A name in it is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A controller's name in it is invalid.
    #[error(transparent)]
    Controller(#[from] ControllerNameError),
    /// An offer's URL in it is invalid.
    #[error(transparent)]
    Offer(#[from] OfferUrlError),
    /// A storage directive in it is invalid.
    #[error(transparent)]
    Directive(#[from] DirectiveError),
}

impl ParseError {
    /// Creates an error about a word's form.
    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self::Form(text.into())
    }
}
