//! Charms on their author's machine.

mod help;
mod init;
mod pack;
mod source;
mod try_hook;

use super::{Verb, verbs};

verbs! {
    /// Charms on their author's machine.
    Charms {
        init::Init,
        pack::Pack,
        try_hook::TryHook,
        help::HelpHookCommands,
        help::HelpActionCommands,
    }
}
