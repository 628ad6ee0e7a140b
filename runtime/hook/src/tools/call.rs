//! One call of a tool, and the parsers that many tools share.

use std::collections::BTreeMap;

use periapt_host_api::{RelationId, relation::Settings, yaml};

use super::{
    Output,
    flags::{Flag, Flags, GivenFlag, Initial, Kind},
    format::Format,
};
use crate::{CallError, CallTime, context::HookRun, lease::Interruption};

/// The flags `--format` and `--output`.
pub(super) const OUTPUT: &[Flag] = &[
    Flag {
        names: &["--format"],
        kind: Kind::Value(Initial::Fixed("smart")),
        help: "Specify output format (json|smart|yaml)",
    },
    OUTPUT_FLAG,
];

/// The flag `--output` alone, for tools with formats of their own.
pub(super) const OUTPUT_FILE: &[Flag] = &[OUTPUT_FLAG];

const OUTPUT_FLAG: Flag = Flag {
    names: &["-o", "--output"],
    kind: Kind::Text(""),
    help: "Write to a file of the hook's own instead of standard output (-)",
};

/// The flag `-r`.
pub(super) const RELATION: &[Flag] = &[Flag {
    names: &["-r", "--relation"],
    kind: Kind::Value(Initial::Relation),
    help: "Specify a relation by id",
}];

/// The flag `--app`.
pub(super) const APP: &[Flag] =
    &[Flag { names: &["--app"], kind: Kind::Switch, help: "Speak of the application instead of a unit" }];

/// The flag `--file`.
pub(super) const FILE: &[Flag] = &[Flag {
    names: &["--file"],
    kind: Kind::Value(Initial::Fixed("")),
    help: "Read a YAML map of settings from a file of the hook's own, or from - (standard input)",
}];

/// A call with its parsed arguments.
pub(super) struct Call<'a> {
    pub(super) run: &'a mut HookRun,
    pub(super) now: CallTime,
    pub(super) flags: Flags,
    pub(super) arguments: Vec<&'a str>,
    pub(super) stdin: Option<&'a [u8]>,
}

impl<'a> Call<'a> {
    /// Returns the positional arguments, of which there may be at most `N`.
    pub(super) fn at_most<const N: usize>(&self) -> Result<[Option<&'a str>; N], CallError> {
        if let Some(surplus) = self.arguments.get(N..).filter(|surplus| !surplus.is_empty()) {
            let quoted: Vec<_> = surplus.iter().map(|argument| format!("{argument:?}")).collect();
            return Err(CallError::invalid(format!("unrecognized args: [{}]", quoted.join(" "))));
        }
        Ok(std::array::from_fn(|index| self.arguments.get(index).copied()))
    }

    /// Returns the relation of `-r`, or else the hook's.
    pub(super) fn relation(&self) -> Result<RelationId, CallError> {
        match self.flags.value("-r") {
            Some(given) => self.relation_of_flag(given),
            None => {
                let context = self.run.hook_relation();
                Ok(context.ok_or_else(|| CallError::invalid("no relation id specified"))?.relation)
            }
        }
    }

    /// Parses `NAME:ID` or `ID`, and ignores the name.
    fn relation_of_flag(&self, given: &GivenFlag) -> Result<RelationId, CallError> {
        let GivenFlag { name, value } = given;
        let wrong =
            |what: &str| CallError::invalid(format!("invalid value {value:?} for option {name}: {what}"));
        let number = value.rsplit_once(':').map_or(value.as_str(), |(_, number)| number);
        let number: i64 = number.parse().map_err(|_| wrong("invalid relation id"))?;
        let id = u32::try_from(number).map(RelationId).map_err(|_| wrong("relation not found"))?;
        self.run.relation(id).map(|relation| relation.id).map_err(|_| wrong("relation not found"))
    }

    /// Returns the output format. Tools call it first, so that a wrong flag is refused before any effect.
    pub(super) fn format(&self) -> Result<Format, CallError> {
        self.format_or(Format::Smart)
    }

    /// Returns the output format, for a tool with another default.
    pub(super) fn format_or(&self, default: Format) -> Result<Format, CallError> {
        self.flags.value("--format").map_or(Ok(default), Format::of_flag)
    }

    /// Returns the settings of `--file`. Numbers and booleans keep their spelling; a null is an empty value.
    pub(super) fn file(&mut self) -> Result<Settings, Interruption> {
        let Some(text) = self.file_text()? else { return Ok(Settings::new()) };
        if text.trim().is_empty() {
            return Ok(Settings::new());
        }
        let settings: BTreeMap<String, Option<String>> = yaml::parse(&text)
            .map_err(|error| CallError::Failed(format!("cannot read settings: {error}")))?;
        Ok(settings.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect())
    }

    /// Returns the text of the file that `--file` names. `-` is standard input, which only tools that read it
    /// receive (T-7).
    pub(super) fn file_text(&mut self) -> Result<Option<String>, Interruption> {
        let Some(given) = self.flags.value("--file") else { return Ok(None) };
        let failed = |text: String| Interruption::from(CallError::Failed(text));
        match (given.value.as_str(), self.stdin) {
            ("-", None) => Err(failed("hook tool requires stdin, none supplied".to_owned())),
            ("-", Some(bytes)) => match str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(failed("standard input is not UTF-8".to_owned())),
            },
            (path, _) => {
                let content = self.run.read_file(path)?;
                String::from_utf8(content)
                    .map(Some)
                    .map_err(|_| failed(format!("file {path:?} is not UTF-8")))
            }
        }
    }
}

/// Returns the path of `--output`. None: standard output.
pub(super) fn output_file(flags: &Flags) -> Option<String> {
    flags.value("-o").map(|given| given.value.clone()).filter(|path| path != "-")
}

/// Returns an empty output.
pub(super) fn silent() -> Output {
    Output::default()
}
