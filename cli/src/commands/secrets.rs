//! Secrets of users, and of charms.

mod add;
mod content;
mod grant;
mod list;
mod remove;
mod show;
mod shown;
mod update;

use super::{Verb, verbs};

verbs! {
    /// Secrets of users, and of charms.
    Secrets {
        add::AddSecret,
        update::UpdateSecret,
        grant::GrantSecret,
        grant::RevokeSecret,
        remove::RemoveSecret,
        list::Secrets,
        show::ShowSecret,
    }
}
