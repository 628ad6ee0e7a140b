//! Guests that never return.

use periapt_sdk::{Error, Result, Unit};
use std::io::Read;
use std::time::Duration;

/// Loops forever. The CPU budget must end the hook.
pub(crate) fn endless_loop(_: &Unit) -> Result {
    loop {
        std::hint::spin_loop();
    }
}

/// Sleeps without using CPU. The wall-clock limit must end the hook.
pub(crate) fn sleep(_: &Unit) -> Result {
    std::thread::sleep(Duration::from_secs(3600));
    Err(Error::new("escaped: slept for an hour"))
}

/// Reads standard input, which must be at its end and never wait for input.
pub(crate) fn block_read(_: &Unit) -> Result {
    let mut bytes = Vec::new();
    match std::io::stdin().read_to_end(&mut bytes) {
        Ok(0) | Err(_) => Ok(()),
        Ok(count) => Err(Error::new(format!("escaped: read {count} bytes of the host's input"))),
    }
}
