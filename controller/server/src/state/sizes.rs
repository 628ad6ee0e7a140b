//! Sizes on the disk, which the metrics tell.

use std::{sync::Arc, time::Duration};

use periapt_blobs::Blobs;
use tokio::{sync::Mutex, time::Instant};

use super::{Charms, Durable, Resources};
use crate::metrics::metrics;

/// Sizes are read from the disk at most once in this time, however many scrapers ask.
const MEASURED_EACH: Duration = Duration::from_secs(5);

/// The sizes of the store and of the blobs, and the time of their last measurement. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Sizes {
    durable: Durable,
    charms: Charms,
    resources: Resources,
    measured: Arc<Mutex<Option<Instant>>>,
}

impl Sizes {
    pub(crate) fn new(durable: Durable, charms: Charms, resources: Resources) -> Self {
        Self { durable, charms, resources, measured: Arc::default() }
    }

    /// Measures the sizes, unless that was done a moment ago.
    pub(crate) async fn measure(&self) {
        let mut measured = self.measured.lock().await;
        if measured.is_some_and(|measured| measured.elapsed() < MEASURED_EACH) {
            return;
        }
        self.measure_store().await;
        measure_blobs("charm", &self.charms.contents.blobs).await;
        measure_blobs("resource", &self.resources.contents.blobs).await;
        *measured = Some(Instant::now());
    }

    async fn measure_store(&self) {
        // While the store is opened again the last size stays.
        let Ok(store) = self.durable.records() else { return };
        match store.size().await {
            Ok(bytes) => metrics().store_bytes.set(&[], bytes),
            Err(error) => tracing::warn!(%error, "the store's size cannot be read"),
        }
    }
}

async fn measure_blobs(kind: &'static str, blobs: &Blobs) {
    match blobs.usage().await {
        Ok(usage) => {
            metrics().blobs.set(&[kind], usage.count);
            metrics().blob_bytes.set(&[kind], usage.bytes);
        }
        Err(error) => tracing::warn!(%error, kind, "the size of the blobs cannot be read"),
    }
}
