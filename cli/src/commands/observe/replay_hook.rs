//! `replay-hook`: a hook of the journal once more, in this program's own sandbox.

use std::path::PathBuf;

use clap::Args;
use periapt_archive::MAX_ARCHIVE;
use periapt_client::ClientError;
use periapt_host_api::{
    ErrorCode, Timestamp, UnitName,
    api::JournalQuery,
    journal::{HookCosts, HookOutcome, JournalRecord},
};
use periapt_trial::{CompiledCache, ReplayDifference, ReplayResult, ReplayedLine, Trial, check_replayable};
use serde::Serialize;

use super::outcome::outcome;
use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    data::DataDir,
    error::{Failure, Result, with_source},
    input,
    output::{OutputArgs, Table, Text, TextStyle, to_the_second},
};

/// Replay a hook from the journal, and compare it with its record
///
/// The hook runs here, in the sandbox that agents have, with its recorded seed, time, environment and budgets. The journal
/// answers each of its calls, so that it changes nothing. The first call that is not the recorded one ends the replay with
/// exit code 1 and shows both; so does another outcome, or other fuel on the same engine.
///
/// It is for administrators of the model: a replay takes the hook's seed and the secrets that it read. `hooks` lists the
/// hooks with their SEQ, and says which cannot be replayed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  periapt replay-hook mysql/0
  periapt replay-hook mysql/0 17 --show-output
  periapt replay-hook mysql/0 17 --charm ./mysql.charm --format json")]
pub(crate) struct ReplayHook {
    /// The unit; it may be gone
    unit: UnitName,
    /// The hook, by its Seq in `hooks`; the unit's newest one by default
    seq: Option<u64>,
    /// Show what the hook logged or wrote to its standard output and standard error
    #[arg(long)]
    show_output: bool,
    /// The charm's archive, if the controller has it no more
    #[arg(long, value_name = "FILE")]
    charm: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// A replay, beside its record.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownReplay {
    unit: UnitName,
    seq: u64,
    hook: String,
    attempt: u32,
    started_at: Timestamp,
    same: bool,
    recorded: ShownRun,
    replayed: ShownRun,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<ReplayDifference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Vec<ReplayedLine>>,
}

/// One of both runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownRun {
    outcome: HookOutcome,
    calls: u64,
    host_calls: u64,
    fuel: u64,
}

impl ShownRun {
    fn new(outcome: HookOutcome, calls: u64, costs: &HookCosts) -> Self {
        Self { outcome, calls, host_calls: costs.host_calls, fuel: costs.fuel }
    }
}

impl Verb for ReplayHook {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let record = record(&model, &self.unit, self.seq).await?;
        let named = format!("hook {} ({}) of {}", record.seq, record.event, self.unit);
        let refused = |reason: String| Failure::new(format!("{named} cannot be replayed: {reason}"));
        check_replayable(&record).map_err(|error| refused(error.to_string()))?;
        let cache =
            CompiledCache::open(&DataDir::cache_from_environment()?.join("compiled")).map_err(with_source)?;
        let trial = match &self.charm {
            Some(path) => Trial::open(&input::regular_bytes(path, MAX_ARCHIVE as u64)?, &cache),
            None => Trial::open(archive(&model, &record).await?.as_ref(), &cache),
        };
        let trial = trial.map_err(|error| refused(error.to_string()))?;
        let replayed = trial.replay(&self.unit, &record).await.map_err(|error| refused(error.to_string()))?;
        let shown = shown(self.unit, &record, replayed, self.show_output.then_some(OutputShown));
        self.output.print(context.color, &shown, table)?;
        match shown.difference {
            None => Ok(()),
            Some(difference) => Err(Failure::new(format!("{named} differs from its record: {difference}"))),
        }
    }
}

/// The wish to see the hook's output.
#[derive(Debug, Clone, Copy)]
struct OutputShown;

/// Fetches the record of a hook with its calls, its seed, and the secrets in them.
async fn record(model: &Model, unit: &UnitName, seq: Option<u64>) -> Result<JournalRecord> {
    let mut query = JournalQuery { unit: Some(unit.clone()), seq, calls: true, secrets: true, after: None };
    loop {
        let page = model.client().journal_page(&model.selector, &query).await.map_err(denied)?;
        // Pages have the newest hook first.
        if let Some(entry) = page.entries.into_iter().next() {
            return Ok(entry.record);
        }
        query.after = page.next;
        if query.after.is_none() {
            let hook = seq.map_or_else(|| "no hook".to_owned(), |seq| format!("no hook {seq}"));
            return Err(Failure::new(format!("the journal has {hook} of {unit}"))
                .with_hint("`periapt hooks` lists the hooks of a unit: the controller keeps the newest"));
        }
    }
}

fn denied(error: ClientError) -> Failure {
    match error {
        ClientError::Refused(refusal) if refusal.code == ErrorCode::PermissionDenied => Failure::new(
            "permission denied: a replay needs admin access to the model, because it takes the hook's seed and secrets",
        ),
        other => other.into(),
    }
}

