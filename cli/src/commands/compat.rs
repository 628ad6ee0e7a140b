//! Verbs that Juju's clients need: clouds, credentials and SSH keys, which are kept and have no effect.

mod clouds;
mod credentials;
mod place;
mod ssh_keys;

use super::{Verb, verbs};

verbs! {
    /// Clouds, credentials and SSH keys, which are kept for Juju's clients and have no effect.
    Compat {
        clouds::Clouds,
        clouds::ShowCloud,
        clouds::AddCloud,
        clouds::UpdateCloud,
        clouds::RemoveCloud,
        credentials::Credentials,
        credentials::ShowCredential,
        credentials::AddCredential,
        credentials::RemoveCredential,
        ssh_keys::SshKeys,
        ssh_keys::AddSshKey,
        ssh_keys::RemoveSshKey,
    }
}
