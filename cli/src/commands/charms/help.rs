//! `help-hook-commands` and `help-action-commands`: the tools for charms and `exec`.

use clap::Args;
use periapt_hook::{HookTool, hook_tools};

use crate::{
    commands::Verb,
    context::Context,
    error::{Failure, Result},
    output::Sink,
};

/// List the hook tools, or explain one
///
/// Charms call them through the interface `hook-tools`, and operators through `exec`.
#[derive(Debug, Args)]
#[command(visible_aliases = ["help-tool", "hook-tool", "hook-tools"])]
#[command(after_help = "Examples:\n  periapt help-hook-commands\n  periapt help-hook-commands relation-get")]
pub(crate) struct HelpHookCommands {
    /// The tool; by default all of them
    hook: Option<String>,
}

/// List the tools of actions, or explain one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt help-action-commands\n  periapt help-action-commands action-set"
)]
pub(crate) struct HelpActionCommands {
    /// The tool; by default all of them
    action: Option<String>,
}

impl Verb for HelpHookCommands {
    async fn run(self, context: &Context) -> Result<()> {
        let tools = hook_tools().filter(|tool| !is_of_actions(tool)).collect();
        Sink::new(None, context.color)?.write(&explained(tools, self.hook.as_deref())?)
    }
}

impl Verb for HelpActionCommands {
    async fn run(self, context: &Context) -> Result<()> {
        let tools = hook_tools().filter(is_of_actions).collect();
        Sink::new(None, context.color)?.write(&explained(tools, self.action.as_deref())?)
    }
}

fn is_of_actions(tool: &HookTool) -> bool {
    tool.name.starts_with("action-")
}

/// Lists all tools in one line each, or explains one.
fn explained(tools: Vec<HookTool>, name: Option<&str>) -> Result<String> {
    let Some(name) = name else {
        let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
        let line = |tool: &HookTool| format!("    {:<width$}  {}\n", tool.name, tool.summary);
        return Ok(tools.iter().map(line).collect());
    };
    match tools.into_iter().find(|tool| tool.name == name) {
        Some(tool) => Ok(tool.help),
        None => Err(Failure::new(format!("unknown command {name:?}"))
            .with_hint("without a name the command lists all of them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_listed_and_explained() {
        let all = || hook_tools().collect::<Vec<_>>();
        let listed = explained(all(), None).unwrap();
        assert!(listed.lines().any(|line| line.starts_with("    relation-get ")), "{listed}");
        assert!(explained(all(), Some("is-leader")).unwrap().starts_with("Usage: is-leader [options]"));
        assert!(explained(all(), Some("ls")).is_err());
    }
}
