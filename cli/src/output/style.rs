//! Colours, only where a terminal shows them.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// Whether output is coloured: on a terminal, everywhere or nowhere. `NO_COLOR` and `CLICOLOR_FORCE` count where
/// `auto` decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    #[default]
    Auto,
    Always,
    Never,
}

impl From<ColorChoice> for anstream::ColorChoice {
    fn from(choice: ColorChoice) -> Self {
        match choice {
            ColorChoice::Auto => Self::Auto,
            ColorChoice::Always => Self::Always,
            ColorChoice::Never => Self::Never,
        }
    }
}

/// How something is to look: by what it means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As everything else.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// All is well.
    Good,
    /// Under way, or waiting.
    Busy,
    /// Somebody must do something.
    Bad,
    /// Of little interest.
    Faint,
}

/// The tone of a status word of a unit, an application, an agent or a machine.
pub(crate) fn tone_of_status(word: &str) -> Tone {
    match word {
        "active" | "idle" | "started" | "executing" | "available" | "running" => Tone::Good,
        "maintenance" | "waiting" | "allocating" | "pending" | "joining" => Tone::Busy,
        "error" | "blocked" | "failed" | "lost" | "down" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// A clean text in its tone, with escape sequences; [`super::Sink`] takes them out where they are not wanted.
pub(super) fn styled(text: &str, tone: Tone) -> String {
    let style = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Heading => Style::new().bold(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Busy => AnsiColor::Yellow.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
        Tone::Faint => Style::new().dimmed(),
    };
    match text.is_empty() {
        true => String::new(),
        false => format!("{style}{text}{style:#}"),
    }
}
