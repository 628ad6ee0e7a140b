//! `show-controller`

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use periapt_client::Client;
use periapt_host_api::{
    JUJU_VERSION,
    command::{ControllerInfo, FailingWorker, LogUse, MemberRole, ModelSummary},
    program::RunningProgram,
    user::UserDetails,
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, Controller, ControllerArg, models_by_name, remember},
    data::ControllerName,
    error::{Failure, Result},
    output::OutputArgs,
    print::identity::{CLOUD, REGION},
};

/// The pause between two looks at a controller that does not show its state.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Show details of controllers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt show-controller\n  periapt show-controller local --format json")]
pub(crate) struct ShowController {
    /// The controllers; none: the current one
    controllers: Vec<ControllerName>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    controller: ControllerArg,
}

/// A controller as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownController {
    details: Details,
    models: BTreeMap<String, ShownModel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_model: Option<String>,
    account: Account,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Details {
    /// Juju's name in YAML; its JSON has `uuid`. Both formats have both.
    controller_uuid: String,
    uuid: String,
    api_endpoints: Vec<String>,
    cloud: &'static str,
    region: &'static str,
    agent_version: &'static str,
    /// The certificate of the controller's authority; empty in entries of earlier versions.
    ca_cert: String,
    url: String,
    periapt_version: String,
    engine: String,
    writable: bool,
    /// The reason why it accepts no writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// True if it is not up to date with its log, and shows no state until it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
    /// The level of what the controller stores.
    level: u32,
    /// The object store that has the blobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    blobs: Option<String>,
    /// The version and the digest of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The last program that it did not take, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_program: Option<String>,
    /// The program that all controllers and agents are to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_program: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    controller_machines: BTreeMap<String, ShownMember>,
    /// The size of the log that the controllers share.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<ShownLog>,
    /// The workers of the controller that answered which failed a short while ago, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failing_workers: BTreeMap<String, ShownFailure>,
}

/// A worker of the controller that failed a short while ago.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownFailure {
    since: String,
    failures: u32,
    message: String,
}

impl ShownFailure {
    fn of(worker: FailingWorker) -> (String, Self) {
        let FailingWorker { name, since, failures, message } = worker;
        (name, Self { since: since.to_string(), failures, message })
    }
}

/// The log that several controllers share.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownLog {
    entries: u64,
    bytes: u64,
    /// The most bytes that it has.
    bound: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl ShownLog {
    fn of(log: LogUse) -> Self {
        let LogUse { entries, bytes, bound } = log;
        let message = log.is_large().then(|| {
            "more than half of the bound: a controller that is away or does not keep up needs the entries, and those \
             beyond the bound are trimmed"
                .to_owned()
        });
        Self { entries, bytes, bound, message }
    }
}

/// One of several controllers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownMember {
    /// Empty before its first start.
    #[serde(skip_serializing_if = "String::is_empty")]
    url: String,
    role: MemberRole,
    revision: u64,
    /// The revisions that it has not applied yet, as far as is known.
    behind: u64,
    /// The highest level that its program knows.
    level: u32,
    /// True if it is not up to date with the log, and shows no state until it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
    /// True if the log does not have any more what it needs next: it takes the state of the controller that leads.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut_off: bool,
    /// True if it has not reported to the controller that leads for some seconds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    away: bool,
    /// The version and the digest of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// The last program that it did not take, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_program: Option<String>,
    /// Its workers that failed a short while ago, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    failing_workers: BTreeMap<String, ShownFailure>,
}

/// Returns the controllers of one log, by name.
fn members(info: &ControllerInfo) -> BTreeMap<String, ShownMember> {
    let newest = info.members.iter().map(|member| member.revision.0).max().unwrap_or_default();
    let shown = info.members.iter().map(|member| {
        let (revision, url) = (member.revision.0, member.url.clone());
        let (role, level) = (member.role, member.level.0);
        let (stale, cut_off, away) = (member.stale, member.cut_off, member.away);
        let (program, failed_program) = programs(member.program.as_ref());
        let behind = newest - revision;
        let failing_workers = member.failing_workers.iter().cloned().map(ShownFailure::of).collect();
        let shown = ShownMember {
            url,
            role,
            revision,
            behind,
            level,
            stale,
            cut_off,
            away,
            program,
            failed_program,
            failing_workers,
        };
        (member.name.clone(), shown)
    });
    shown.collect()
}

