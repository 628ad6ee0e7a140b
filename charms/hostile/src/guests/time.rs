//! Guests that never come back.

use periapt_sdk::{Error, Result, Unit};
use std::io::Read;
use std::time::Duration;

/// Must end at the CPU budget.
pub(crate) fn endless_loop(_: &Unit) -> Result {
    loop {
        std::hint::spin_loop();
    }
}

/// Uses no CPU, so it must end at the wall-clock limit.
pub(crate) fn sleep(_: &Unit) -> Result {
    std::thread::sleep(Duration::from_secs(3600));
    Err(Error::new("escaped: slept for an hour"))
}

/// Standard input must be at its end, not wait for somebody to type.
pub(crate) fn block_read(_: &Unit) -> Result {
    let mut bytes = Vec::new();
    match std::io::stdin().read_to_end(&mut bytes) {
        Ok(0) | Err(_) => Ok(()),
        Ok(count) => Err(Error::new(format!("escaped: read {count} bytes of the host's input"))),
    }
}
