//! The options that all removals share.

use std::time::Duration;

use clap::Args;
use periapt_host_api::{
    command::Force,
    storage::{StorageEnd, UnitStorage},
};

use crate::{context::Context, error::Result, output::Sink, parse::duration};

/// The options of forced removals.
#[derive(Debug, Clone, Args)]
pub(crate) struct ForceArgs {
    /// Remove it without its agent, if that takes too long
    #[arg(long)]
    force: bool,
    /// With --force: the longest wait before that
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "force")]
    max_wait: Option<Duration>,
    /// With --force: do not wait at all
    #[arg(long, requires = "force", conflicts_with = "max_wait")]
    no_wait: bool,
}

impl ForceArgs {
    /// Returns the force for the controller.
    pub(crate) fn force(&self) -> Option<Force> {
        self.within(None)
    }

    /// Returns the force, with another option's time for each step as the default.
    pub(crate) fn within(&self, step: Option<Duration>) -> Option<Force> {
        self.force.then(|| match self.max_wait.or(step) {
            _ if self.no_wait => Force { max_wait: 0 },
            Some(wait) => wait_of(wait),
            None => Force::default(),
        })
    }
}

/// Returns force after a wait.
pub(crate) fn wait_of(wait: Duration) -> Force {
    Force { max_wait: u32::try_from(wait.as_secs()).unwrap_or(u32::MAX) }
}

/// The longest wait for models to be gone.
#[derive(Debug, Clone, Args)]
pub(crate) struct GiveUpArg {
    /// The longest wait for the end; the removal then goes on without the command
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    pub(crate) give_up_after: Duration,
}

/// The option that removes nothing.
#[derive(Debug, Clone, Args)]
pub(crate) struct DryRunArg {
    /// Only print what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl DryRunArg {
    /// Prints the plan on standard output, one thing on each line, in Juju's words.
    pub(crate) fn print_plan<'a>(
        context: &Context,
        kind: &str,
        removed: impl IntoIterator<Item = (&'a str, Vec<String>)>,
    ) -> Result<()> {
        let mut text = String::new();
        for (name, below) in removed {
            text.push_str(&format!("will remove {kind} {name}\n"));
            text.extend(below.iter().map(|it| format!("- will remove {it}\n")));
        }
        Sink::new(None, context.color)?.write(&text)
    }
}

/// The treatment of the storage of destroyed models.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorageEndArgs {
    /// Destroy all storage with its content
    #[arg(long, conflicts_with = "release_storage")]
    destroy_storage: bool,
    /// Release all storage, and leave its files in place
    #[arg(long)]
    release_storage: bool,
}

impl StorageEndArgs {
    /// Returns the treatment for the controller; none without an option.
    pub(crate) fn end(&self) -> Option<StorageEnd> {
        match (self.destroy_storage, self.release_storage) {
            (true, _) => Some(StorageEnd::Destroy),
            (false, true) => Some(StorageEnd::Release),
            (false, false) => None,
        }
    }
}

/// The treatment of the storage of removed units.
#[derive(Debug, Clone, Args)]
pub(crate) struct DestroyStorageArg {
    /// Destroy their storage with its content; by default it stays, detached
    #[arg(long)]
    destroy_storage: bool,
}

impl DestroyStorageArg {
    /// Returns the treatment for the controller.
    pub(crate) fn storage(&self) -> UnitStorage {
        match self.destroy_storage {
            true => UnitStorage::Destroy,
            false => UnitStorage::Detach,
        }
    }
}
