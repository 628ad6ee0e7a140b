//! Progress on standard error.

use std::{fmt::Display, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::{escape::one_line, note};

/// The amount of messages beside the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// No messages: `--quiet`.
    Quiet,
    /// Messages about changes.
    Usual,
}

/// A bar or a spinner on a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows the progress of an upload of `length` bytes.
    pub(crate) fn of_upload(length: u64, name: &str) -> Self {
        let bar = ProgressBar::new(length).with_message(one_line(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(styled(bar, "Uploading {msg} {wide_bar} {bytes}/{total_bytes} {eta}"))
    }

    /// Shows the progress of a download of unknown length.
    pub(crate) fn of_download(name: &str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(one_line(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(styled(bar, "Downloading {msg} {spinner} {bytes} ({elapsed})"))
    }

    /// Shows steps, one after the other.
    pub(crate) fn of_steps() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(styled(bar, "{spinner} {msg} ({elapsed})"))
    }

    /// Resets the progress, because the upload begins again.
    pub(crate) fn restart(&self) {
        self.0.set_position(0);
    }

    /// Advances by some bytes.
    pub(crate) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Shows the current step, or prints it as a line without a terminal, for a log.
    pub(crate) fn step(&self, step: impl Display, verbosity: Verbosity) {
        match self.0.is_hidden() {
            true if verbosity == Verbosity::Quiet => {}
            true => note(step),
            false => self.0.set_message(one_line(&step.to_string()).into_owned()),
        }
    }

    /// Removes the progress.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
