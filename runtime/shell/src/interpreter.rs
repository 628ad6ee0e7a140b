//! The interpreter of a script's syntax tree. There are no processes: each stage of a pipeline runs to its end before
//! the next one begins, and a subshell is a copy of the variables. So the same script over the same world has the same
//! result.

pub(crate) mod arithmetic;
pub(crate) mod expand;
mod files;
mod glob;
mod redirect;
mod scope;
mod simple;
mod streams;

use std::{pin::Pin, sync::Arc};

use crate::{
    Reply, Request, Script, ScriptLimits, Stopped,
    channel::RequestChannel,
    limits::Meter,
    parser,
    syntax::{AndOr, Body, Command, Connector, Ends, List, Pipeline},
};
pub(crate) use files::FileFault;
use scope::Scope;
use streams::Buffers;
pub(crate) use streams::{Input, Output, Streams};

/// One step of a run.
pub(crate) type Step<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unwind>> + Send + 'a>>;

/// Bytes of a script's tree in memory for each byte of its text: a command of one letter and its `;` take 500 bytes.
const TREE: usize = 256;

/// The reason why a command ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unwind {
    /// The script ends, or the subshell.
    Exit(u8),
    /// This many loops end.
    Break(u32),
    /// This many loops but one end, and the outermost goes on with its next turn.
    Continue(u32),
    /// The script exceeded a bound.
    Stopped(Stopped),
}

impl From<Stopped> for Unwind {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

/// The place of a pipeline among those that `&&` and `||` join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListPosition {
    /// Before another one: its failure does not end the script (`set -e`).
    Inner,
    Last,
}

/// The state of a running script.
pub(crate) struct Shell {
    channel: Arc<RequestChannel>,
    meter: Meter,
    buffers: Buffers,
    /// The remaining depth for nested commands.
    left: u32,
    /// The number of conditions around the present command. Within them a failure does not end the script (`set -e`).
    guarded: u32,
    /// The number of commands that run each other now.
    wrapped: u32,
    /// The exit code of the last substitution in the present command.
    substituted: Option<u8>,
    pub(crate) scope: Scope,
    pub(crate) status: u8,
    pub(crate) hostname: String,
}

/// Runs a script, and returns its exit code.
pub(crate) async fn run(mut shell: Shell, text: String) -> Result<u8, Stopped> {
    match shell.text(&text, Streams::of_script()).await {
        Ok(()) | Err(Unwind::Break(_) | Unwind::Continue(_)) => Ok(shell.status),
        Err(Unwind::Exit(code)) => Ok(code),
        Err(Unwind::Stopped(stopped)) => Err(stopped),
    }
}

impl Shell {
    pub(crate) fn new(script: &Script, channel: Arc<RequestChannel>) -> Self {
        let Script { environment, hostname, limits, .. } = script;
        let ScriptLimits { depth, .. } = *limits;
        Self {
            channel,
            meter: Meter::new(limits),
            buffers: Buffers::default(),
            left: depth,
            guarded: 0,
            wrapped: 0,
            substituted: None,
            scope: Scope::new(environment),
            status: 0,
            hostname: hostname.clone(),
        }
    }

    /// Runs a text: the whole script, or that of `sh -c`. A syntax error sets the exit code 2.
    pub(crate) async fn text(&mut self, text: &str, streams: Streams) -> Result<(), Unwind> {
        self.pay(text.len().saturating_mul(TREE))?;
        match parser::parse(text, self.left) {
            Ok(list) => self.list(&list, streams).await,
            Err(error) => {
                self.status = 2;
                self.write(streams.stderr, format!("{error}\n").as_bytes())
            }
        }
    }

    /// Charges work for bytes that are read or copied.
    pub(crate) fn pay(&mut self, bytes: usize) -> Result<(), Unwind> {
        Ok(self.meter.bytes(bytes)?)
    }

    /// Refuses a text that exceeds [`Limits::text`].
    pub(crate) fn check(&self, bytes: usize) -> Result<(), Unwind> {
        Ok(self.meter.check(bytes)?)
    }

    /// Charges one step, and yields from time to time.
    pub(crate) async fn step(&mut self) -> Result<(), Unwind> {
        if self.meter.step()? {
            self.ask(Request::Pause).await;
        }
        Ok(())
    }

    pub(crate) async fn ask(&self, request: Request) -> Reply {
        self.channel.ask(request).await
    }

    /// Copies all variables, to restore them at a subshell's end.
    pub(crate) fn copied_scope(&mut self) -> Result<Scope, Unwind> {
        self.pay_for_scope()?;
        Ok(self.scope.clone())
    }

    /// Charges work for a loop over all variables.
    pub(crate) fn pay_for_scope(&mut self) -> Result<(), Unwind> {
        self.pay(self.scope.bytes())
    }

    /// Runs a list. Its changes of variables and directory end with it.
    async fn in_subshell(&mut self, list: &List, streams: Streams) -> Result<(), Unwind> {
        let outer = self.copied_scope()?;
        let ended = self.list(list, streams).await;
        self.scope = outer;
        self.contained(ended)
    }

    /// Converts the end of a subshell to that of the command around it.
    fn contained(&mut self, ended: Result<(), Unwind>) -> Result<(), Unwind> {
        match ended {
            Err(Unwind::Exit(code)) => self.status = code,
            Err(Unwind::Stopped(stopped)) => return Err(stopped.into()),
            Ok(()) | Err(Unwind::Break(_) | Unwind::Continue(_)) => {}
        }
        Ok(())
    }

