//! Benchmark of the log in etcd: bytes a second and the times of appends, beside a bare loop of transactions on the same
//! three servers, and with trimming, compaction and defragmentation under that load.
//!
//! `make bench log` runs it. The servers, their disk and the writer share this machine.
#![expect(clippy::print_stdout, reason = "the table is its output")]

mod phases;

use std::time::Duration;

use anyhow::Context as _;
use etcd_client::{Client, MaintenanceClient};
use periapt_host_api::{Revision, StoreId};
use periapt_log::{Announcement, Log};
use periapt_log_etcd::{EtcdLog, EtcdOptions, EtcdTuning, testing::TestEtcd};
use uuid::Uuid;

use phases::{Appends, Figures, bare};

/// The duration of a phase.
const PHASE: Duration = Duration::from_secs(6);

/// The sizes of entries in bytes: those that batches under load have.
const SIZES: [usize; 2] = [50_000, 200_000];

/// The appends between two trims, and the entries that stay.
const TRIM_EVERY: u64 = 100;
const KEPT: u64 = 200;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    println!("| entry | load | appends/s | MB/s | p50 ms | p99 ms | longest ms | etcd's database MB |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for size in SIZES {
        measure(size).await?;
    }
    Ok(())
}

async fn measure(size: usize) -> anyhow::Result<()> {
    let etcd = TestEtcd::start_in(tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?, 3, &[]);
    let options = EtcdOptions { url: etcd.url(), tls: None, fresh_id: StoreId(Uuid::from_u128(1)) };
    let log = opened(&options).await?;
    let mut servers = Vec::new();
    for endpoint in &options.url.endpoints {
        servers.push(Client::connect([endpoint], None).await?.maintenance_client());
    }
    let first = options.url.endpoints.first().context("there are endpoints")?;
    let mut client = Client::connect([first], None).await?;

    let figures = bare(&mut client, size, PHASE).await?;
    print(size, "bare loop", figures, &mut servers).await?;

    let leadership = log.acquire(Announcement::default()).await?;
    let mut appends = Appends::new(&log, leadership.term(), size);
    let figures = appends.run(PHASE, async |_| Ok(())).await?;
    print(size, "log", figures, &mut servers).await?;

    // The trimming runs beside the appends, as the writer does it.
    let trim = async |end: u64| {
        if end.is_multiple_of(TRIM_EVERY) {
            log.trim(leadership.term(), Revision(end.saturating_sub(KEPT))).await?;
        }
        Ok(())
    };
    let figures = appends.run(PHASE, &trim).await?;
    print(size, "log, trimmed and compacted", figures, &mut servers).await?;

    let all = servers.clone();
    let defragment = async {
        for mut server in all {
            server.defragment().await?;
        }
        anyhow::Ok(())
    };
    let (figures, defragmented) = tokio::join!(appends.run(PHASE, &trim), defragment);
    defragmented?;
    print(size, "log, trimmed, and each server defragmented", figures?, &mut servers).await
}

async fn opened(options: &EtcdOptions) -> anyhow::Result<EtcdLog> {
    let tuning = || EtcdTuning { timeout: Duration::from_secs(20), ..EtcdTuning::default() };
    let mut attempts = 0;
    loop {
        match EtcdLog::open_tuned(options, tuning()).await {
            Ok(log) => return Ok(log),
            Err(error) if attempts == 100 => return Err(error.into()),
            Err(_) => attempts += 1,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn print(
    size: usize,
    load: &str,
    figures: Figures,
    servers: &mut [MaintenanceClient],
) -> anyhow::Result<()> {
    let mut largest = 0;
    for server in servers {
        largest = largest.max(server.status().await?.db_size());
    }
    let Figures { rate, p50, p99, longest } = figures;
    println!(
        "| {} KB | {load} | {rate:.0} | {:.1} | {p50:.1} | {p99:.1} | {longest:.1} | {} |",
        size / 1000,
        rate * size as f64 / 1e6,
        largest / 1_000_000
    );
    Ok(())
}
