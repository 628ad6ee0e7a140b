//! Where output goes.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use super::ColorChoice;
use crate::error::{Explain as _, Result};

/// Standard output, without colours where they are not wanted; or a file, always without.
pub(crate) struct Sink(Box<dyn Write>);

impl Sink {
    /// Opens it.
    pub(crate) fn new(file: Option<&Path>, color: ColorChoice) -> Result<Self> {
        let writer: Box<dyn Write> = match file {
            Some(path) => {
                let file = File::create(path).explain(|| format!("cannot write {}", path.display()))?;
                Box::new(anstream::StripStream::new(file))
            }
            None => Box::new(anstream::AutoStream::new(io::stdout(), color.into())),
        };
        Ok(Self(writer))
    }

    /// Writes a text, at once.
    pub(crate) fn write(&mut self, text: &str) -> Result<()> {
        self.0.write_all(text.as_bytes())?;
        Ok(self.0.flush()?)
    }
}

/// Tells a person what happened, beside the output: on standard error, as one line.
pub(crate) fn note(text: impl std::fmt::Display) {
    // Where nobody reads it, nobody misses it.
    let _ = writeln!(anstream::stderr(), "{text}");
}
