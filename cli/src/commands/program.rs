//! This program itself.

mod completion;
mod documentation;
mod version;

use super::{Verb, verbs};

verbs! {
    /// This program itself.
    Program {
        documentation::Documentation,
        completion::Completion,
        version::Version,
    }
}
