//! Uploads that are small and unpack to much: what they take of the controller.

use std::{fs, io::Write as _};

use bytes::Bytes;
use periapt_client::ClientError;
use periapt_host_api::ErrorCode;

use crate::fixture::Fixture;

#[path = "../../../../host-api/archive/tests/hostile/raw.rs"]
mod raw;

use raw::Raw;

/// The most memory that this process has had since [`forget_peak`], in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn forget_peak() {
    fs::File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
}

#[tokio::test]
async fn small_archives_that_unpack_to_much_are_refused_and_take_no_memory() {
    let fixture = Fixture::start().await;
    // One file under many names, and many files of zeros.
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
            let refused = fixture.client.upload_charm(archive.clone()).await;
            assert!(
                matches!(&refused, Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::CharmRefused),
                "{refused:?}"
            );
        }
    }
    let grown = peak() - before;
    assert!(grown < 64 << 20, "eight uploads of {} bytes took {grown}", archives[0].len());
}
