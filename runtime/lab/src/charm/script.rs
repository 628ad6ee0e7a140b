//! Charm code that tests write: closures, and lists of actions.

use std::{fmt, rc::Rc, time::Duration};

use periapt_hook::{
    CallAnswer, CallError, CallTime, FileError, HookContext, HookResults, OutputStream, ToolOutput,
};
use periapt_host_api::{ContainerName, NameError, UnitName, event::Event};
use periapt_pebble::{PodAnswer, PodRequest};
use periapt_shell::{Reply, Request, Running, Script, ScriptEnd, ScriptLimits, ScriptProgress};

use super::ToolCall;
use super::{CharmCode, Ending, HookHost, LabHookReport};

/// A handler fails with words of its own, as a charm does: they become the unit's status, and nothing takes them apart. So
/// the error is a text, here and in [`Hook`].
type HandlerFn = dyn Fn(&mut Hook<'_>) -> Result<(), String>;

/// A hook in progress, as a scripted handler sees it.
pub struct Hook<'a> {
    context: HookContext,
    host: &'a mut dyn HookHost,
    tools: Vec<ToolCall>,
}

impl fmt::Debug for Hook<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("event", self.context.event()).finish_non_exhaustive()
    }
}

impl<'a> Hook<'a> {
    fn new(context: HookContext, host: &'a mut dyn HookHost) -> Self {
        Self { context, host, tools: Vec::new() }
    }

    /// Returns the event that the charm handles.
    pub fn event(&self) -> &Event {
        self.context.event()
    }

    /// Returns the unit.
    pub fn unit(&self) -> &UnitName {
        self.context.unit()
    }

    /// Returns the number of this attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.context.attempt()
    }

    /// Runs a hook tool given as one line, split at blanks.
    ///
    /// # Errors
    /// The tool's error text, if its exit code is not 0. So `?` has the effect of `set -e` in a shell.
    pub fn tool(&mut self, line: &str) -> Result<String, String> {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let output = self.run_tool(&argv, None);
        match output.exit_code {
            0 => Ok(output.stdout),
            code => Err(format!("{line}: exit {code}: {}", output.stderr.trim_end())),
        }
    }

    /// Runs a hook tool: its name, then its arguments.
    pub fn run_tool(&mut self, argv: &[String], stdin: Option<&[u8]>) -> ToolOutput {
        let (name, arguments) =
            argv.split_first().map_or(("", &[] as &[_]), |(name, rest)| (name.as_str(), rest));
        let output = self.ask(|context, now| context.run_tool(now, name, arguments, stdin));
        self.tools.push(ToolCall { at: self.host.now(), argv: argv.to_vec(), output: output.clone() });
        output
    }

    /// Makes a typed call that may need leadership, and renews the lease on request, as the sandbox does.
    pub fn ask<T>(&mut self, mut call: impl FnMut(&mut HookContext, CallTime) -> CallAnswer<T>) -> T {
        loop {
            let now = self.host.now();
            let answer = call(&mut self.context, now);
            let early = self.context.drain_early();
            if !early.is_empty() {
                self.host.early(early);
            }
            match answer {
                CallAnswer::Ready(value) => return value,
                CallAnswer::NeedsLease => {
                    // After the renewal the same call is decided either way.
                    let state = self.host.renew_lease();
                    self.context.lease_renewed(state);
                }
                CallAnswer::NeedsSecret(key) => {
                    let content = self.host.fetch_secret(key);
                    self.context.secret_fetched(key, content);
                }
                // Scripted charms have no files.
                CallAnswer::NeedsFile(request) => {
                    self.context.file_answered(request, Err(FileError::NoFiles))
                }
                CallAnswer::NeedsResource(key) => {
                    let fetched = self.host.fetch_resource(&key);
                    self.context.resource_fetched(key, fetched);
                }
            }
        }
    }

    /// Makes a typed call that never needs leadership.
    ///
    /// # Errors
    /// The call's error.
    pub fn call<T>(
        &mut self,
        call: impl Fn(&mut HookContext, CallTime) -> Result<T, CallError>,
    ) -> Result<T, String> {
        self.ask(|context, now| CallAnswer::Ready(call(context, now))).map_err(|error| error.to_string())
    }

    /// Asks the Pebble of a container, at once and outside of the hook's commit. It waits for a change as long as the
    /// request says, while time passes.
    ///
    /// # Errors
    /// Nobody listens, or Pebble's refusal.
    pub fn pebble(&mut self, container: &str, request: PodRequest) -> Result<PodAnswer, String> {
        let container: ContainerName = container.parse().map_err(|error: NameError| error.to_string())?;
        self.host.pebble(&container, request).map_err(|error| error.to_string())
    }

    /// Lets time pass.
    pub fn sleep(&mut self, duration: Duration) {
        self.host.sleep(duration);
    }

    /// Answers a script's requests until it ends.
    fn script(&mut self, mut script: Running) -> Ending {
        loop {
            let reply = match script.advance() {
                ScriptProgress::Needs(Request::Tool { name, arguments, stdin }) => {
                    let argv: Vec<String> = std::iter::once(name).chain(arguments).collect();
                    Reply::Tool(self.run_tool(&argv, stdin.as_deref()))
                }
                ScriptProgress::Needs(Request::Sleep(duration)) => {
                    self.sleep(duration);
                    Reply::Done
                }
                ScriptProgress::Needs(Request::Pause) => Reply::Done,
                ScriptProgress::Needs(Request::File(_)) => Reply::File(Err(FileError::NoFiles)),
                ScriptProgress::Ended(ScriptEnd { code, stdout, stderr }) => {
                    self.context.capture_output(OutputStream::Stdout, &stdout);
                    self.context.capture_output(OutputStream::Stderr, &stderr);
                    return match code {
                        Ok(code) => Ending::Exited(code),
                        Err(stopped) => Ending::Failed(stopped.to_string()),
                    };
                }
            };
            script.answer(reply);
        }
    }

    fn end(self, ending: Ending) -> LabHookReport {
        let gathered: HookResults = self.context.finish();
        LabHookReport { ending, gathered, tools: self.tools }
    }
}

