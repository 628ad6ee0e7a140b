//! Simple commands: assignments, built-in commands, hook tools, and unknown commands.

use periapt_hook::{ToolOutput, is_hook_tool};
use periapt_host_api::exec;

use super::{Shell, Streams, Unwind, scope::Variable};
use crate::{Reply, Request, builtins, syntax::Word};

/// The exit codes for an unknown command, and for a path that is no program.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// Work for a call of a hook tool beside its bytes: it reads the view, and is recorded.
const TOOL_CALL: usize = 4_096;

/// The most commands that run each other (`env`, `command`, `sh -c`): each takes stack.
const MAX_WRAPPED: u32 = 20;

impl Shell {
    pub(super) async fn simple(
        &mut self,
        assignments: &[(String, Word)],
        words: &[Word],
        streams: Streams,
    ) -> Result<(), Unwind> {
        // A command without a name has the exit code of its last substitution.
        self.substituted = None;
        let fields = self.fields(words, streams).await?;
        let Some((name, arguments)) = fields.split_first() else {
            for (name, word) in assignments {
                let value = self.joined(word, streams).await?;
                self.scope.set(name, value);
            }
            self.status = self.substituted.take().unwrap_or(0);
            return Ok(());
        };
        if self.scope.trace {
            self.write(streams.stderr, format!("+ {}\n", fields.join(" ")).as_bytes())?;
        }
        let mut hidden: Vec<(&str, Option<Variable>)> = Vec::new();
        for (name, word) in assignments {
            let value = self.joined(word, streams).await?;
            hidden.push((name, self.scope.unset(name)));
            self.scope.set(name, value);
            self.scope.export(name);
        }
        let ended = self.invoke(name, arguments, streams).await;
        for (name, variable) in hidden.into_iter().rev() {
            self.scope.restore(name, variable);
        }
        ended
    }

    /// Runs a command by its name.
    pub(crate) fn invoke<'a>(
        &'a mut self,
        name: &'a str,
        arguments: &'a [String],
        streams: Streams,
    ) -> super::Step<'a, ()> {
        Box::pin(async move {
            self.step().await?;
            self.wrapped += 1;
            let ended = self.invoked(name, arguments, streams).await;
            self.wrapped -= 1;
            self.status = ended?;
            Ok(())
        })
    }

    async fn invoked(&mut self, name: &str, arguments: &[String], streams: Streams) -> Result<u8, Unwind> {
        if self.wrapped > MAX_WRAPPED {
            let text = format!("{name}: more than {MAX_WRAPPED} commands run each other\n");
            self.write(streams.stderr, text.as_bytes())?;
            return Ok(NOT_EXECUTABLE);
        }
        match builtins::find(name) {
            Some(command) => builtins::run(self, command, arguments, streams).await,
            None if is_hook_tool(name) => self.tool(name, arguments, streams).await,
            None => self.unknown(name, streams).await,
        }
    }

    async fn tool(&mut self, name: &str, arguments: &[String], streams: Streams) -> Result<u8, Unwind> {
        if exec::is_confidential(name) {
            let error = exec::ExecError::Confidential(name.to_owned());
            self.write(streams.stderr, format!("ERROR {error}\n").as_bytes())?;
            return Ok(1);
        }
        self.pay(TOOL_CALL)?;
        let stdin = self.standard_input(streams.stdin)?;
        if arguments.iter().any(|argument| argument == "-") {
            self.read_all(streams.stdin)?;
        }
        let request = Request::Tool { name: name.to_owned(), arguments: arguments.to_vec(), stdin };
        let ToolOutput { exit_code, stdout, stderr } = match self.ask(request).await {
            Reply::Tool(output) => output,
            Reply::Done | Reply::File(_) => return Err(crate::Stopped::Answer.into()),
        };
        self.write(streams.stdout, stdout.as_bytes())?;
        self.write(streams.stderr, stderr.as_bytes())?;
        Ok(exit_code)
    }

    /// Writes the error for an unknown command. No path leads to a program.
    async fn unknown(&mut self, name: &str, streams: Streams) -> Result<u8, Unwind> {
        let shown: String = name.chars().take(256).collect();
        let (code, reason) = match name.contains('/') {
            true if self.kind(name).await?.is_ok() => (NOT_EXECUTABLE, "cannot execute"),
            _ => (NOT_FOUND, "command not found"),
        };
        let text =
            format!("{shown}: {reason}: a sandbox has no programs, see `help exec` for what there is\n");
        self.write(streams.stderr, text.as_bytes())?;
        Ok(code)
    }
}
