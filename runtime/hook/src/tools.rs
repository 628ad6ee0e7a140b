//! The argv interface: Juju's hook tools (`docs/hook-model.md` section 5). A tool parses its arguments, calls the
//! run, and prints. The behaviour itself stands with the run's subjects.

use serde::{Deserialize, Serialize};

use crate::{CallAnswer, CallError, CallTime, HookContext, context::HookRun, lease::Interruption};

mod action;
mod call;
mod config;
mod events;
mod flags;
mod format;
mod goal_state;
mod help;
mod identity;
mod key_value;
mod leadership;
mod log;
mod network;
mod ports;
mod relation;
mod relation_bag;
mod resource;
mod secret;
mod secret_access;
mod secret_change;
mod state;
mod status;
mod storage;
mod unsupported;
mod yaml;

use call::Call;
use flags::{Flag, Parsed};

/// The function of each tool's call in the record.
const FUNCTION: &str = "hook-tools.run";

/// The longest error text in characters: it may quote an argument, which may be a mebibyte long.
const MAX_ERROR_CHARS: usize = 4_096;

/// The outcome of a hook tool, as a process would leave it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolOutput {
    /// 0: success; 1: an error at run time; 2: invalid arguments (T-1).
    pub exit_code: u8,
    /// The standard output; empty if the tool failed.
    pub stdout: String,
    /// `ERROR ` and the error's text, or warnings.
    pub stderr: String,
}

/// One hook tool.
struct Tool {
    name: &'static str,
    /// The positional arguments, for the help text.
    arguments: &'static str,
    /// The summary, for the help text.
    summary: &'static str,
    /// The groups of flags that the tool takes.
    flags: &'static [&'static [Flag]],
    run: fn(Call<'_>) -> Result<Output, Interruption>,
}

/// The output of a tool that succeeded.
#[derive(Debug, Default)]
struct Output {
    stdout: String,
    stderr: String,
}

impl From<String> for Output {
    fn from(stdout: String) -> Self {
        Self { stdout, stderr: String::new() }
    }
}

/// All tools that the sandbox supports, by subject.
const TOOLS: &[Tool] = &[
    action::ACTION_FAIL,
    action::ACTION_GET,
    action::ACTION_LOG,
    action::ACTION_SET,
    config::CONFIG_GET,
    events::EMIT_LATER,
    events::EMIT_CANCEL,
    events::EMIT_LIST,
    goal_state::GOAL_STATE,
    identity::UNIT_GET,
    identity::APPLICATION_VERSION_SET,
    leadership::IS_LEADER,
    leadership::LEADER_GET,
    leadership::LEADER_SET,
    log::JUJU_LOG,
    network::NETWORK_GET,
    ports::OPEN_PORT,
    ports::CLOSE_PORT,
    ports::OPENED_PORTS,
    relation::RELATION_IDS,
    relation::RELATION_LIST,
    relation::RELATION_BATCH,
    relation::RELATION_MODEL_GET,
    relation_bag::RELATION_GET,
    relation_bag::RELATION_SET,
    resource::RESOURCE_GET,
    state::STATE_GET,
    state::STATE_SET,
    state::STATE_DELETE,
    secret::SECRET_GET,
    secret::SECRET_IDS,
    secret::SECRET_INFO_GET,
    secret_access::SECRET_GRANT,
    secret_access::SECRET_REVOKE,
    secret_change::SECRET_ADD,
    secret_change::SECRET_SET,
    secret_change::SECRET_REMOVE,
    status::STATUS_SET,
    status::STATUS_GET,
    storage::STORAGE_GET,
    storage::STORAGE_LIST,
    storage::STORAGE_ADD,
];

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTool {
    /// The tool's name.
    pub name: &'static str,
    /// The summary, in one line.
    pub summary: &'static str,
    /// The output of `--help`.
    pub help: String,
}

/// Iterates over all supported tools, sorted by name.
pub fn hook_tools() -> impl Iterator<Item = HookTool> {
    let mut tools: Vec<&Tool> = TOOLS.iter().collect();
    tools.sort_by_key(|tool| tool.name);
    tools.into_iter().map(|tool| HookTool {
        name: tool.name,
        summary: tool.summary,
        help: help::text(tool, None),
    })
}

/// Iterates over the names of all tools, with those that only return an error here.
pub fn hook_tool_names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name).chain(unsupported::names())
}

impl HookContext {
    /// Runs one hook tool, such as `relation-get --format=json - mysql/0`.
    ///
    /// Its errors are part of the output, as a process would print them.
    pub fn run_tool(
        &mut self,
        now: CallTime,
        name: &str,
        arguments: &[String],
        stdin: Option<&[u8]>,
    ) -> CallAnswer<ToolOutput> {
        if let Some(replay) = &self.replay
            && let Some(request) = replay.file_request()
        {
            return CallAnswer::NeedsFile(request);
        }
        let text = stdin.map(String::from_utf8_lossy);
        if let Some(output) = self.replayed(FUNCTION, &(name, arguments, &text)) {
            if name == log::JUJU_LOG.name {
                // A replay has the lines of the charm's log, too.
                let _ = run(&mut self.run, now, name, arguments, stdin);
            }
            return CallAnswer::Ready(output);
        }
        let output = match run(&mut self.run, now, name, arguments, stdin) {
            Ok(Output { stdout, stderr }) => ToolOutput { exit_code: 0, stdout, stderr },
            Err(Interruption::Refused(error)) => failure(&error),
            Err(Interruption::NeedsLease) => return CallAnswer::NeedsLease,
            Err(Interruption::NeedsSecret(key)) => return CallAnswer::NeedsSecret(key),
            Err(Interruption::NeedsFile(request)) => return CallAnswer::NeedsFile(request),
            Err(Interruption::NeedsResource(key)) => return CallAnswer::NeedsResource(key),
        };
        self.run.files.forget();
        match secret::is_confidential(name) {
            true => self.recorder.record_confidential(FUNCTION, &(name, arguments, text), &output),
            false => self.recorder.record(FUNCTION, &(name, arguments, text), &output),
        }
        CallAnswer::Ready(output)
    }
}

/// Returns true if a tool has this name, or if Juju has such a tool and it returns an error here.
pub fn is_hook_tool(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name) || unsupported::is_known(name)
}

fn run(
    run: &mut HookRun,
    now: CallTime,
    name: &str,
    arguments: &[String],
    stdin: Option<&[u8]>,
) -> Result<Output, Interruption> {
    let bytes = arguments.iter().map(String::len).sum::<usize>() + stdin.map_or(0, <[u8]>::len);
    run.check_call(bytes)?;
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        return unsupported::answer(name, arguments, run.action.is_some()).map_err(Interruption::from);
    };
    match flags::parse(tool.flags, arguments)? {
        Parsed::Help => Ok(help::text(tool, Some(run)).into()),
        Parsed::Arguments { flags, positional } => {
            let file = call::output_file(&flags);
            let call = Call { run: &mut *run, now, flags, arguments: positional, stdin };
            let output = (tool.run)(call)?;
            match file {
                Some(path) => {
                    run.write_file(&path, output.stdout)?;
                    Ok(Output { stdout: String::new(), ..output })
                }
                None => Ok(output),
            }
        }
    }
}

fn failure(error: &CallError) -> ToolOutput {
    let text = error.to_string();
    let shown: String = text.chars().take(MAX_ERROR_CHARS).collect();
    ToolOutput { exit_code: error.exit_code(), stdout: String::new(), stderr: format!("ERROR {shown}\n") }
}
