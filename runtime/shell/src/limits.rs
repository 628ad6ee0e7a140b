//! Bounds of a script in the process that runs it: its text is as untrusted as a charm.

/// The bounds of one script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Work in all, in bytes that are read or copied; each step costs `STEP` beside. It also bounds the memory of
    /// variables, because each byte in them was paid for.
    pub work: u64,
    /// Bytes of one text: a variable, a pipe's content, a substitution's output, a file that a command reads. A
    /// hook tool accepts as many as its arguments.
    pub text: usize,
    /// The most arguments of one command or loop.
    pub arguments: usize,
    /// The deepest nesting of commands, those of substitutions and of `sh -c` included: each level takes stack.
    pub depth: u32,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self { work: 64 << 20, text: 1 << 20, arguments: 1 << 17, depth: 20 }
    }
}

/// Work for a step beside the bytes that it moves: 64 MiB of work are 262,144 steps, well under a second.
pub(crate) const STEP: u64 = 256;

/// The steps that a script takes before it yields.
const STEPS_IN_A_ROW: u64 = 1_000;

/// A bound that a script exceeded. The script ends there, and none of its effects are committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The work budget is used up, most likely by an endless loop.
    #[error(
        "the script used up its work ({} of text looked at or copied) after {steps} steps: most likely a loop \
         without an end, or texts that grow",
        size(*.limit)
    )]
    Work {
        /// The budget, in bytes.
        limit: u64,
        /// The steps that the script took.
        steps: u64,
    },
    /// A text is too long.
    #[error("the script holds a text of more than {limit} bytes")]
    Text {
        /// The bound, in bytes.
        limit: usize,
    },
    /// A command has too many arguments.
    #[error("the script gives a command more than {limit} arguments")]
    Arguments {
        /// The bound.
        limit: usize,
    },
    /// The caller answered another request. It is a defect of the caller.
    #[error("the script was given an answer that it did not ask for")]
    Answer,
}

/// Formats a number of bytes for messages.
fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// The remaining work of a script.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    left: u64,
    steps: u64,
    text: usize,
    arguments: usize,
}

impl Meter {
    pub(crate) fn new(limits: &ScriptLimits) -> Self {
        let ScriptLimits { work, text, arguments, .. } = *limits;
        Self { limit: work, left: work, steps: 0, text, arguments }
    }

    /// Charges one step. True if the script must yield now.
    pub(crate) fn step(&mut self) -> Result<bool, Stopped> {
        self.steps = self.steps.saturating_add(1);
        self.pay(STEP)?;
        Ok(self.steps.is_multiple_of(STEPS_IN_A_ROW))
    }

    /// Charges work for bytes that are read or copied.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), Stopped> {
        self.pay(bytes as u64)
    }

    /// Returns the most bytes of a text that the script can still pay for.
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
