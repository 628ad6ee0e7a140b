//! The commands of an executor as text, one line each.

use periapt_host_api::{
    commit::{EarlyEffect, EarlyItem, UnitCommit},
    journal::HookOutcome,
};
use periapt_uniter::executor::{ExecutorCommand, Turn, Wake};

use super::bench::Bench;

impl Bench {
    /// Returns the commands as text. Times are relative to now.
    pub(super) fn texts(&self, commands: &[ExecutorCommand]) -> Vec<String> {
        commands.iter().map(|command| self.text(command)).collect()
    }

    fn text(&self, command: &ExecutorCommand) -> String {
        match command {
            ExecutorCommand::FetchCharm(_) => "fetch charm".to_owned(),
            ExecutorCommand::ForgetCharm => "forget charm".to_owned(),
            ExecutorCommand::TakeTurn(turn) => turn_text(turn),
            ExecutorCommand::LeaveTurn => "leave turn".to_owned(),
            ExecutorCommand::Started(_) => "started".to_owned(),
            ExecutorCommand::Ended(_) => "ended".to_owned(),
            ExecutorCommand::Run(run) => format!("run {}", run.run.event.hook_name()),
            ExecutorCommand::Interrupt => "interrupt".to_owned(),
            ExecutorCommand::Commit(commit) => commit_text(commit),
            ExecutorCommand::SendEarly(items) => format!("send {}", items_text(items)),
            ExecutorCommand::Note(items) => format!("note {}", items_text(items)),
            ExecutorCommand::WakeAt(wake) => self.wake_text(*wake),
            ExecutorCommand::Depend(_) => "depend".to_owned(),
            ExecutorCommand::Tried(tried) => format!("tried: {tried:?}"),
            ExecutorCommand::Stop => "stop".to_owned(),
            ExecutorCommand::Revoked => "revoked".to_owned(),
        }
    }

    fn wake_text(&self, Wake { at, after }: Wake) -> String {
        let at = at.map(|at| format!("at {} s", at.duration_since(self.timer).as_secs()));
        let after = after.map(|after| format!("in {} ms", after.saturating_sub(self.steady).as_millis()));
        let times: Vec<_> = [at, after].into_iter().flatten().collect();
        if times.is_empty() { "wake never".to_owned() } else { format!("wake {}", times.join(" or ")) }
    }
}

fn turn_text(turn: &Turn) -> String {
    match turn {
        Turn { group: Some((_, group)), .. } => format!("take turn in group {group}"),
        Turn { memory: u64::MAX, .. } => "take turn alone".to_owned(),
        Turn { .. } => "take turn".to_owned(),
    }
}

/// Returns the outcome in the commit's journal, or the step that it makes, and the early items that it includes.
fn commit_text(commit: &UnitCommit) -> String {
    let transitions = &commit.transitions;
    let what = match commit.journal.as_ref().map(|journal| &journal.outcome) {
        Some(HookOutcome::Handled) => "handled",
        Some(HookOutcome::Unhandled) => "unhandled",
        Some(HookOutcome::Failed { .. }) => "failed",
        Some(HookOutcome::Skipped) => "skipped",
        Some(HookOutcome::Moot) => "moot",
        None if transitions.begin_task.is_some() || commit.record.begun.is_some() => "start",
        None if transitions.terminate => "termination",
        None => "step",
    };
    match commit.early.is_empty() {
        true => format!("commit {what}"),
        false => format!("commit {what} with {}", items_text(&commit.early)),
    }
}

fn items_text(items: &[EarlyItem]) -> String {
    let texts = items.iter().map(|item| match &item.effect {
        EarlyEffect::AgentStatus { status, .. } => format!("{status}"),
        EarlyEffect::Log { .. } => "log".to_owned(),
        EarlyEffect::UnitStatus { status, .. } => format!("unit {status}"),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}
