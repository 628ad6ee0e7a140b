//! The memory that small uploads which unpack to much take of the controller. This is a binary of its own, because it
//! measures the memory of its whole process, in which no other test may run.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{fs, io::Write as _};

use bytes::Bytes;
use periapt_client::{Client, ClientError, Identity};
use periapt_controller::{Listen, Options, Program};
use periapt_host_api::ErrorCode;
use tokio_util::sync::CancellationToken;

#[path = "../../../../host-api/pack/archive/tests/hostile/raw.rs"]
mod raw;

use raw::Raw;

/// Returns the peak memory of this process since [`forget_peak`], in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Returns the peak memory of any ended child of this process, in bytes.
fn peak_of_children() -> u64 {
    // SAFETY: the kernel fills a structure of integers, for which zeros are valid, and keeps no pointer to it.
    #[expect(unsafe_code, reason = "no safe interface tells what ended children used")]
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), usage)
    };
    assert_eq!(result, 0);
    u64::try_from(usage.ru_maxrss).unwrap() << 10
}

fn forget_peak() {
    fs::File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
}

#[tokio::test]
async fn small_archives_that_unpack_to_much_are_refused_and_take_no_memory() {
    let directory = tempfile::tempdir().unwrap();
    let path = env!("CARGO_BIN_EXE_periapt-check-charm").into();
    let helper = Program { path, arguments: Vec::new(), environment: Vec::new() };
    let listen = Listen::InProcess("127.0.0.1:0".parse().unwrap());
    let options = Options::in_directory("home", directory.path(), listen, "wasmtime 48", helper).unwrap();
    let service = options.build().await.unwrap();
    let handle = service.handle();
    let running = tokio::spawn(service.run(CancellationToken::new()));
    let client = Client::new(periapt_client::Options::new(handle.url(), Identity::Local)).unwrap();
    client.controller().await.unwrap();
    // The archives have one file under many names, and many files of zeros.
    let zeros = vec![0; 54 << 10];
    let file = Raw::deflated("00000", &zeros);
    let named = |number: usize, shares: bool| {
        let mut entry = Raw { shares, ..file.clone() };
        entry.central.name = format!("{number:05}").into_bytes();
        entry.local.name.clone_from(&entry.central.name);
        entry
    };
    let shared: Vec<_> = (0..9_900).map(|number| named(number, number > 0)).collect();
    let many: Vec<_> = (0..9_000).map(|number| named(number, false)).collect();
    let archives = [raw::zip(&shared), raw::zip(&many)].map(Bytes::from);
    drop((shared, many));
    forget_peak();
    let before = peak();
    for _ in 0..4 {
        for archive in &archives {
            let refused = client.upload_charm(archive.clone()).await;
            assert!(
                matches!(&refused, Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::CharmRefused),
                "{refused:?}"
            );
        }
    }
    let grown = peak() - before;
    assert!(grown < 64 << 20, "eight uploads of {} bytes took {grown}", archives[0].len());
    let helpers = peak_of_children();
    assert!(helpers > 0 && helpers < 256 << 20, "a helper took {helpers} bytes");
    handle.shutdown();
    running.await.unwrap().unwrap();
}
