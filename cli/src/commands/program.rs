//! This program itself.

pub(crate) mod completion;
pub(crate) mod documentation;
pub(crate) mod version;
