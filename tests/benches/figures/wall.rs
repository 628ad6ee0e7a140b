//! Wall-clock time.

use std::{error::Error, time::Instant};

/// Returns the duration of a call, in seconds.
pub(crate) fn seconds<E: Into<Box<dyn Error>>>(
    act: impl FnOnce() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    let began = Instant::now();
    act().map_err(Into::into)?;
    Ok(began.elapsed().as_secs_f64())
}
