//! The part of an agent that lives on when its keeper dies: pods, and the sockets on which it listens (decision 97).

use std::{io, path::Path, sync::Arc, time::Duration};

use periapt_helper::Program;
use tokio::task::spawn_blocking;

use super::{
    held::{HeldItem, HeldListeners, HolderLink, PodHolder, find_holder, open_holder},
    pods::HeldPods,
};

/// The time for the holder to end by order.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// The time for pods whose holder cannot be understood to end by themselves: their services get 30 s.
const STRANGERS_END_WITHIN: Duration = Duration::from_secs(45);

/// The pods and listeners that outlive the death of a keeper. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holding {
    /// The way to the holder.
    pub(crate) holder: PodHolder,
    /// The pods of an earlier keeper.
    pub(crate) pods: Arc<HeldPods>,
    /// The sockets on which an earlier keeper listened for units.
    pub(crate) listeners: Arc<HeldListeners>,
}

impl Holding {
    /// Takes what the holder of this agent's directory has. Without a holder, one is started that waits for keepers for
    /// `time`. An agent that can have none has pods that end with it.
    pub(crate) async fn open(root: &Path, program: Program, time: Duration) -> Self {
        let at = root.to_owned();
        let opened = spawn_blocking(move || open_holder(&at, &program, time)).await;
        match opened.map_err(io::Error::other).flatten() {
            Ok(link) => Self::new(link, &root.join("pods")),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::error!(%error, "the holder of pods cannot be understood and was killed: its pods end");
                tokio::time::sleep(STRANGERS_END_WITHIN).await;
                Self::default()
            }
            Err(error) => {
                tracing::error!(%error, "nothing holds pods while no agent runs: they end with this agent");
                Self::default()
            }
        }
    }

    /// Takes what the holder of this agent's directory has, if there is one.
    pub(crate) async fn found(root: &Path) -> io::Result<Option<Self>> {
        let at = root.to_owned();
        let found = spawn_blocking(move || find_holder(&at)).await.map_err(io::Error::other)??;
        Ok(found.map(|link| Self::new(link, &root.join("pods"))))
    }

    fn new((link, items): (HolderLink, Vec<HeldItem>), files: &Path) -> Self {
        let holder = match PodHolder::new(link) {
            Ok(holder) => holder,
            Err(error) => {
                tracing::error!(%error, "the holder of pods cannot be watched");
                PodHolder::default()
            }
        };
        let (listeners, pods) = items.into_iter().partition(HeldListeners::is_listener);
        Self {
            pods: Arc::new(HeldPods::new(&holder, pods, files)),
            listeners: Arc::new(HeldListeners::new(holder.clone(), listeners)),
            holder,
        }
    }

    /// Ends what an earlier keeper left and this one has not taken.
    pub(crate) async fn end_unclaimed(&self) {
        self.listeners.forget();
        self.pods.end_all().await;
    }

    /// Ends all that is held, and the holder; a keeper that leaves pods to the next one ends nothing.
    pub(crate) async fn end(&self) {
        if self.holder.has_left() {
            return;
        }
        self.end_unclaimed().await;
        self.holder.end(ENDS_WITHIN).await;
    }
}
