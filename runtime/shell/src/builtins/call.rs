//! One call of a command, and the functions that many commands share.

use crate::interpreter::{Shell, Streams, Unwind};

/// A call of a command.
pub(super) struct Call<'a> {
    pub(super) shell: &'a mut Shell,
    pub(super) name: &'static str,
    pub(super) arguments: &'a [String],
    pub(super) streams: Streams,
}

/// The options and operands of a call.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// The switches, each once, however often the call repeats it.
    switches: Vec<char>,
    valued: Vec<(char, String)>,
    pub(super) operands: Vec<String>,
}

impl Parsed {
    pub(super) fn has(&self, switch: char) -> bool {
        self.switches.contains(&switch)
    }

    /// Returns the last value of an option.
    pub(super) fn value(&self, option: char) -> Option<&str> {
        self.values(option).last()
    }

    pub(super) fn values(&self, option: char) -> impl Iterator<Item = &str> {
        self.valued.iter().filter(move |(name, _)| *name == option).map(|(_, value)| value.as_str())
    }
}

impl Call<'_> {
    /// Borrows the call again, for a function that reads other arguments.
    pub(super) fn again(&mut self) -> Call<'_> {
        Call { shell: self.shell, name: self.name, arguments: self.arguments, streams: self.streams }
    }

    pub(super) fn say(&mut self, text: &str) -> Result<(), Unwind> {
        self.shell.write(self.streams.stdout, text.as_bytes())
    }

    /// Writes an error after the command's name to standard error.
    pub(super) fn complain(&mut self, text: &str) -> Result<(), Unwind> {
        let text = format!("{}: {text}\n", self.name);
        self.shell.write(self.streams.stderr, text.as_bytes())
    }

    /// Writes an error, and returns the exit code.
    pub(super) fn fail(&mut self, code: u8, text: &str) -> Result<u8, Unwind> {
        self.complain(text)?;
        Ok(code)
    }

    /// Parses options of one letter: those of `switches`, and those of `valued`, which have a value. None after an
    /// error, which it has written.
    pub(super) fn options(&mut self, switches: &str, valued: &str) -> Result<Option<Parsed>, Unwind> {
        let mut parsed = Parsed::default();
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            let letters = match argument.strip_prefix('-') {
                Some("-") => {
                    parsed.operands.extend(arguments.by_ref().cloned());
                    break;
                }
                Some(letters) if !letters.is_empty() => letters,
                _ => {
                    parsed.operands.push(argument.clone());
                    continue;
                }
            };
            for (at, letter) in letters.char_indices() {
                if switches.contains(letter) {
                    if !parsed.has(letter) {
                        parsed.switches.push(letter);
                    }
                } else if valued.contains(letter) {
                    let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
                    let value = match rest {
                        "" => arguments.next().cloned(),
                        rest => Some(rest.to_owned()),
                    };
                    let Some(value) = value else {
                        self.complain(&format!("option -{letter} needs a value"))?;
                        return Ok(None);
                    };
                    parsed.valued.push((letter, value));
                    break;
                } else {
                    let shown: String = argument.chars().take(64).collect();
                    self.complain(&format!("option {shown} is not supported"))?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(parsed))
    }

    /// Returns the content of a file, or of standard input for `-`. None after an error, which it has written.
    pub(super) async fn content(&mut self, path: &str) -> Result<Option<Vec<u8>>, Unwind> {
        if path == "-" {
            return self.shell.read_all(self.streams.stdin).map(Some);
        }
        if path == "/dev/null" {
            return Ok(Some(Vec::new()));
        }
        match self.shell.read_file(path).await? {
            Ok(content) => Ok(Some(content)),
            Err(error) => {
                self.complain(&format!("{path}: {error}"))?;
                Ok(None)
            }
        }
    }

    /// Returns the contents of some files with their names, or of standard input if there are none, and true if all
    /// were read.
    pub(super) async fn contents(
        &mut self,
        paths: &[String],
    ) -> Result<(Vec<(String, Vec<u8>)>, bool), Unwind> {
        let input = ["-".to_owned()];
        let paths = if paths.is_empty() { input.as_slice() } else { paths };
        let (mut contents, mut all) = (Vec::new(), true);
        for path in paths {
            self.shell.step().await?;
            match self.content(path).await? {
                Some(content) => contents.push((path.clone(), content)),
                None => all = false,
            }
        }
        Ok((contents, all))
    }
}

/// Iterates over the lines of a text, each with its line break, if it has one.
pub(super) fn lines(content: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n')
}

/// Returns a line without its line break.
pub(super) fn bare(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}
