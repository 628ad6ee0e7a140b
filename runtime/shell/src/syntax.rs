//! The syntax tree of a script.

/// Commands in sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) items: Vec<AndOr>,
}

impl List {
    /// Returns the file of a list that is `< FILE` and nothing else.
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

/// The condition of the next pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connector {
    /// Run it if the last one succeeded.
    And,
    /// Run it if the last one failed.
    Or,
}

/// Commands of which each reads the output of the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pipeline {
    /// True if the exit code is inverted (`!`).
    pub(crate) negated: bool,
    pub(crate) stages: Vec<Command>,
}

/// One command with its redirections, which apply from left to right.
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
    /// `( LIST )`: its changes of variables end with it.
    Subshell(List),
    /// `if LIST; then LIST; elif ...; else LIST; fi`
    If { branches: Vec<(List, List)>, otherwise: List },
    /// `while LIST; do LIST; done`, and `until`.
    Loop { ends_when: Ends, condition: List, body: List },
    /// `for NAME in WORD...; do LIST; done`
    For { name: String, words: Vec<Word>, body: List },
}

/// The result of the condition that ends a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// `while`
    OnFailure,
    /// `until`
    OnSuccess,
}

/// A redirection of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redirection {
    /// `<`
    Read(Word),
    /// `>` and `>>`, and `&>` for both streams.
    Write { streams: Streams, file: Word, append: Append },
    /// `2>&1` and `>&2`: one output goes to the present target of the other.
    Join { from: Streams, to: Streams },
}

/// The outputs that a redirection changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    Output,
    Error,
    Both,
}

/// The treatment of a file's old content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Append {
    Yes,
    No,
}

/// The source of a part of an argument, of one argument, or of several.
pub(crate) type Word = Vec<Piece>;

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    pub(crate) quoting: Quoting,
}

/// The quoting of a part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// In quotes: neither split at blanks nor matched against file names.
    Quoted,
    /// Outside of quotes.
    Bare,
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

/// The modifier of a parameter expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// `${#NAME}`
    Length,
    /// `${NAME-WORD}`, `=`, `+` and `?`; with `:` an empty value counts as unset.
    Unset { how: Unset, empty_too: bool, word: Word },
    /// `${NAME#PATTERN}`, `##`, `%` and `%%`.
    Trim { end: End, length: MatchLength, pattern: Word },
}

/// The replacement of an unset parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    /// The word.
    Default,
    /// The word, which also becomes the value.
    Assign,
    /// Nothing, or the word if the parameter is set.
    Alternative,
    /// An error.
    Error,
}

/// The end of a value that a pattern trims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// The match of a pattern to prefer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchLength {
    Shortest,
    Longest,
}
