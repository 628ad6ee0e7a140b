//! `usage`: the cost of hooks and workloads, by unit and application.

use std::collections::BTreeSet;

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    usage::{ModelUsage, Usage as Used, WorkloadUsage},
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Table, Text, TextStyle},
};

/// Show the usage of hooks and workloads: CPU time, memory, calls to the host, traffic
///
/// The counters of a unit's hooks grow for as long as it lives; then its application keeps them, and the model after that.
/// CPU time of hooks is counted by instructions, so that it is the same on every machine. Workloads are shown as their
/// agents reported them last, at most five minutes ago; their times, connections and bytes grow for as long as the unit
/// lives.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt usage\n  periapt usage wordpress --format json")]
pub(crate) struct Usage {
    /// The applications; all of the model's, if none is named
    applications: Vec<ApplicationName>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Usage {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let usage = model.client().usage(&model.selector).await?;
        let usage = only(usage, self.applications.into_iter().collect())?;
        self.output.print(context.color, &usage, table)
    }
}

/// Returns the usage of some applications, in sum and for each.
fn only(mut usage: ModelUsage, wanted: BTreeSet<ApplicationName>) -> Result<ModelUsage> {
    if wanted.is_empty() {
        return Ok(usage);
    }
    if let Some(unknown) = wanted.iter().find(|name| !usage.applications.contains_key(*name)) {
        return Err(Failure::new(format!("application {:?} not found", unknown.as_str())));
    }
    usage.applications.retain(|name, _| wanted.contains(name));
    (usage.total, usage.removed) = (Used::default(), Used::default());
    usage.workloads = WorkloadUsage::default();
    for application in usage.applications.values() {
        usage.total.add(&application.total);
        for workloads in application.workloads.values() {
            usage.workloads.add(workloads);
        }
    }
    Ok(usage)
}

fn table(usage: &ModelUsage) -> Text {
    let heading =
        ["Application", "Unit", "Hooks", "Failed", "CPU s", "Wall s", "Peak MiB", "Calls", "Log KiB"];
    let mut table = (2..heading.len()).fold(Table::new(heading), Table::right);
    let mut row = |application: &str, unit: &str, used: &Used| {
        let failed = used.failed.to_string();
        table.row([
            application.into(),
            unit.into(),
            used.hooks.to_string().into(),
            (failed.as_str(), if used.failed == 0 { TextStyle::Faint } else { TextStyle::Bad }).into(),
            in_seconds(used.cpu_us()).into(),
            in_seconds(used.wall_us).into(),
            used.peak_memory.div_ceil(1 << 20).to_string().into(),
            used.host_calls.to_string().into(),
            used.log_bytes.div_ceil(1 << 10).to_string().into(),
        ]);
    };
    for (name, application) in &usage.applications {
        for (unit, used) in &application.units {
            row(name.as_str(), &unit.to_string(), used);
        }
        if !application.removed.is_empty() {
            row(name.as_str(), "(removed)", &application.removed);
        }
        if application.units.len() != 1 || !application.removed.is_empty() {
            row(name.as_str(), "", &application.total);
        }
    }
    if !usage.removed.is_empty() {
        row("(removed)", "", &usage.removed);
    }
    row("total", "", &usage.total);
    let workloads = (!usage.workloads.is_none()).then(|| workloads(usage));
    Text::joined([Some(table.render()), workloads].into_iter().flatten(), "\n")
}

