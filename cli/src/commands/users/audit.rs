//! `audit-log`

use clap::Args;
use periapt_host_api::audit::{AuditEntry, AuditOutcome};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Failure, Result},
    output::{OutputArgs, Table, to_the_second},
};

/// Show who did what, and verify that nothing was changed
///
/// The controller writes an entry for each command of a user, taken or refused, together with the command's changes.
/// Failed logins, invalid tokens and requests without the right to a route are counted: one entry tells of many.
/// Entries are a chain of digests, which is verified before they are shown: an entry that was changed, removed or
/// inserted is an error. For superusers alone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt audit-log\n  periapt audit-log --tail 20\n  periapt audit-log --format json"
)]
pub(crate) struct AuditLog {
    /// Show the newest entries alone; all are verified
    #[arg(short = 'n', long, value_name = "COUNT")]
    tail: Option<usize>,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

impl Verb for AuditLog {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let mut shown: Vec<AuditEntry> = Vec::new();
        let mut last: Option<AuditEntry> = None;
        let mut after: Option<String> = None;
        loop {
            let page = controller.client.audit(after.as_deref()).await?;
            for entry in page.entries {
                entry.verify(last.as_ref()).map_err(|broken| {
                    Failure::new(format!("the audit log was modified: {broken}"))
                        .with_hint("a copy of the controller's directory from before shows what was changed")
                })?;
                shown.push(entry.clone());
                last = Some(entry);
            }
            if let Some(surplus) = self.tail.and_then(|tail| shown.len().checked_sub(tail)) {
                shown.drain(..surplus);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.output.print(context.color, &shown, |shown| {
            let mut table =
                Table::new(["Number", "Time", "User", "From", "Session", "Act", "Subject", "Outcome"]);
            for AuditEntry { number, request, .. } in shown {
                let outcome = match request.outcome {
                    AuditOutcome::Done => "done".to_owned(),
                    AuditOutcome::Refused(code) => code.to_string(),
                };
                table.row([
                    number.to_string().into(),
                    to_the_second(request.at).into(),
                    request.user.as_ref().map_or("-", |user| user.as_str()).into(),
                    request.address.as_str().into(),
                    request.session.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string).into(),
                    request.act.as_str().into(),
                    request.subject.as_str().into(),
                    outcome.into(),
                ]);
            }
            table.render()
        })
    }
}
