//! `controllers`: the controllers in the client's file, with their states.

use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use periapt_host_api::{
    JUJU_VERSION,
    command::{ControllerInfo, FailingWorker, MemberInfo},
};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    commands::Verb,
    context::{Context, Controller, remember},
    data::{ClientData, ControllerName},
    error::Result,
    output::{OutputArgs, Table, Text, TextStyle},
    print::identity::{CLOUD, REGION},
};

/// The longest wait for a controller's answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// List the controllers that this client knows
#[derive(Debug, Args)]
#[command(visible_alias = "list-controllers")]
pub(crate) struct Controllers {
    /// Accepted for compatibility with Juju; each controller is always asked
    #[arg(long, hide = true)]
    refresh: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listing {
    controllers: std::collections::BTreeMap<ControllerName, Row>,
    current_controller: Option<ControllerName>,
}

/// A controller with Juju's field names, then with this client's own fields.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    current_model: Option<String>,
    user: String,
    access: String,
    recent_server: String,
    /// Juju's name in YAML; its JSON has `uuid`. Both formats have both.
    controller_uuid: String,
    uuid: String,
    api_endpoints: Vec<String>,
    /// The certificate of the controller's authority; empty in entries of earlier versions.
    ca_cert: String,
    cloud: &'static str,
    region: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_count: Option<u32>,
    /// The controllers that share the models; none if none of them answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_machines: Option<ControllerMachines>,
    /// `available`, `read-only`, `stale` or `down`.
    status: &'static str,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    periapt_version: Option<String>,
    /// The version and the digest of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    /// The workers that failed a short while ago: their names, or `NAME of CONTROLLER` of one of several controllers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failing_workers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller_process: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_process: Option<u32>,
}

/// The number of controllers that share the models, and of those among them that can serve them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct ControllerMachines {
    /// The controllers that report, and are up to date with their log.
    active: usize,
    total: usize,
}

impl ControllerMachines {
    fn of(info: &ControllerInfo) -> Self {
        // A controller without a log knows no members, and is the only one.
        if info.members.is_empty() {
            return Self { active: 1, total: 1 };
        }
        let active = info.members.iter().filter(|member| !member.away && !member.stale).count();
        Self { active, total: info.members.len() }
    }

    /// Returns Juju's short form: `none` for one controller, `3` for three, `1/3` if one of three is active.
    fn short(self) -> (String, TextStyle) {
        match self {
            Self { total: 1, .. } => ("none".to_owned(), TextStyle::Plain),
            Self { active, total } if active < total => (format!("{active}/{total}"), TextStyle::Bad),
            Self { total, .. } => (total.to_string(), TextStyle::Plain),
        }
    }
}

impl Verb for Controllers {
    async fn run(self, context: &Context) -> Result<()> {
        let data = ClientData::read(&context.data)?;
        if data.controllers.is_empty() {
            context.say("no controllers yet: `periapt bootstrap` makes one");
        }
        let rows = data.controllers.into_keys().map(async |name| {
            let row = row(context, context.controller(Some(&name))?).await;
            Ok((name, row))
        });
        let controllers = join_all(rows).await.into_iter().collect::<Result<_>>()?;
        let listing = Listing { controllers, current_controller: data.current_controller };
        self.output.print(context.color, &listing, table)
    }
}

async fn row(context: &Context, controller: Controller) -> Row {
    let Controller { name, entry, user, client } = controller;
    let answer = async {
        let info = client.controller().await.ok()?;
        if info.stale {
            return (info.uuid == entry.uuid).then_some((info, None));
        }
        // Another controller may answer at the same address.
        let models = client.models().await.ok()?;
        let machines = models.iter().map(|model| model.machines).sum::<u32>();
        let models = u32::try_from(models.len()).unwrap_or(u32::MAX);
        let access = client.whoami().await.ok()?.access;
        (info.uuid == entry.uuid).then_some((info, Some((models, machines, access))))
    };
    let answer = timeout(ANSWERS_WITHIN, answer).await.ok().flatten();
    let (info, counts) = answer.unzip();
    if let Some(info) = &info
        && let Err(error) = remember(&context.data, &name, &client, info).await
    {
        tracing::warn!(%error, "the controllers' addresses are not recorded");
    }
    let (models, machines, access) = match counts.flatten() {
        Some((models, machines, access)) => (Some(models), Some(machines), access),
        None => (None, None, None),
    };
    let servers = entry.servers();
    Row {
        current_model: entry.current_model.map(|model| model.shown_to(&user)),
        user: user.to_string(),
        access: access.map(|access| access.to_string()).unwrap_or_default(),
        recent_server: servers.first().cloned().unwrap_or_default(),
        controller_uuid: entry.uuid.to_string(),
        uuid: entry.uuid.to_string(),
        api_endpoints: servers,
        ca_cert: entry.ca_cert.unwrap_or_default(),
        cloud: CLOUD,
        region: REGION,
        agent_version: info.as_ref().map(|_| JUJU_VERSION),
        // Juju leaves out counts of 0.
        model_count: models.filter(|count| *count > 0),
        machine_count: machines.filter(|count| *count > 0),
        controller_machines: info.as_ref().map(ControllerMachines::of),
        status: match &info {
            None => "down",
            Some(info) if info.stale => "stale",
            Some(info) if info.writable => "available",
            Some(_) => "read-only",
        },
        url: entry.url,
        periapt_version: info.as_ref().map(|info| info.version.clone()),
        program: info.as_ref().and_then(|info| info.program.as_ref()).map(ToString::to_string),
        failing_workers: info.as_ref().map(failing_workers).unwrap_or_default(),
        engine: info.map(|info| info.engine),
        controller_process: entry.local.as_ref().map(|local| local.controller.pid),
        agent_process: entry.local.and_then(|local| local.agent).map(|agent| agent.process.pid),
    }
}