/// Returns the table of the units with workloads.
fn workloads(usage: &ModelUsage) -> Text {
    let heading = [
        "Application",
        "Unit",
        "Workloads",
        "Memory MiB",
        "Limit MiB",
        "CPU s",
        "Storage MiB",
        "Connections",
        "In KiB",
        "Out KiB",
    ];
    let mut table = (2..heading.len()).fold(Table::new(heading), Table::right);
    let mut row = |application: &str, unit: &str, used: &WorkloadUsage| {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20).to_string();
        let kibibytes = |bytes: u64| bytes.div_ceil(1 << 10).to_string();
        table.row([
            application.into(),
            unit.into(),
            used.containers.to_string().into(),
            mebibytes(used.memory).into(),
            mebibytes(used.memory_limit).into(),
            in_seconds(used.cpu_ms.saturating_mul(1_000)).into(),
            mebibytes(used.storage).into(),
            used.connections.to_string().into(),
            kibibytes(used.received).into(),
            kibibytes(used.sent).into(),
        ]);
    };
    for (name, application) in &usage.applications {
        for (unit, used) in &application.workloads {
            row(name.as_str(), &unit.to_string(), used);
        }
    }
    row("total", "", &usage.workloads);
    table.render()
}

/// Formats seconds with milliseconds, because most hooks take less than one second.
fn in_seconds(microseconds: u64) -> String {
    let milliseconds = microseconds.div_ceil(1_000);
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::usage::{ApplicationUsage, FUEL_PER_SECOND};

    use super::*;

    fn used(hooks: u64) -> Used {
        Used {
            hooks,
            failed: hooks / 4,
            fuel: hooks * FUEL_PER_SECOND / 2,
            wall_us: hooks * 1_234_567,
            peak_memory: hooks << 20,
            host_calls: hooks * 7,
            log_bytes: hooks * 1_000,
        }
    }

    fn model() -> ModelUsage {
        let mut model = ModelUsage { removed: used(1), total: used(8), ..ModelUsage::default() };
        let mut blog = ApplicationUsage { removed: used(2), total: used(6), ..ApplicationUsage::default() };
        blog.units.insert("blog/1".parse().unwrap(), used(4));
        let mut db = ApplicationUsage { total: used(1), ..ApplicationUsage::default() };
        db.units.insert("db/0".parse().unwrap(), used(1));
        model.applications.insert("blog".parse().unwrap(), blog);
        model.applications.insert("db".parse().unwrap(), db);
        model
    }

    #[test]
    fn each_unit_application_and_what_is_gone_has_its_line() {
        let text = anstream::adapter::strip_str(&table(&model())).to_string();
        let expected = "\
Application  Unit       Hooks  Failed  CPU s  Wall s  Peak MiB  Calls  Log KiB
blog         blog/1         4       1  2.000   4.939         4     28        4
blog         (removed)      2       0  1.000   2.470         2     14        2
blog                        6       1  3.000   7.408         6     42        6
db           db/0           1       0  0.500   1.235         1      7        1
(removed)                   1       0  0.500   1.235         1      7        1
total                       8       2  4.000   9.877         8     56        8
";
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn units_with_workloads_have_a_table_of_their_own() {
        let mut model = model();
        let used = WorkloadUsage {
            containers: 2,
            memory_limit: 2 << 30,
            memory: 5 << 20,
            cpu_ms: 1_500,
            storage: 1,
            connections: 3,
            received: 2_048,
            sent: 1,
        };
        let blog = model.applications.get_mut(&"blog".parse().unwrap()).unwrap();
        blog.workloads.insert("blog/1".parse().unwrap(), used);
        model.workloads = used;
        let text = anstream::adapter::strip_str(&table(&model)).to_string();
        let expected = "
Application  Unit    Workloads  Memory MiB  Limit MiB  CPU s  Storage MiB  Connections  In KiB  Out KiB
blog         blog/1          2           5       2048  1.500            1            3       2        1
total                        2           5       2048  1.500            1            3       2        1
";
        assert!(text.ends_with(expected), "{text}");
        let none = only(model, ["db".parse().unwrap()].into()).unwrap();
        assert!(none.workloads.is_none());
    }

    #[test]
    fn of_named_applications_alone_the_total_is_told() {
        let usage = only(model(), ["db".parse().unwrap()].into()).unwrap();
        assert_eq!((usage.total, usage.applications.len()), (used(1), 1));
        assert!(usage.removed.is_empty());
        let error = only(model(), ["shop".parse().unwrap()].into()).unwrap_err();
        assert_eq!(error.to_string(), "application \"shop\" not found");
    }
}
