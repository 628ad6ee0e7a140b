//! Colours, on terminals alone.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// The choice of colours: on a terminal, always or never. `NO_COLOR` and `CLICOLOR_FORCE` apply to `auto`.
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

/// The look of a text, by its meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// A good state.
    Good,
    /// A state in progress, or waiting.
    Busy,
    /// A state that needs an operator.
    Bad,
    /// Text of little interest.
    Faint,
}

/// Returns the tone of a status word of a unit, an application, an agent or a machine.
pub(crate) fn tone_of_status(word: &str) -> Tone {
    match word {
        "active" | "idle" | "started" | "executing" | "available" | "running" => Tone::Good,
        "maintenance" | "waiting" | "allocating" | "pending" | "joining" => Tone::Busy,
        "error" | "blocked" | "failed" | "lost" | "down" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// Formats an escaped text in its tone, with escape sequences; [`super::Sink`] strips them if the output has no
/// colours.
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