/// Returns the workers that failed a short while ago, of all controllers of a log.
fn failing_workers(info: &ControllerInfo) -> Vec<String> {
    if info.members.is_empty() {
        return info.failing_workers.iter().map(|worker| worker.name.clone()).collect();
    }
    let of_member = |member: &MemberInfo| {
        let name = |worker: &FailingWorker| format!("{} of {}", worker.name, member.name);
        member.failing_workers.iter().map(name).collect::<Vec<_>>()
    };
    info.members.iter().flat_map(of_member).collect()
}

/// Draws Juju's columns, then this client's own: the state, the version and the address.
fn table(listing: &Listing) -> Text {
    let mut table = Table::new([
        "Controller",
        "Model",
        "User",
        "Access",
        "Cloud/Region",
        "Models",
        "Nodes",
        "HA",
        "Version",
        "Status",
        "Periapt",
        "Address",
    ])
    .right(5)
    .right(6)
    .right(7);
    for (name, row) in &listing.controllers {
        let current = listing.current_controller.as_ref() == Some(name);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let style = if row.status == "available" { TextStyle::Good } else { TextStyle::Bad };
        let machines = row.controller_machines.map(ControllerMachines::short);
        let (machines, machines_style) = machines.unwrap_or_else(|| ("-".to_owned(), TextStyle::Plain));
        table.row([
            format!("{name}{}", if current { "*" } else { "" }).into(),
            or_dash(row.current_model.clone()).into(),
            row.user.as_str().into(),
            row.access.as_str().into(),
            format!("{}/{}", row.cloud, row.region).into(),
            or_dash(row.model_count.map(|count| count.to_string())).into(),
            or_dash(row.machine_count.map(|count| count.to_string())).into(),
            (machines.as_str(), machines_style).into(),
            row.agent_version.unwrap_or("(unknown)").into(),
            (row.status, style).into(),
            or_dash(row.periapt_version.clone()).into(),
            (&row.url).into(),
        ]);
    }
    let failing = listing.controllers.iter().filter(|(_, row)| !row.failing_workers.is_empty());
    let lines = failing.map(|(name, row)| {
        let line = format!(
            "{name}: failing workers: {} (`periapt show-controller {name}` says why)\n",
            row.failing_workers.join(", ")
        );
        Text::painted(&line, TextStyle::Bad)
    });
    Text::joined(std::iter::once(table.render()).chain(lines), "\n")
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Revision, Timestamp, command::MemberRole};
    use serde_json::json;

    use super::*;

    fn failing(name: &str) -> FailingWorker {
        let (name, message) = (name.to_owned(), "it ended by itself".to_owned());
        FailingWorker { name, since: Timestamp::UNIX_EPOCH, failures: 2, message }
    }

    fn member(name: &str, failing_workers: Vec<FailingWorker>) -> MemberInfo {
        MemberInfo {
            name: name.into(),
            url: "https://a:1".into(),
            role: MemberRole::Follower,
            stale: false,
            cut_off: false,
            away: false,
            revision: Revision(1),
            level: periapt_host_api::LEVEL,
            program: None,
            failing_workers,
        }
    }

    fn info() -> ControllerInfo {
        let info = json!({
            "name": "prod", "uuid": uuid::Uuid::nil(), "version": "", "engine": "", "store": uuid::Uuid::nil(),
            "revision": 1, "writable": true,
        });
        serde_json::from_value(info).unwrap()
    }

    #[test]
    fn controllers_are_counted_as_juju_counts_them() {
        let shown = |info: &ControllerInfo| {
            let machines = ControllerMachines::of(info);
            (machines.short().0, serde_json::to_value(machines).unwrap())
        };
        let mut info = info();
        assert_eq!(shown(&info), ("none".to_owned(), json!({"active": 1, "total": 1})));
        info.members = vec![member("one", Vec::new())];
        assert_eq!(shown(&info), ("none".to_owned(), json!({"active": 1, "total": 1})));
        info.members = ["one", "two", "three"].map(|name| member(name, Vec::new())).into();
        assert_eq!(shown(&info), ("3".to_owned(), json!({"active": 3, "total": 3})));
        info.members[1].away = true;
        assert_eq!(shown(&info), ("2/3".to_owned(), json!({"active": 2, "total": 3})));
        info.members[2].stale = true;
        assert_eq!(shown(&info), ("1/3".to_owned(), json!({"active": 1, "total": 3})));
        info.members[1].stale = true;
        assert_eq!(shown(&info).0, "1/3", "each controller is counted once");
    }

    #[test]
    fn failing_workers_are_named_with_their_controllers_if_there_are_several() {
        let mut info = info();
        assert!(failing_workers(&info).is_empty());
        info.failing_workers = vec![failing("pruning")];
        assert_eq!(failing_workers(&info), ["pruning"]);
        info.members = vec![
            member("one", vec![failing("work"), failing("pruning")]),
            member("two", Vec::new()),
            member("three", vec![failing("copies")]),
        ];
        assert_eq!(failing_workers(&info), ["work of one", "pruning of one", "copies of three"]);
    }
}
