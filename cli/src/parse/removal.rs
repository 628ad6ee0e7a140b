//! What all removals have in common.

use std::time::Duration;

use clap::Args;
use periapt_host_api::{
    command::Force,
    storage::{StorageEnd, UnitStorage},
};

use crate::{context::Context, error::Result, output::Sink, parse::duration};

/// Whether to wait for ever.
#[derive(Debug, Clone, Args)]
pub(crate) struct ForceArgs {
    /// Remove it without its agent, if that takes too long
    #[arg(long)]
    force: bool,
    /// With --force: how long that is
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "force")]
    max_wait: Option<Duration>,
    /// With --force: do not wait at all
    #[arg(long, requires = "force", conflicts_with = "max_wait")]
    no_wait: bool,
}

impl ForceArgs {
    /// As the controller is told.
    pub(crate) fn force(&self) -> Option<Force> {
        self.within(None)
    }

    /// The same with a time for each step that another option says, where these say none.
    pub(crate) fn within(&self, step: Option<Duration>) -> Option<Force> {
        self.force.then(|| match self.max_wait.or(step) {
            _ if self.no_wait => Force { max_wait: 0 },
            Some(wait) => wait_of(wait),
            None => Force::default(),
        })
    }
}

/// Force after a time.
pub(crate) fn wait_of(wait: Duration) -> Force {
    Force { max_wait: u32::try_from(wait.as_secs()).unwrap_or(u32::MAX) }
}

/// How long a command waits for models to be gone.
#[derive(Debug, Clone, Args)]
pub(crate) struct GiveUpArg {
    /// How long to wait for the end; after that it goes on without the command
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    pub(crate) give_up_after: Duration,
}

/// Whether to remove anything.
#[derive(Debug, Clone, Args)]
pub(crate) struct DryRunArg {
    /// Only tell what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl DryRunArg {
    /// Tells it on standard output, a line for each; as Juju words it.
    pub(crate) fn tell<'a>(
        context: &Context,
        kind: &str,
        doomed: impl IntoIterator<Item = (&'a str, Vec<String>)>,
    ) -> Result<()> {
        let mut text = String::new();
        for (name, below) in doomed {
            text.push_str(&format!("will remove {kind} {name}\n"));
            text.extend(below.iter().map(|it| format!("- will remove {it}\n")));
        }
        Sink::new(None, context.color)?.write(&text)
    }
}

/// What becomes of storage of models that go.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorageEndArgs {
    /// Destroy all storage, with all that lies in it
    #[arg(long, conflicts_with = "release_storage")]
    destroy_storage: bool,
    /// Forget all storage, and leave its files where they are
    #[arg(long)]
    release_storage: bool,
}

impl StorageEndArgs {
    /// As the controller is told; none: nothing was said.
    pub(crate) fn end(&self) -> Option<StorageEnd> {
        match (self.destroy_storage, self.release_storage) {
            (true, _) => Some(StorageEnd::Destroy),
            (false, true) => Some(StorageEnd::Release),
            (false, false) => None,
        }
    }
}

/// What becomes of the storage of units that go.
#[derive(Debug, Clone, Args)]
pub(crate) struct DestroyStorageArg {
    /// Destroy their storage, too, with all that lies in it; else it stays, detached
    #[arg(long)]
    destroy_storage: bool,
}

impl DestroyStorageArg {
    /// As the controller is told.
    pub(crate) fn storage(&self) -> UnitStorage {
        match self.destroy_storage {
            true => UnitStorage::Destroy,
            false => UnitStorage::Detach,
        }
    }
}
