//! Time on the wall.

use std::{error::Error, time::Instant};

/// How long something took, in seconds.
pub(crate) fn seconds<E: Into<Box<dyn Error>>>(
    act: impl FnOnce() -> Result<(), E>,
) -> Result<f64, Box<dyn Error>> {
    let began = Instant::now();
    act().map_err(Into::into)?;
    Ok(began.elapsed().as_secs_f64())
}