/// Fetches the archive of the charm that a hook ran, by its digest.
async fn archive(model: &Model, record: &JournalRecord) -> Result<impl AsRef<[u8]>> {
    model.client().fetch_charm(&record.charm).await.map_err(|error| match error {
        ClientError::Refused(refusal) if refusal.code == ErrorCode::NotFound => Failure::new(format!(
            "the controller does not have the charm that the hook ran, {}",
            record.charm
        ))
        .with_hint("it keeps charms that applications use; `--charm FILE` takes a copy of the archive"),
        other => other.into(),
    })
}

fn shown(
    unit: UnitName,
    record: &JournalRecord,
    replayed: ReplayResult,
    output: Option<OutputShown>,
) -> ShownReplay {
    let ReplayResult { outcome, costs, calls, difference, notes, log } = replayed;
    let recorded = u64::try_from(record.calls.calls.len()).unwrap_or(u64::MAX);
    ShownReplay {
        unit,
        seq: record.seq,
        hook: record.event.to_string(),
        attempt: record.attempt,
        started_at: record.started_at,
        same: difference.is_none(),
        recorded: ShownRun::new(record.outcome.clone(), recorded, &record.costs),
        replayed: ShownRun::new(outcome, calls, &costs),
        difference,
        notes,
        output: output.map(|OutputShown| log),
    }
}

fn table(replay: &ShownReplay) -> Text {
    let mut head = Table::new(["Seq", "Time", "Unit", "Hook", "Attempt"]).right(4);
    head.row([
        replay.seq.to_string().into(),
        to_the_second(replay.started_at).into(),
        replay.unit.to_string().into(),
        replay.hook.as_str().into(),
        replay.attempt.into(),
    ]);
    let mut runs = [2, 3, 4]
        .into_iter()
        .fold(Table::new(["Run", "Result", "Calls", "Host calls", "Fuel"]), Table::right);
    for (name, run) in [("recorded", &replay.recorded), ("replayed", &replay.replayed)] {
        runs.row([
            name.into(),
            outcome(&run.outcome).into(),
            run.calls.to_string().into(),
            run.host_calls.to_string().into(),
            run.fuel.to_string().into(),
        ]);
    }
    let verdict = match replay.same {
        true => Text::painted("the replay is the same\n", TextStyle::Good),
        false => Text::painted("the replay differs\n", TextStyle::Bad),
    };
    let notes = replay.notes.iter().map(|note| Text::from(format!("note: {note}\n")));
    let verdict = Text::joined([verdict].into_iter().chain(notes), "");
    let parts =
        [Some(head.render()), Some(runs.render()), Some(verdict), replay.output.as_deref().map(lines)];
    Text::joined(parts.into_iter().flatten(), "\n")
}

/// Draws the hook's output.
fn lines(output: &[ReplayedLine]) -> Text {
    let mut table = Table::new(["Level", "Module", "Message"]);
    for ReplayedLine { level, module, message } in output {
        table.row([level.to_string().into(), module.as_str().into(), message.as_str().into()]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, Revision, event::Event};

    use super::*;

    fn replay(fuel: u64, difference: Option<ReplayDifference>, output: Option<OutputShown>) -> ShownReplay {
        let digests = (Digest::of(b""), Digest::of(b""));
        let (outcome, at) = (HookOutcome::Handled, Timestamp::UNIX_EPOCH);
        let record = JournalRecord::of_no_run(7, Event::Install, outcome.clone(), Revision(1), digests, at);
        let costs = HookCosts { fuel: 500, host_calls: 4, ..HookCosts::default() };
        let record = JournalRecord { attempt: 1, costs: costs.clone(), ..record };
        let line = ReplayedLine {
            level: periapt_host_api::logs::LogLevel::Info,
            module: "unit.a/0.juju-log".to_owned(),
            message: "installed".to_owned(),
        };
        let costs = HookCosts { fuel, ..costs };
        let notes = vec!["one".to_owned()];
        let replayed = ReplayResult { outcome, costs, calls: 0, difference, notes, log: vec![line] };
        shown("a/0".parse().unwrap(), &record, replayed, output)
    }

    fn drawn(replay: &ShownReplay) -> String {
        anstream::adapter::strip_str(&table(replay)).to_string()
    }

    #[test]
    fn a_replay_is_shown_beside_its_record() {
        let text = "Seq  Time                  Unit  Hook     Attempt\n\
                    7    1970-01-01 00:00:00Z  a/0   install        1\n\
                    \n\
                    Run       Result  Calls  Host calls  Fuel\n\
                    recorded  ok          0           4   500\n\
                    replayed  ok          0           4   500\n\
                    \n\
                    the replay is the same\n\
                    note: one\n";
        assert_eq!(drawn(&replay(500, None, None)), text);
        let with_output = drawn(&replay(500, None, Some(OutputShown)));
        assert_eq!(
            with_output,
            format!("{text}\nLevel  Module             Message\nINFO   unit.a/0.juju-log  installed\n")
        );
    }

    #[test]
    fn a_difference_is_data_for_programs() {
        let difference = ReplayDifference::Fuel { recorded: 500, replayed: 501 };
        let differing = replay(501, Some(difference), None);
        assert!(drawn(&differing).contains("the replay differs\n"));
        let json = serde_json::to_value(&differing).unwrap();
        assert_eq!(json["same"], false);
        assert_eq!(json["difference"]["fuel"]["replayed"], 501);
        assert_eq!(json.get("output"), None);
    }
}
