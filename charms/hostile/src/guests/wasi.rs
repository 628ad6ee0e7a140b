//! Guests that attack WASI's functions: files, handles, random numbers.

use periapt_sdk::{Context, Error, Result, Unit};
use std::fs::File;
use std::io::Write;

/// Writes to `/tmp` until the host refuses, which must be long before a gigabyte.
pub(crate) fn tmp_flood(_: &Unit) -> Result {
    let block = vec![0x5a_u8; 1 << 20];
    let mut file = File::create("/tmp/flood").context("creating /tmp/flood")?;
    for _ in 0..1024 {
        if file.write_all(&block).is_err() {
            return Ok(());
        }
    }
    Err(Error::new("escaped: wrote a gigabyte to /tmp"))
}

/// Creates many empty files, which cost the host memory.
pub(crate) fn tmp_files(_: &Unit) -> Result {
    File::create("/tmp/first").context("creating /tmp/first")?;
    for number in 0..100_000 {
        if File::create(format!("/tmp/{number}")).is_err() {
            return Ok(());
        }
    }
    Err(Error::new("escaped: made 100000 files in /tmp"))
}

/// Keeps a timer per turn. The bound of handles must end the hook.
#[cfg(target_arch = "wasm32")]
pub(crate) fn handles(_: &Unit) -> Result {
    for _ in 0..10_000_000 {
        std::mem::forget(wasip2::clocks::monotonic_clock::subscribe_duration(u64::MAX));
    }
    Err(Error::new("escaped: holds ten million handles"))
}

/// Requests more random bytes at once than the host should ever make.
#[cfg(target_arch = "wasm32")]
pub(crate) fn random_flood(_: &Unit) -> Result {
    let bytes = wasip2::random::random::get_random_bytes(1 << 40);
    Err(Error::new(format!("escaped: got {} random bytes", bytes.len())))
}

/// Returns at once: native code has no WASI handles.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn handles(_: &Unit) -> Result {
    Ok(())
}

/// Returns at once: native code has no WASI host.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn random_flood(_: &Unit) -> Result {
    Ok(())
}

/// Looks for the host's files, by absolute and relative paths, and for the host's environment.
pub(crate) fn wander(_: &Unit) -> Result {
    for path in [
        "/etc/passwd",
        "/proc/self/environ",
        "etc/passwd",
        "../../../../etc/passwd",
        "/tmp/../etc/passwd",
        "/charm/../etc/passwd",
        "/charm/../../../../../../../../etc/passwd",
    ] {
        if std::fs::read(path).is_ok() {
            return Err(Error::new(format!("escaped: read {path}")));
        }
    }
    let linked = std::fs::hard_link("/etc/passwd", "/tmp/passwd").is_ok();
    if linked || std::fs::write("/charm/charmcraft.yaml", "name: other\n").is_ok() {
        return Err(Error::new("escaped: wrote outside /tmp"));
    }
    for variable in ["HOME", "USER", "SHELL", "PERIAPT_DATA"] {
        if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            return Err(Error::new(format!("escaped: the host's {variable} is set")));
        }
    }
    Ok(())
}
