//! How much one script may take of the process that runs it: it is a guest's text as much as a charm is.

/// The bounds of one script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Work in all, in bytes that are looked at or copied; each step costs `STEP` beside. It bounds the memory that
    /// variables take as well, because whatever they hold was paid for.
    pub work: u64,
    /// Bytes of one text: a variable, a pipe's content, a substitution's output, a file that a command reads. A
    /// hook tool takes as much as its arguments.
    pub text: usize,
    /// How many arguments one command or loop has at most.
    pub arguments: usize,
    /// How deep commands may be nested, those of substitutions and of `sh -c` included: each level takes stack.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { work: 64 << 20, text: 1 << 20, arguments: 1 << 17, depth: 20 }
    }
}

/// What a step costs beside the bytes that it moves: 64 MiB of work are 262,144 steps, well under a second.
pub(crate) const STEP: u64 = 256;

/// How many steps a script takes before it lets others run.
const STEPS_IN_A_ROW: u64 = 1_000;

/// A script went past one of its bounds. It ends there, and nothing that it asked for is committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Most likely a loop without an end.
    #[error(
        "the script used up its work ({} of text looked at or copied) after {steps} steps: most likely a loop \
         without an end, or texts that grow",
        size(*.limit)
    )]
    Work {
        /// How much it was allowed, in bytes.
        limit: u64,
        /// How many it took.
        steps: u64,
    },
    /// A text grew too long.
    #[error("the script holds a text of more than {limit} bytes")]
    Text {
        /// The most that is allowed.
        limit: usize,
    },
    /// A command got too many arguments.
    #[error("the script gives a command more than {limit} arguments")]
    Arguments {
        /// The most that are allowed.
        limit: usize,
    },
    /// Whoever runs the script gave an answer to another question. It is a defect of that caller.
    #[error("the script was given an answer that it did not ask for")]
    Answer,
}

/// A number of bytes as people read it.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// What is left of a script's work.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    left: u64,
    steps: u64,
    text: usize,
    arguments: usize,
}

impl Meter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let Limits { work, text, arguments, .. } = *limits;
        Self { limit: work, left: work, steps: 0, text, arguments }
    }

    /// Pays for one step; whether it is time to let others run.
    pub(crate) fn step(&mut self) -> Result<bool, Stopped> {
        self.steps = self.steps.saturating_add(1);
        self.pay(STEP)?;
        Ok(self.steps.is_multiple_of(STEPS_IN_A_ROW))
    }

    /// Pays for bytes that are looked at or copied.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), Stopped> {
        self.pay(bytes as u64)
    }

    /// How many bytes of a text can still be paid for.
    pub(crate) fn affordable(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(self.text)
    }

    /// Refuses a text that is too long.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), Stopped> {
        if bytes > self.text { Err(Stopped::Text { limit: self.text }) } else { Ok(()) }
    }

    /// Refuses a list of arguments that is too long.
    pub(crate) fn check_arguments(&self, arguments: usize) -> Result<(), Stopped> {
        match arguments > self.arguments {
            true => Err(Stopped::Arguments { limit: self.arguments }),
            false => Ok(()),
        }
    }

    fn pay(&mut self, price: u64) -> Result<(), Stopped> {
        self.left =
            self.left.checked_sub(price).ok_or(Stopped::Work { limit: self.limit, steps: self.steps })?;
        Ok(())
    }
}
