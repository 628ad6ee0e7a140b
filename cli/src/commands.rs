//! The verbs of the command line: one file each in the folder of their group, or one for a few related ones. A verb
//! parses, calls, and prints. Code that several verbs need is in [`crate::parse`], [`crate::print`], [`crate::upload`]
//! and [`crate::follow`]: no verb uses another, and no group another group.

mod actions;
mod applications;
mod charms;
mod compat;
mod controllers;
mod images;
mod machines;
mod models;
mod observe;
mod offers;
mod program;
mod resources;
mod secrets;
mod storage;
mod users;

use std::process::ExitCode;

use periapt_helper::MissingFence;

use crate::{context::Context, error::Result, logging::Service};

/// One verb of the command line. `clap` derives its arguments and its help, where it is declared.
pub(crate) trait Verb {
    /// Runs the verb.
    async fn run(self, context: &Context) -> Result<()>;

    /// Returns the runtime that it needs.
    fn runtime(&self) -> Runtime<'_> {
        Runtime::OneThread
    }
}

/// The runtime that a verb's tasks run on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Runtime<'a> {
    /// A thread of its own, for verbs that send requests and wait.
    OneThread,
    /// Another thread for connections, which go on while the verb waits for the reader of its output.
    TwoThreads,
    /// All cores, for a service.
    AllCores(Service),
    /// All cores, for a service that raises the system's fence around its first thread, before it starts others.
    Fenced(Service, &'a dyn Fenced),
    /// A runtime that this function creates, in a process that an agent or a controller has started with this argument.
    Own(fn(&str) -> ExitCode, &'a str),
}

/// A service behind the system's fence.
pub(crate) trait Fenced: std::fmt::Debug {
    /// Raises the fence around this thread and those that it starts, and returns the parts that this host lacks.
    fn raise_fence(&self) -> Result<Vec<MissingFence>>;
}

/// Declares verbs as an enum that `clap` parses and that runs the parsed one. The help keeps the order.
macro_rules! verbs {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $module:ident::$verb:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $name {
            $($(#[$attribute])* $verb($module::$verb)),+
        }

        impl Verb for $name {
            async fn run(self, context: &crate::context::Context) -> crate::error::Result<()> {
                match self {
                    $(Self::$verb(verb) => verb.run(context).await),+
                }
            }

            fn runtime(&self) -> $crate::commands::Runtime<'_> {
                match self {
                    $(Self::$verb(verb) => verb.runtime()),+
                }
            }
        }
    };
}
use verbs;

verbs! {
    /// All verbs, group by group.
    Command {
        #[command(flatten)]
        controllers::Controllers,
        #[command(flatten)]
        models::Models,
        #[command(flatten)]
        users::Users,
        #[command(flatten)]
        applications::Applications,
        #[command(flatten)]
        offers::Offers,
        #[command(flatten)]
        machines::Machines,
        #[command(flatten)]
        storage::Storage,
        #[command(flatten)]
        resources::Resources,
        #[command(flatten)]
        actions::Actions,
        #[command(flatten)]
        secrets::Secrets,
        #[command(flatten)]
        observe::Observe,
        #[command(flatten)]
        compat::Compat,
        #[command(flatten)]
        charms::Charms,
        #[command(flatten)]
        images::Images,
        #[command(flatten)]
        program::Program,
    }
}
