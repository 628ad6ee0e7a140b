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
pub(crate) enum TextStyle {
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
    /// The name of one of several sources, by its number.
    Source(usize),
}

/// The colours that tell sources apart. None of them means that something is wrong.
const SOURCES: [AnsiColor; 5] =
    [AnsiColor::Cyan, AnsiColor::Magenta, AnsiColor::Blue, AnsiColor::BrightCyan, AnsiColor::BrightMagenta];

/// Returns the tone of a status word of a unit, an application, an agent or a machine.
pub(crate) fn style_of_status(word: &str) -> TextStyle {
    match word {
        "active" | "idle" | "started" | "executing" | "available" | "running" => TextStyle::Good,
        "maintenance" | "waiting" | "allocating" | "pending" | "joining" => TextStyle::Busy,
        "error" | "blocked" | "failed" | "lost" | "down" => TextStyle::Bad,
        _ => TextStyle::Plain,
    }
}

/// Formats an escaped text in its tone, with escape sequences; [`super::Sink`] strips them if the output has no
/// colours.
pub(super) fn styled(text: &str, style: TextStyle) -> String {
    let ansi = match style {
        TextStyle::Plain => return text.to_owned(),
        TextStyle::Heading => Style::new().bold(),
        TextStyle::Good => AnsiColor::Green.on_default(),
        TextStyle::Busy => AnsiColor::Yellow.on_default(),
        TextStyle::Bad => AnsiColor::Red.on_default(),
        TextStyle::Faint => Style::new().dimmed(),
        TextStyle::Source(number) => match SOURCES.get(number % SOURCES.len()) {
            Some(color) => color.on_default(),
            None => return text.to_owned(),
        },
    };
    match text.is_empty() {
        true => String::new(),
        false => format!("{ansi}{text}{ansi:#}"),
    }
}
