//! The errors of stored forms.

use super::FORM;

/// The reason why bytes cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// A value cannot be encoded: a defect of the model.
    #[error("an entity cannot be encoded: {0}")]
    Encode(#[source] serde_json::Error),
    /// No version writes such a key.
    #[error("the store holds an unknown key: {0}")]
    Key(String),
    /// The value has a newer form.
    #[error("{at} is stored in form {form}, this program knows up to {FORM}: use a newer periapt")]
    NewerForm {
        /// The key of the value.
        at: String,
        /// The form of the value.
        form: u8,
    },
    /// The value cannot be decoded.
    #[error("{at} cannot be read: {source}")]
    Value {
        /// The key of the value.
        at: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The value is empty, or does not belong under its key.
    #[error("{0} does not belong where it stands")]
    Misplaced(String),
}
