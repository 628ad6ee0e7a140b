//! Storage of units.

mod add;
mod attach;
mod detach;
mod list;
mod pools;
mod remove;
mod show;

use super::{Verb, verbs};

verbs! {
    /// Storage of units.
    Storage {
        list::Storage,
        pools::StoragePools,
        show::ShowStorage,
        add::AddStorage,
        attach::AttachStorage,
        detach::DetachStorage,
        remove::RemoveStorage,
    }
}
