//! A world of files in memory, and of hook tools that record their calls.

use std::{collections::BTreeMap, time::Duration};

use periapt_hook::{FileError, ToolOutput};
use periapt_shell::{
    FileAnswer, FileCall, FileKind, FileStat, LISTED_NAME, Reply, Request, Script, ScriptEnd, ScriptLimits,
    ScriptProgress, Stopped,
};

/// The world around a script, with the changes that the script made.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Files by path; a directory has no content.
    pub(crate) files: BTreeMap<String, Option<Vec<u8>>>,
    /// Variables beside the defaults.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) slept: Duration,
    pub(crate) pauses: u32,
    pub(crate) called: Vec<Vec<String>>,
    /// The number of names that listings returned.
    pub(crate) listed: usize,
}

/// The result of a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScriptResult {
    pub(crate) code: Result<u8, Stopped>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl World {
    /// Returns a world with a charm, an empty `/tmp`, and storage with two files.
    pub(crate) fn new() -> Self {
        let file = |text: &str| Some(text.as_bytes().to_vec());
        let files = [
            ("/", None),
            ("/charm", None),
            ("/charm/charmcraft.yaml", file("name: probe\ntype: charm\n")),
            ("/charm/src", None),
            ("/charm/src/charm.py", file("pass\n")),
            ("/srv", None),
            ("/srv/data", None),
            ("/srv/data/a.txt", file("one\ntwo\nthree\n")),
            ("/srv/data/b.txt", file("two\n")),
            ("/srv/huge", Some(vec![b'x'; 2 << 20])),
            ("/tmp", None),
        ];
        let files = files.into_iter().map(|(path, content)| (path.to_owned(), content)).collect();
        Self { files, ..Self::default() }
    }

    pub(crate) fn run_within(&mut self, text: &str, limits: ScriptLimits) -> ScriptResult {
        let environment = [("JUJU_UNIT_NAME", "probe/0"), ("JUJU_MODEL_NAME", "default")];
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = environment.chain(self.environment.clone()).collect();
        let script = Script { text: text.to_owned(), environment, hostname: "probe-0".to_owned(), limits };
        let mut running = script.start();
        loop {
            let reply = match running.advance() {
                ScriptProgress::Ended(ScriptEnd { code, stdout, stderr }) => {
                    let text = |bytes| String::from_utf8(bytes).unwrap();
                    return ScriptResult { code, stdout: text(stdout), stderr: text(stderr) };
                }
                ScriptProgress::Needs(Request::Sleep(duration)) => {
                    self.slept += duration;
                    Reply::Done
                }
                ScriptProgress::Needs(Request::Pause) => {
                    self.pauses += 1;
                    Reply::Done
                }
                ScriptProgress::Needs(Request::File(call)) => Reply::File(self.file(call)),
                ScriptProgress::Needs(Request::Tool { name, arguments, stdin }) => {
                    Reply::Tool(self.tool(name, arguments, stdin))
                }
            };
            running.answer(reply);
        }
    }

    pub(crate) fn run(&mut self, text: &str) -> ScriptResult {
        self.run_within(text, ScriptLimits::default())
    }

    /// Answers hook tools: `relation-ids` has two relations, `leader-get` prints its input, `is-leader` fails, and
    /// the others print nothing.
    fn tool(&mut self, name: String, arguments: Vec<String>, stdin: Option<Vec<u8>>) -> ToolOutput {
        let stdout = match name.as_str() {
            "relation-ids" => "db:1\ndb:2\n".to_owned(),
            "leader-get" => stdin.map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default(),
            _ => String::new(),
        };
        let failed = name == "is-leader";
        self.called.push(std::iter::once(name).chain(arguments).collect());
        match failed {
            true => ToolOutput { exit_code: 1, stdout, stderr: "ERROR no\n".to_owned() },
            false => ToolOutput { exit_code: 0, stdout, stderr: String::new() },
        }
    }

    fn file(&mut self, call: FileCall) -> Result<FileAnswer, FileError> {
        let parent = |path: &str| match path.rsplit_once('/') {
            Some(("", _)) => "/".to_owned(),
            Some((parent, _)) => parent.to_owned(),
            None => panic!("{path} is not absolute"),
        };
        let (FileCall::Read { path, .. }
        | FileCall::Write { path, .. }
        | FileCall::List { path, .. }
        | FileCall::Stat { path }
        | FileCall::MakeDirectory { path }
        | FileCall::Remove { path, .. }) = &call;
        assert!(path.starts_with('/') && !path.contains("..") && !path.contains("//"), "{path}");
        let found = self.files.get(path).cloned();
        let changes = !matches!(call, FileCall::Read { .. } | FileCall::List { .. } | FileCall::Stat { .. });
        if changes && path.starts_with("/charm") {
            return Err(FileError::ReadOnly);
        }
        if changes && found.is_none() && self.files.get(&parent(path)) != Some(&None) {
            return Err(FileError::Absent);
        }
        match (call, found) {
            (FileCall::Write { content, append, path }, found) => {
                let before = match found {
                    Some(None) => return Err(FileError::Directory),
                    Some(Some(before)) if append => before,
                    _ => Vec::new(),
                };
                self.files.insert(path, Some([before, content].concat()));
                Ok(FileAnswer::Done)
            }
            (FileCall::MakeDirectory { .. }, Some(_)) => Err(FileError::Exists),
            (FileCall::MakeDirectory { path }, None) => {
                self.files.insert(path, None);
                Ok(FileAnswer::Done)
            }
            (_, None) => Err(FileError::Absent),
            (FileCall::Read { .. }, Some(None)) => Err(FileError::Directory),
            (FileCall::Read { at_most, .. }, Some(Some(content))) if content.len() > at_most => {
                Err(FileError::TooLarge)
            }
            (FileCall::Read { .. }, Some(Some(content))) => Ok(FileAnswer::Content(content)),
            (FileCall::List { .. }, Some(Some(_))) => Err(FileError::NotDirectory),
            (FileCall::List { path, at_most }, Some(None)) => {
                let beneath = self.files.iter().filter(|(other, _)| *other != "/" && parent(other) == path);
                let names = beneath.map(|(other, content)| {
                    let kind = if content.is_some() { FileKind::File } else { FileKind::Directory };
                    (other.rsplit_once('/').unwrap().1.to_owned(), kind)
                });
                let names: Vec<(String, FileKind)> = names.collect();
                if names.iter().map(|(name, _)| name.len() + LISTED_NAME).sum::<usize>() > at_most {
                    return Err(FileError::TooLarge);
                }
                self.listed += names.len();
                Ok(FileAnswer::Names(names))
            }
            (FileCall::Stat { path }, Some(content)) => {
                let kind = if content.is_some() { FileKind::File } else { FileKind::Directory };
                let size = content.map_or(0, |content| content.len() as u64);
                let writable = ["/tmp", "/srv/data"].iter().any(|place| path.starts_with(place));
                Ok(FileAnswer::Found(FileStat { kind, size, writable }))
            }
            (FileCall::Remove { directory, path }, Some(content)) => {
                let full = self.files.keys().any(|other| *other != "/" && parent(other) == path);
                match (directory, content) {
                    (true, None) if full => return Err(FileError::NotEmpty),
                    (true, None) | (false, Some(_)) => {}
                    (true, Some(_)) => return Err(FileError::NotDirectory),
                    (false, None) => return Err(FileError::Directory),
                }
                self.files.remove(&path);
                Ok(FileAnswer::Done)
            }
        }
    }
}

/// Runs scripts, each in a new world, and compares their standard output.
pub(crate) fn say(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let said = World::new().run(text);
        assert_eq!(said.stdout, *expected, "{text}: {said:?}");
    }
}

/// Runs scripts, each in a new world, and compares their exit code and standard error.
pub(crate) fn fail(cases: &[(&str, u8, &str)]) {
    for (text, code, expected) in cases {
        let said = World::new().run(text);
        assert_eq!((said.code.clone(), said.stderr.as_str()), (Ok(*code), *expected), "{text}");
    }
}
