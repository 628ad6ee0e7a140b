//! The script: a list of actions for hooks.

use periapt_sdk::{Context, Error, Result};

/// One line of the script.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// A hook's full name, or `*`.
    pub(crate) event: String,
    pub(crate) action: Action,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Fail(String),
    Panic(String),
    Unhandled,
    Trap,
    Loop,
    Tool(String, Vec<String>),
    Set(String, String),
    AppSet(String, String),
    Store(String, String),
    Status(Word, String),
    AppStatus(Word, String),
    Stop(Word, String),
    OpenPort(String),
    ClosePort(String),
    Emit(String),
    Complain(String),
    Log(String),
    Write(String, String),
    Read(String),
    Resource(String),
    Push { container: String, path: String, resource: String },
    Shell { container: String, milliseconds: u64, script: String },
    Ask { target: String, method: String, path: String, body: String },
    Goal,
    Share(String, String),
    Revise(String, String),
    Expire(String),
    Rotate,
    Prune,
    Open,
    OpenToken,
}

/// A workload status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Word {
    Active,
    Blocked,
    Waiting,
    Maintenance,
}

/// Parses a script. The error names the line.
pub(crate) fn parse(script: &str) -> Result<Vec<Step>> {
    let lines = script.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let steps = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    steps.map(|(number, line)| step(line).context(format!("script line {number}"))).collect()
}

fn step(line: &str) -> Result<Step> {
    let (event, action) = line.split_once(':').context("expected EVENT: ACTION")?;
    Ok(Step { event: event.trim().to_owned(), action: self::action(action.trim())? })
}

fn action(text: &str) -> Result<Action> {
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    let text = || rest.to_owned();
    Ok(match verb {
        "fail" => Action::Fail(text()),
        "panic" => Action::Panic(text()),
        "unhandled" => Action::Unhandled,
        "trap" => Action::Trap,
        "loop" => Action::Loop,
        "tool" => {
            let mut words = words(rest)?.into_iter();
            Action::Tool(words.next().context("tool without a name")?, words.collect())
        }
        "set" => pair(rest).map(|(key, value)| Action::Set(key, value))?,
        "app-set" => pair(rest).map(|(key, value)| Action::AppSet(key, value))?,
        "store" => pair(rest).map(|(key, value)| Action::Store(key, value))?,
        "status" => status(rest).map(|(word, message)| Action::Status(word, message))?,
        "app-status" => status(rest).map(|(word, message)| Action::AppStatus(word, message))?,
        "stop" => status(rest).map(|(word, message)| Action::Stop(word, message))?,
        "open-port" => Action::OpenPort(text()),
        "close-port" => Action::ClosePort(text()),
        "emit" => Action::Emit(text()),
        "complain" => Action::Complain(text()),
        "log" => Action::Log(text()),
        "write" => pair(rest).map(|(path, content)| Action::Write(path, content))?,
        "read" => Action::Read(text()),
        "resource" => Action::Resource(text()),
        "ask" => {
            let mut parts = rest.splitn(4, ' ').map(str::to_owned);
            let mut next = || parts.next().context("expected TARGET METHOD PATH [BODY]");
            let (target, method, path) = (next()?, next()?, next()?);
            Action::Ask { target, method, path, body: parts.next().unwrap_or_default() }
        }
        "push" => {
            let mut parts = words(rest)?.into_iter();
            let mut next = || parts.next().context("expected CONTAINER PATH RESOURCE");
            Action::Push { container: next()?, path: next()?, resource: next()? }
        }
        "shell" => {
            let mut parts = rest.splitn(3, ' ').map(str::to_owned);
            let mut next = || parts.next().context("expected CONTAINER MILLISECONDS SCRIPT");
            let (container, milliseconds, script) = (next()?, next()?.parse()?, next()?);
            Action::Shell { container, milliseconds, script }
        }
        "goal" => Action::Goal,
        "share" => pair(rest).map(|(key, value)| Action::Share(key, value))?,
        "revise" => pair(rest).map(|(key, value)| Action::Revise(key, value))?,
        "expire" => Action::Expire(text()),
        "rotate" => Action::Rotate,
        "prune" => Action::Prune,
        "open" => Action::Open,
        "open-token" => Action::OpenToken,
        _ => return Err(Error::new(format!("unknown action \"{verb}\""))),
    })
}

fn pair(text: &str) -> Result<(String, String)> {
    let (key, value) = text.split_once('=').context(format!("expected KEY=VALUE, got \"{text}\""))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn status(text: &str) -> Result<(Word, String)> {
    let (word, message) = text.split_once(' ').unwrap_or((text, ""));
    let word = match word {
        "active" => Word::Active,
        "blocked" => Word::Blocked,
        "waiting" => Word::Waiting,
        "maintenance" => Word::Maintenance,
        _ => return Err(Error::new(format!("unknown status \"{word}\""))),
    };
    Ok((word, message.to_owned()))
}

/// Splits a text at blanks. Quotes of either kind keep blanks together, and may be empty.
fn words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    if quote.is_some() {
        return Err(Error::new("a quote is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_together() {
        assert_eq!(
            words(r#"status-set  active "two words" '' a"b"c"#).unwrap(),
            ["status-set", "active", "two words", "", "abc"]
        );
        assert_eq!(words("\"open").unwrap_err().to_string(), "a quote is not closed");
    }

    #[test]
    fn comments_and_blank_lines_are_nothing_and_values_keep_their_colons() {
        let steps = parse("# nothing\n\n  db-relation-joined: set url=http://x:80/ ").unwrap();
        let action = Action::Set("url".to_owned(), "http://x:80/".to_owned());
        assert_eq!(steps, [Step { event: "db-relation-joined".to_owned(), action }]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (script, message) in [
            ("install", "script line 1: expected EVENT: ACTION"),
            ("*: log x\n*: explode", "script line 2: unknown action \"explode\""),
            ("*: set x", "script line 1: expected KEY=VALUE, got \"x\""),
            ("*: status great", "script line 1: unknown status \"great\""),
            ("*: tool", "script line 1: tool without a name"),
            ("*: push web /etc/ca.pem", "script line 1: expected CONTAINER PATH RESOURCE"),
        ] {
            assert_eq!(parse(script).unwrap_err().to_string(), message);
        }
    }
}
