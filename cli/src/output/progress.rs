//! How far something is, on standard error, as long as it takes.

use std::{fmt::Display, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::{escape::one_line, note};

/// How much is said beside what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Nothing: `--quiet`.
    Quiet,
    /// What happens.
    Usual,
}

/// A bar or a spinner on a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of an upload of so many bytes.
    pub(crate) fn of_upload(length: u64, name: &str) -> Self {
        let bar = ProgressBar::new(length).with_message(one_line(name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(styled(bar, "Uploading {msg} {wide_bar} {bytes}/{total_bytes} {eta}"))
    }

    /// Of steps that are said one after the other.
    pub(crate) fn of_steps() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(styled(bar, "{spinner} {msg} ({elapsed})"))
    }

    /// Nothing is done yet: the upload begins again.
    pub(crate) fn restart(&self) {
        self.0.set_position(0);
    }

    /// So many bytes more are done.
    pub(crate) fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Says the step that is being done. Where no terminal shows it, on a line, which a log keeps.
    pub(crate) fn step(&self, step: impl Display, verbosity: Verbosity) {
        match self.0.is_hidden() {
            true if verbosity == Verbosity::Quiet => {}
            true => note(step),
            false => self.0.set_message(one_line(&step.to_string()).into_owned()),
        }
    }

    /// Takes it away.
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