    pub(crate) fn list<'a>(&'a mut self, list: &'a List, streams: Streams) -> Step<'a, ()> {
        Box::pin(async move {
            self.left = self.left.saturating_sub(1);
            let mut ended = Ok(());
            for item in &list.items {
                ended = self.and_or(item, streams).await;
                if ended.is_err() {
                    break;
                }
            }
            self.left += 1;
            ended
        })
    }

    async fn and_or(&mut self, item: &AndOr, streams: Streams) -> Result<(), Unwind> {
        let position =
            |index| if index == item.rest.len() { ListPosition::Last } else { ListPosition::Inner };
        let mut last = (&item.first, position(0));
        self.pipeline(last.0, streams, last.1).await?;
        let mut ran = true;
        for (index, (connector, pipeline)) in item.rest.iter().enumerate() {
            ran = (*connector == Connector::And) == (self.status == 0);
            if ran {
                last = (pipeline, position(index + 1));
                self.pipeline(last.0, streams, last.1).await?;
            }
        }
        let counts = ran && last.1 == ListPosition::Last && !last.0.negated && self.guarded == 0;
        match counts && self.status != 0 && self.scope.exit_on_failure {
            true => Err(Unwind::Exit(self.status)),
            false => Ok(()),
        }
    }

    async fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        streams: Streams,
        position: ListPosition,
    ) -> Result<(), Unwind> {
        self.step().await?;
        let guard = u32::from(position == ListPosition::Inner || pipeline.negated);
        self.guarded += guard;
        let ended = match pipeline.stages.as_slice() {
            [only] => self.command(only, streams).await,
            stages => self.stages(stages, streams).await,
        };
        self.guarded -= guard;
        ended?;
        if pipeline.negated {
            self.status = u8::from(self.status == 0);
        }
        Ok(())
    }

    async fn stages(&mut self, stages: &[Command], streams: Streams) -> Result<(), Unwind> {
        let mut stdin = streams.stdin;
        let mut failed = 0;
        for (index, stage) in stages.iter().enumerate() {
            let is_last = index + 1 == stages.len();
            let pipe = self.buffers.open(Vec::new());
            let stdout = if is_last { streams.stdout } else { Output::Buffer(pipe) };
            let outer = self.copied_scope()?;
            let ended = self.command(stage, Streams { stdin, stdout, ..streams }).await;
            self.scope = outer;
            self.contained(ended)?;
            if index > 0 {
                self.close(stdin);
            }
            if self.status != 0 {
                failed = self.status;
            }
            stdin = Input::Buffer(pipe);
        }
        self.close(stdin);
        if self.scope.pipe_fails {
            self.status = failed;
        }
        Ok(())
    }

    async fn command(&mut self, command: &Command, streams: Streams) -> Result<(), Unwind> {
        let Some(redirected) = self.redirect(&command.redirections, streams).await? else {
            self.status = 1;
            return Ok(());
        };
        let ended = self.body(&command.body, redirected.streams).await;
        if let Err(Unwind::Stopped(stopped)) = ended {
            return Err(stopped.into());
        }
        self.restore(redirected, streams).await?;
        ended
    }

    async fn body(&mut self, body: &Body, streams: Streams) -> Result<(), Unwind> {
        match body {
            Body::Simple { assignments, words } => self.simple(assignments, words, streams).await,
            Body::Group(list) => self.list(list, streams).await,
            Body::Subshell(list) => self.in_subshell(list, streams).await,
            Body::If { branches, otherwise } => {
                for (condition, list) in branches {
                    if self.condition(condition, streams).await? {
                        return self.list(list, streams).await;
                    }
                }
                self.status = 0;
                self.list(otherwise, streams).await
            }
            Body::Loop { ends_when, condition, body } => {
                let mut status = 0;
                while self.turns(condition, *ends_when, streams).await? {
                    let ended = self.list(body, streams).await;
                    status = self.status;
                    if turned(ended)? {
                        break;
                    }
                }
                self.status = status;
                Ok(())
            }
            Body::For { name, words, body } => {
                self.status = 0;
                for value in self.fields(words, streams).await? {
                    self.step().await?;
                    self.pay(value.len())?;
                    self.scope.set(name, value);
                    let ended = self.list(body, streams).await;
                    if turned(ended)? {
                        break;
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns true if a loop takes another turn. `break` in its condition ends it, too.
    async fn turns(&mut self, condition: &List, ends_when: Ends, streams: Streams) -> Result<bool, Unwind> {
        self.step().await?;
        match self.condition(condition, streams).await {
            Ok(succeeded) => Ok(succeeded == (ends_when == Ends::OnFailure)),
            Err(unwind) => turned(Err(unwind)).map(|over| !over),
        }
    }

    async fn condition(&mut self, condition: &List, streams: Streams) -> Result<bool, Unwind> {
        self.guarded += 1;
        let ended = self.list(condition, streams).await;
        self.guarded -= 1;
        ended.map(|()| self.status == 0)
    }
}

/// Returns true if a turn with this end is the loop's last.
fn turned(ended: Result<(), Unwind>) -> Result<bool, Unwind> {
    match ended {
        Ok(()) | Err(Unwind::Continue(..=1)) => Ok(false),
        Err(Unwind::Break(..=1)) => Ok(true),
        Err(Unwind::Break(more)) => Err(Unwind::Break(more - 1)),
        Err(Unwind::Continue(more)) => Err(Unwind::Continue(more - 1)),
        Err(unwind) => Err(unwind),
    }
}
