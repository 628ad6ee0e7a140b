//! What leaves one unit's hooks early, in one numbered sequence together with its commits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use periapt_host_api::{
    Incarnation, Timestamp, UnitName,
    agent::RunnerCommand,
    commit::{EarlyEffect, EarlyItem},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};

use super::link::Link;
use crate::{
    backoff::Backoff,
    protocol::{Call, CallOutcome, ToKeeper, early_bytes},
};

/// How long an effect waits for a commit to go with (`design.md` section 3), so that a short hook costs one
/// request.
const WAITS: Duration = Duration::from_millis(50);

/// The most bytes of items in one message, as JSON: they fit into it together with all that a commit may hold.
const BATCH: usize = 512 << 10;

/// One unit's outbox. One sender at a time, in order: the pump, or the commit that takes what waits along.
#[derive(Debug)]
pub(crate) struct Outbox {
    unit: UnitName,
    incarnation: Incarnation,
    link: Link,
    items: Mutex<Items>,
    filled: Notify,
    sending: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Items {
    next: u64,
    unsent: VecDeque<EarlyItem>,
    /// Since when the first of them waits.
    since: Option<Instant>,
}

/// Holds back all other senders of one unit.
pub(crate) struct Sender<'a> {
    outbox: &'a Outbox,
    _alone: tokio::sync::MutexGuard<'a, ()>,
}

impl Outbox {
    /// Goes on after the last number that the controller has.
    pub(crate) fn new(unit: UnitName, incarnation: Incarnation, link: Link, last_number: u64) -> Arc<Self> {
        let items = Items { next: last_number.saturating_add(1), unsent: VecDeque::new(), since: None };
        Arc::new(Self {
            unit,
            incarnation,
            link,
            items: Mutex::new(items),
            filled: Notify::new(),
            sending: tokio::sync::Mutex::new(()),
        })
    }

    /// Takes effects, in order. The keeper hears of them at once, in case this process dies.
    pub(crate) fn push(&self, effects: impl IntoIterator<Item = (Timestamp, EarlyEffect)>) {
        let mut items = self.items();
        let (mut noted, mut bytes) = (vec![Vec::new()], 0);
        for (at, effect) in effects {
            let item = EarlyItem { number: items.next, at, effect };
            items.next = items.next.saturating_add(1);
            items.unsent.push_back(item.clone());
            bytes += early_bytes(&item);
            if bytes > BATCH {
                bytes = early_bytes(&item);
                noted.push(Vec::new());
            }
            if let Some(message) = noted.last_mut() {
                message.push(item);
            }
        }
        noted.retain(|message| !message.is_empty());
        if noted.is_empty() {
            return;
        }
        items.since.get_or_insert_with(Instant::now);
        drop(items);
        for items in noted {
            self.link.mention(ToKeeper::Noted { unit: self.unit.clone(), items });
        }
        self.filled.notify_one();
    }

    /// Whether all was sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.items().unsent.is_empty() && self.sending.try_lock().is_ok()
    }

    /// Sends what no commit took along, for ever.
    pub(crate) async fn pump(self: Arc<Self>) {
        loop {
            let since = self.items().since;
            match since {
                None => self.filled.notified().await,
                Some(since) => {
                    sleep_until(since + WAITS).await;
                    // A commit may have taken them, or their like may have come since.
                    if self.items().since == Some(since) {
                        self.sender().await.send().await;
                    }
                }
            }
        }
    }

    /// Waits until nobody else sends.
    pub(crate) async fn sender(&self) -> Sender<'_> {
        Sender { outbox: self, _alone: self.sending.lock().await }
    }

    fn items(&self) -> MutexGuard<'_, Items> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest items that fit into one message, and whether more are left.
    fn batch(&self) -> (Vec<EarlyItem>, bool) {
        let mut items = self.items();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(item) = items.unsent.front() {
            bytes += early_bytes(item);
            if !batch.is_empty() && bytes > BATCH {
                break;
            }
            batch.extend(items.unsent.pop_front());
        }
        let more = !items.unsent.is_empty();
        items.since = more.then(Instant::now);
        (batch, more)
    }
}

impl Sender<'_> {
    /// Sends all that waits.
    pub(crate) async fn send(&self) {
        loop {
            let (batch, more) = self.outbox.batch();
            if !batch.is_empty() {
                self.deliver(batch).await;
            }
            if !more {
                return;
            }
        }
    }

    /// What a commit takes along: the last of it; what does not fit is sent before.
    pub(crate) async fn take(&self) -> Vec<EarlyItem> {
        loop {
            let (batch, more) = self.outbox.batch();
            if !more {
                return batch;
            }
            self.deliver(batch).await;
        }
    }

    /// The commit did not happen: what it took along waits for the next.
    pub(crate) fn put_back(&self, taken: Vec<EarlyItem>) {
        if taken.is_empty() {
            return;
        }
        let mut items = self.outbox.items();
        for item in taken.into_iter().rev() {
            items.unsent.push_front(item);
        }
        items.since.get_or_insert_with(Instant::now);
        drop(items);
        self.outbox.filled.notify_one();
    }

    /// Sends items until the controller has answered.
    async fn deliver(&self, items: Vec<EarlyItem>) {
        let Outbox { unit, incarnation, link, .. } = self.outbox;
        let command = Box::new(RunnerCommand::Early { unit: unit.clone(), incarnation: *incarnation, items });
        let mut backoff = Backoff::network();
        loop {
            match link.call(Call::Command(command.clone())).await {
                CallOutcome::Answered { .. } => return,
                CallOutcome::Refused(refusal) => {
                    tracing::warn!(%unit, %refusal, "early effects were refused, and are dropped");
                    return;
                }
                _ => sleep(backoff.failed()).await,
            }
        }
    }
}
