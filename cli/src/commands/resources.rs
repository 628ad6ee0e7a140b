//! Resources of applications.

mod attach;
mod list;

use super::{Verb, verbs};

verbs! {
    /// Resources of applications.
    Resources {
        attach::AttachResource,
        list::Resources,
    }
}
