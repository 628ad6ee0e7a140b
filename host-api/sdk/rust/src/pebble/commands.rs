//! Commands in a container.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{Pebble, answer::is_number};
use crate::{
    Context as _, Error, Result,
    websocket::{self, Websocket},
};

/// The most bytes of each output of a command.
const MAX_OUTPUT: usize = 8 << 20;

/// The longest pause between two looks at a command's streams, in milliseconds.
const MAX_PAUSE: u32 = 200;

/// The order that ends a command which prints too much.
const KILL: &str = r#"{"command":"signal","signal":{"name":"SIGKILL"}}"#;

/// A command that [`Pebble::exec`] runs: the program is looked for as in a shell, and no shell runs.
///
/// ```no_run
/// # use std::time::Duration;
/// # use periapt_sdk::{PebbleExec, Result, Unit};
/// # fn handler(unit: &Unit) -> Result {
/// let check = PebbleExec::new(["nginx", "-t"]).timeout(Duration::from_secs(20));
/// unit.pebble("web").exec(&check)?.success()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct PebbleExec {
    command: Vec<String>,
    stdin: Vec<u8>,
    environment: BTreeMap<String, String>,
    settings: serde_json::Map<String, Value>,
}

impl PebbleExec {
    /// Creates a command: the program, then its arguments.
    pub fn new<A: Into<String>>(command: impl IntoIterator<Item = A>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Sets the command's input. It is empty otherwise.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = input.into();
        self
    }

    /// Sets the time after which Pebble kills the command. The error's kind is then `change-failed`. Without one, the
    /// hook's own time is the bound.
    #[must_use]
    pub fn timeout(self, time: Duration) -> Self {
        self.setting("timeout", format!("{}ms", time.as_millis()).into())
    }

    /// Sets a variable of the command's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the directory in which the command runs.
    #[must_use]
    pub fn working_dir(self, path: &str) -> Self {
        self.setting("working-dir", path.into())
    }

    /// Sets the user that the command runs as, by name.
    #[must_use]
    pub fn user(self, name: &str) -> Self {
        self.setting("user", name.into())
    }

    /// Sets the group that the command runs as, by name.
    #[must_use]
    pub fn group(self, name: &str) -> Self {
        self.setting("group", name.into())
    }

    /// Gives the command the environment, directory and user of a service.
    #[must_use]
    pub fn service_context(self, service: &str) -> Self {
        self.setting("service-context", service.into())
    }

    fn setting(mut self, name: &str, value: Value) -> Self {
        self.settings.insert(name.to_owned(), value);
        self
    }
}

/// The end of a command and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleOutput {
    /// The exit code. A signal is 128 and its number.
    pub code: i64,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl PebbleOutput {
    /// Returns standard output as text, if the exit code is 0.
    ///
    /// # Errors
    ///
    /// When it is another: with the code and standard error.
    pub fn success(self) -> Result<String> {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match self.code {
            0 => Ok(text(&self.stdout)),
            code => Err(Error::new(format!(
                "the command exited with code {code}: {}",
                text(&self.stderr).trim_end()
            ))),
        }
    }
}

impl Pebble {
    /// Runs a command, and waits for its end. It takes four of the hook's streams meanwhile.
    ///
    /// # Errors
    ///
    /// When there is no such program or user, when the command takes longer than it may (kind `change-failed`) or prints
    /// more than 8 MiB; or as [`connect`](Self::connect). Another exit code than 0 is no error.
    pub fn exec(&self, exec: &PebbleExec) -> Result<PebbleOutput> {
        let mut body = exec.settings.clone();
        body.insert("command".to_owned(), json!(exec.command));
        body.insert("split-stderr".to_owned(), true.into());
        body.insert("environment".to_owned(), json!(exec.environment));
        let begun = self.post("/v1/exec", &Value::Object(body))?;
        let task = begun.pointer("/result/task-id").and_then(Value::as_str).filter(|id| is_number(id));
        let task = task.ok_or_else(|| self.error("broken", "exec began no task"))?;
        let socket = |name: &str| {
            let stream = self.connect().context(self)?;
            let path = format!("/v1/tasks/{task}/websocket/{name}");
            Websocket::connect(stream, &path, MAX_OUTPUT)
                .map_err(|error| self.error("broken", error.to_string()))
        };
        let (mut control, mut stdio, mut stderr) = (socket("control")?, socket("stdio")?, socket("stderr")?);
        if let Err(error) = carry(&mut stdio, &mut stderr, &exec.stdin) {
            let _ = control.send(&websocket::text(KILL), MAX_PAUSE);
            return Err(self.error("broken", error.to_string()));
        }
        let change = self.ended(&begun, "exec")?;
        let code = change.pointer("/tasks/0/data/exit-code").and_then(Value::as_i64);
        let code = code.ok_or_else(|| self.error("broken", "the command ended without an exit code"))?;
        Ok(PebbleOutput { code, stdout: stdio.into_output(), stderr: stderr.into_output() })
    }
}

/// Sends the input and receives both outputs, to their ends. One waits for the other in neither direction: commands may
/// print before they have read all.
fn carry(stdio: &mut Websocket, stderr: &mut Websocket, stdin: &[u8]) -> Result {
    let input = websocket::input(stdin);
    let (mut rest, mut pause) = (&*input, 0);
    while !(stdio.is_over() && stderr.is_over()) {
        let mut is_moving = false;
        if !rest.is_empty() && !stdio.is_over() {
            // A command that has ended reads no more. What it printed comes all the same.
            let sent = stdio.send(rest, 0).unwrap_or(rest.len());
            rest = rest.get(sent..).unwrap_or_default();
            is_moving |= sent > 0;
        }
        // The wait is for one of them: the other is looked at soon enough.
        let (first, second) = if stdio.is_over() { (0, pause) } else { (pause, 0) };
        for (socket, pause) in [(&mut *stdio, first), (&mut *stderr, second)] {
            is_moving |= !socket.is_over() && socket.receive(pause)?;
        }
        // A hook without news waits longer each time.
        pause = if is_moving { 0 } else { (pause * 2 + 1).min(MAX_PAUSE) };
    }
    Ok(())
}
