//! A script's tree.

/// Commands, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) items: Vec<AndOr>,
}

impl List {
    /// The file of a list that is `< FILE` and nothing else.
    pub(crate) fn only_reads(&self) -> Option<&Word> {
        let [AndOr { first: Pipeline { negated: false, stages }, rest }] = self.items.as_slice() else {
            return None;
        };
        match stages.as_slice() {
            [Command { body: Body::Simple { assignments, words }, redirections }]
                if rest.is_empty() && assignments.is_empty() && words.is_empty() =>
            {
                match redirections.as_slice() {
                    [Redirection::Read(file)] => Some(file),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AndOr {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Connector, Pipeline)>,
}

/// When the next pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connector {
    /// If the last one succeeded.
    And,
    /// If it failed.
    Or,
}

/// Commands of which each reads what the one before it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// It succeeds if its last command fails (`!`).
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Command>,
}

/// One command with its redirections, which hold from left to right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) body: Body,
    pub(crate) redirections: Vec<Redirection>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// A name with its arguments, or assignments alone.
    Simple { assignments: Vec<(String, Word)>, words: Vec<Word> },
    /// `{ LIST; }`
    Group(List),
    /// `( LIST )`: what it sets ends with it.
    Subshell(List),
    /// `if LIST; then LIST; elif ...; else LIST; fi`
    If { branches: Vec<(List, List)>, otherwise: List },
    /// `while LIST; do LIST; done`, and `until`.
    Loop { ends_when: Ends, condition: List, body: List },
    /// `for NAME in WORD...; do LIST; done`
    For { name: String, words: Vec<Word>, body: List },
}

/// Which result of its condition ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// `while`
    OnFailure,
    /// `until`
    OnSuccess,
}

/// Where a stream comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// `<`
    Read(Word),
    /// `>` and `>>`, and `&>` for both streams.
    Write { streams: Streams, file: Word, append: Append },
    /// `2>&1` and `>&2`: one of the two goes where the other one goes now.
    Join { from: Streams, to: Streams },
}

/// Which of a command's two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    Output,
    Error,
    Both,
}

/// Whether what a file holds stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Append {
    Yes,
    No,
}

/// What becomes a part of an argument, one, or several.
pub(crate) type Word = Vec<Piece>;

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    /// Quoted text is neither split at blanks nor matched against names of files.
    pub(crate) quoted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text(String),
    /// `$NAME` and `${NAME}`.
    Parameter {
        name: String,
        change: Option<Change>,
    },
    /// `$(LIST)`
    Output(List),
    /// `$((...))`
    Arithmetic(Word),
}

/// What a parameter's value becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// `${#NAME}`
    Length,
    /// `${NAME-WORD}`, `=`, `+` and `?`; with `:` an empty value counts as none.
    Unset { how: Unset, empty_too: bool, word: Word },
    /// `${NAME#PATTERN}`, `##`, `%` and `%%`.
    Trim { end: End, longest: bool, pattern: Word },
}

/// What stands in for a parameter that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    /// The word.
    Default,
    /// The word, which is the value from then on.
    Assign,
    /// Nothing; and the word if it is set.
    Alternative,
    /// An error.
    Error,
}

/// Which end of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}