/// A closure that handles all events.
pub(super) struct Handler(Box<HandlerFn>);

impl Handler {
    pub(super) fn new(handler: impl Fn(&mut Hook<'_>) -> Result<(), String> + 'static) -> Self {
        Self(Box::new(handler))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl CharmCode for Handler {
    fn run(&self, context: HookContext, host: &mut dyn HookHost) -> LabHookReport {
        let mut hook = Hook::new(context, host);
        let ending = match (self.0)(&mut hook) {
            Ok(()) => Ending::Handled,
            Err(message) => Ending::Failed(message),
        };
        hook.end(ending)
    }
}

/// One action of a scripted hook.
#[derive(Clone)]
pub enum Action {
    /// Runs a hook tool. A failed one ends the hook, as in a shell with `set -e`.
    Tool(Vec<String>),
    /// Runs a hook tool, and ignores its exit code.
    Try(Vec<String>),
    /// Lets time pass.
    Sleep(Duration),
    /// Fails the handler with this message.
    Fail(String),
    /// Ends as a charm without a handler.
    Unhandled,
    /// Runs a closure.
    Do(Rc<HandlerFn>),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(argv) => write!(f, "Tool({})", argv.join(" ")),
            Self::Try(argv) => write!(f, "Try({})", argv.join(" ")),
            Self::Sleep(duration) => write!(f, "Sleep({duration:?})"),
            Self::Fail(message) => write!(f, "Fail({message:?})"),
            Self::Unhandled => f.write_str("Unhandled"),
            Self::Do(_) => f.write_str("Do"),
        }
    }
}

impl Action {
    /// Creates a tool call from one line, split at blanks. It must succeed.
    pub fn tool(line: &str) -> Self {
        Self::Tool(line.split_whitespace().map(str::to_owned).collect())
    }

    /// Creates a tool call from one line, with any exit code.
    pub fn attempt(line: &str) -> Self {
        Self::Try(line.split_whitespace().map(str::to_owned).collect())
    }

    /// Creates a failure of the handler.
    pub fn fail(message: &str) -> Self {
        Self::Fail(message.to_owned())
    }

    /// Creates a closure's action.
    pub fn run(handler: impl Fn(&mut Hook<'_>) -> Result<(), String> + 'static) -> Self {
        Self::Do(Rc::new(handler))
    }
}

/// Runs the script of the context's task, as an agent does. A laboratory has no files.
pub(crate) fn exec(mut context: HookContext, host: &mut dyn HookHost) -> LabHookReport {
    let request = context.begin_exec();
    let (environment, hostname) = (context.environment(), context.unit().to_string().replace('/', "-"));
    let mut hook = Hook::new(context, host);
    let ending = match request {
        Err(failure) => Ending::Failed(failure.to_string()),
        Ok(request) => {
            let (text, limits) = (request.command.script(), ScriptLimits::default());
            hook.script(Script { text, environment, hostname, limits }.start())
        }
    };
    hook.end(ending)
}

/// Runs a hook from a list of actions.
pub(crate) fn play(actions: &[Action], context: HookContext, host: &mut dyn HookHost) -> LabHookReport {
    let mut hook = Hook::new(context, host);
    for action in actions {
        if let Err(ending) = act(&mut hook, action) {
            return hook.end(ending);
        }
    }
    hook.end(Ending::Handled)
}

fn act(hook: &mut Hook<'_>, action: &Action) -> Result<(), Ending> {
    match action {
        Action::Tool(argv) => {
            let output = hook.run_tool(argv, None);
            if output.exit_code != 0 {
                let (line, said) = (argv.join(" "), output.stderr.trim_end());
                return Err(Ending::Failed(format!("{line}: exit {}: {said}", output.exit_code)));
            }
        }
        Action::Try(argv) => {
            hook.run_tool(argv, None);
        }
        Action::Sleep(duration) => hook.sleep(*duration),
        Action::Fail(message) => return Err(Ending::Failed(message.clone())),
        Action::Unhandled => return Err(Ending::Unhandled),
        Action::Do(handler) => handler(hook).map_err(Ending::Failed)?,
    }
    Ok(())
}