/// Returns what a controller tells of itself, with the user's own account and the models; without these if it is not up to
/// date with its log, and shows no state.
async fn shown_by(client: &Client) -> Result<(ControllerInfo, Option<(UserDetails, Vec<ModelSummary>)>)> {
    let info = client.controller().await?;
    if info.stale {
        return Ok((info, None));
    }
    let state = async { Ok::<_, Failure>((client.whoami().await?, models_by_name(client).await?)) };
    let turns_stale = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let info = client.controller().await?;
            if info.stale {
                return Ok::<_, Failure>(info);
            }
        }
    };
    tokio::select! {
        biased;
        state = state => Ok((info, Some(state?))),
        // The requests for its state would be sent again until it shows one.
        stale = turns_stale => Ok((stale?, None)),
    }
}

/// Returns a program as it is shown, and the last one that was not taken.
fn programs(program: Option<&RunningProgram>) -> (Option<String>, Option<String>) {
    let failed = program.and_then(|program| program.failed.as_ref());
    let failed = failed.map(|failed| format!("{}: {}", failed.digest.short(), failed.reason));
    (program.map(RunningProgram::to_string), failed)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownModel {
    /// `model-uuid` in Juju's YAML, `uuid` in its JSON.
    model_uuid: String,
    uuid: String,
    #[serde(skip_serializing_if = "is_zero")]
    machine_count: u32,
    #[serde(skip_serializing_if = "is_zero")]
    unit_count: u32,
}

#[derive(Debug, Serialize)]
struct Account {
    user: String,
    access: String,
}

impl Verb for ShowController {
    async fn run(self, context: &Context) -> Result<()> {
        let mut named: Vec<Option<&ControllerName>> = self.controllers.iter().map(Some).collect();
        if named.is_empty() {
            named.push(self.controller.controller.as_ref());
        }
        let mut shown = BTreeMap::new();
        for name in named {
            let controller = context.controller(name)?;
            let (info, state) = shown_by(&controller.client).await?;
            remember(&context.data, &controller.name, &controller.client, &info).await?;
            // With the addresses as they are now.
            let controller =
                Controller { entry: context.controller(Some(&controller.name))?.entry, ..controller };
            let (own, models) = state.unzip();
            let models = models.into_iter().flatten().map(|model| {
                let counts = ShownModel {
                    model_uuid: model.uuid.to_string(),
                    uuid: model.uuid.to_string(),
                    machine_count: model.machines,
                    unit_count: model.units,
                };
                (model.name.to_string(), counts)
            });
            let controller_machines = members(&info);
            let (program, failed_program) = programs(info.program.as_ref());
            let target = info.target.as_ref().map(|target| &target.offer);
            let target_program = target.map(|offer| format!("{} ({})", offer.version, offer.digest.short()));
            let one = ShownController {
                details: Details {
                    controller_uuid: info.uuid.to_string(),
                    uuid: info.uuid.to_string(),
                    api_endpoints: controller.entry.servers(),
                    cloud: CLOUD,
                    region: REGION,
                    agent_version: JUJU_VERSION,
                    ca_cert: controller.entry.ca_cert.unwrap_or_default(),
                    url: controller.entry.url,
                    periapt_version: info.version,
                    engine: info.engine,
                    writable: info.writable,
                    problem: info.problem,
                    stale: info.stale,
                    level: info.level.0,
                    blobs: info.blobs,
                    program,
                    failed_program,
                    target_program,
                    controller_machines,
                    log: info.log.map(ShownLog::of),
                    failing_workers: info.failing_workers.into_iter().map(ShownFailure::of).collect(),
                },
                models: models.collect(),
                current_model: controller.entry.current_model.map(|model| model.qualified(&controller.user)),
                account: Account {
                    user: controller.user.to_string(),
                    access: own
                        .and_then(|own| own.access)
                        .map(|access| access.to_string())
                        .unwrap_or_default(),
                },
            };
            shown.insert(controller.name, one);
        }
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

/// Returns true for a count of 0, which Juju leaves out.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_above_half_of_its_bound_is_shown_with_a_warning() {
        let shown = |bytes| ShownLog::of(LogUse { entries: 3, bytes, bound: 100 });
        assert_eq!(shown(50).message, None);
        assert!(shown(51).message.unwrap().starts_with("more than half of the bound"));
    }
}
