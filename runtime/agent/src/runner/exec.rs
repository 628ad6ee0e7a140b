//! One hook tool that an operator runs (`hook-model.md` C-9). Its context is a hook's; nothing of the charm is loaded,
//! so it runs in this process, within the bounds of one call.

use std::sync::Arc;

use periapt_hook::{
    ActionGathered, Answer, CallError, ExecFailure, FileError, Gathered, HookContext, MAX_ASKED,
};
use periapt_host_api::{
    TaskId, Timestamp,
    action::TaskResults,
    journal::{HookOutcome, JournalRecord},
    view::View,
};
use periapt_sandbox::{HookServices as _, Seed};
use periapt_uniter::{ActionEnd, ActionReturn, HookRun};

use super::{
    World,
    commit::Outcome,
    hook::{self, Services},
    outbox::Outbox,
};

/// What a tool asked for too often, which no tool does.
const UNDECIDED: &str = "the tool stayed undecided";

/// Runs the tool until it ends or is to stop.
pub(super) async fn execute(
    world: &Arc<World>,
    view: View,
    run: &HookRun,
    task: TaskId,
    outbox: &Arc<Outbox>,
) -> (ActionEnd, Outcome) {
    let journal = hook::journal(run, Timestamp::now(), HookOutcome::Handled);
    let context = hook::random().and_then(|seed| hook::context(world, &view, run, Seed(seed)));
    let mut context = match context {
        Ok(context) => context,
        Err(message) => return unable(run, journal, message),
    };
    let services = Services::new(world, run, outbox);
    let asked = tokio::select! {
        biased;
        asked = ask(&mut context, &services) => asked,
        () = services.interrupted() => {
            let end = ActionEnd::of(&run.unit, ActionReturn::Stopped, None, TaskResults::default(), false);
            return (end, Outcome { journal: Some(failed(journal, "it was stopped")), ..Outcome::default() });
        }
    };
    let code = match asked {
        Ok(code) => code,
        Err(message) => return unable(run, journal, message),
    };
    let Gathered { effects, leader_term, status_set, action, early, calls, .. } = context.finish();
    outbox.push(early);
    let ActionGathered { values, failed: said, stdout, stderr } = action.unwrap_or_default();
    let results = TaskResults { return_code: 0, stdout, stderr, values };
    let end = ActionEnd::of(&run.unit, ActionReturn::Exited { code: code.into() }, said, results, status_set);
    tracing::debug!(unit = %run.unit, %task, code, "a tool was run");
    let journal = Some(JournalRecord { calls, ..journal });
    (end, Outcome { effects, leader_term, journal, ..Outcome::default() })
}

/// Makes the call, and gives it what it asks for. There are no files: no guest has written any.
async fn ask(context: &mut HookContext, services: &Services) -> Result<u8, String> {
    for _ in 0..=MAX_ASKED {
        match context.exec(services.now()) {
            Answer::Ready(result) => return result.map_err(|error: ExecFailure| error.to_string()),
            Answer::NeedsLease => {
                let lease = services.renew_lease().await;
                context.lease_renewed(lease);
            }
            Answer::NeedsSecret(key) => {
                let content = services.fetch_secret(key).await;
                context.secret_fetched(key, content);
            }
            Answer::NeedsResource(key) => {
                let text = "could not download resource: a tool that is run from outside has no files";
                context.resource_fetched(key, Err(CallError::NotSupported(text.to_owned())));
            }
            Answer::NeedsFile(request) => context.file_answered(request, Err(FileError::NoFiles)),
        }
    }
    Err(UNDECIDED.to_owned())
}

/// Nothing was run, and nothing is committed but that.
fn unable(run: &HookRun, journal: JournalRecord, message: String) -> (ActionEnd, Outcome) {
    let journal = Some(failed(journal, &message));
    let returned = ActionReturn::Failed { code: 1, message };
    let end = ActionEnd::of(&run.unit, returned, None, TaskResults::default(), false);
    (end, Outcome { journal, ..Outcome::default() })
}

fn failed(journal: JournalRecord, message: &str) -> JournalRecord {
    JournalRecord { outcome: HookOutcome::Failed { message: message.to_owned() }, ..journal }
}
