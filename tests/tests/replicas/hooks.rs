//! Hooks while controllers and agents fail: two agents run units that count their hooks, and an operator changes the units'
//! settings all the time. Afterwards each unit's count and ledger are those of its journal, and no two units were told at
//! one time that they lead.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use futures_util::TryStreamExt as _;
use periapt_client::{Client, ClientError, Identity, Options, Trust};
use periapt_host_api::{
    Digest, Timestamp, UnitName,
    access::ModelAccess,
    api::{ModelSelector, UnitDetails},
    command::{Command, ControllerCommand, Deploy, EndpointSelector, Placement},
    logs::LogQuery,
    record::Operation,
    status::AgentStatus,
    user::{NewApiToken, TokenScope},
};
use periapt_tests::{HookHistory, Installation, RunningProcess, packed, signal};

use crate::{
    site::{Site, UNTIL, controller},
    story::Story,
};

/// The model, and the application whose units count.
const NAME: &str = "storm";
/// An application without units: a unit that is related to it has only its own bag.
const DESK: &str = "desk";
/// The units of each agent.
const EACH: usize = 2;
/// The least pause between two changes. Each makes a unit run a hook for itself and one for each of its peers.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// The number of looks without work after which the units count as settled.
const CALM: u32 = 12;
/// The longest wait for one answer: a controller that is paused gives none.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The time for which a unit leads that was told so, in seconds. One is left for clocks and for the way of an answer into
/// the log.
const LEADS_FOR: i64 = 30 - 1;
/// A day, in seconds: longer than the rounds.
const DAY: u64 = 86_400;

/// An agent on one of the hosts, beside its controller.
pub(crate) struct Agent {
    name: &'static str,
    host: Arc<Installation>,
    url: String,
    process: RunningProcess,
}

impl Agent {
    /// Starts an agent, which joins the controller of its host.
    pub(crate) fn join(host: &Arc<Installation>, name: &'static str) -> anyhow::Result<Self> {
        let url = url_of(host)?;
        let mut process = host.agent(name, [])?;
        let line = process.first_line()?;
        ensure!(line == format!("ready {name}"), "{line}");
        Ok(Self { name, host: Arc::clone(host), url, process })
    }

    /// Sends the keeper a signal.
    pub(crate) fn signal(&self, name: &str) -> anyhow::Result<()> {
        signal(self.process.id(), name)
    }

    /// Starts the keeper again after it was killed.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        let run = ["agent", "run", "--controller", &self.url, "--name", self.name, "--data", self.name];
        self.process = self.host.spawn(run)?;
        Ok(())
    }
}

/// The operator of the units.
pub(crate) struct Hooks {
    client: Client,
    model: ModelSelector,
    units: Vec<UnitName>,
    history: HookHistory,
    /// The number of the last change.
    note: u64,
}

impl Hooks {
    /// Makes the model, with units on the agents of the site.
    pub(crate) async fn prepare(site: &Site) -> anyhow::Result<Self> {
        let client = everywhere(site).await?;
        let model: ModelSelector = NAME.parse()?;
        let local = on_socket(site.host(0)?)?;
        local.controller_command(ControllerCommand::add_model(NAME.parse()?)).await?;
        let archive = fs::read(packed("probe", site.host(0)?.path())?)?;
        let charm = local.upload_charm(archive.into()).await?.digest;
        let placement: Vec<_> = site
            .agents
            .iter()
            .flat_map(|agent| std::iter::repeat_n(agent.name, EACH))
            .map(|name| Ok(Placement::Agent(name.parse()?)))
            .collect::<anyhow::Result<_>>()?;
        let count = placement.len();
        let config = [("ledger".to_owned(), "true".to_owned())].into();
        let storm = Deploy { placement, config, ..deploy(charm, NAME, count.try_into()?)? };
        let end = |text: &str| -> anyhow::Result<EndpointSelector> {
            let (application, endpoint) = text.split_once(':').context("an endpoint")?;
            Ok(EndpointSelector { application: application.parse()?, endpoint: Some(endpoint.parse()?) })
        };
        let (first, second) = (end(&format!("{NAME}:tally"))?, end(&format!("{DESK}:desk"))?);
        // Work that a clock makes due comes between two looks.
        let quiet = [("update-status-hook-interval".to_owned(), "0".to_owned())].into();
        for command in [
            Command::SetModelConfig { set: quiet, reset: Vec::new() },
            Command::Deploy(deploy(charm, DESK, 0)?),
            Command::Deploy(storm),
            Command::Integrate { first, second, via: Vec::new() },
        ] {
            local.command(&model, command).await?;
        }
        let units = (0..count).map(|number| Ok(format!("{NAME}/{number}").parse()?));
        let units = units.collect::<anyhow::Result<_>>()?;
        Ok(Self { client, model, units, history: HookHistory::default(), note: 0 })
    }

    /// Changes the settings until the rounds are over, as often as a client with this pause sends three commands, and then
    /// checks what the units have done. Returns the number of their hooks.
    pub(crate) async fn run(mut self, story: &Story, pause: Duration) -> anyhow::Result<usize> {
        while !story.ended.load(Ordering::SeqCst) {
            self.change().await?;
            self.follow().await?;
            tokio::time::sleep(PAUSE + 3 * pause).await;
        }
        let settled = self.settled().await?;
        settled.iter().try_for_each(|unit| self.history.audit(unit))?;
        Ok(self.history.journals.values().map(BTreeMap::len).sum())
    }

    /// Has all units run a hook, which asks if its unit leads.
    async fn change(&mut self) -> anyhow::Result<()> {
        self.note += 1;
        let script = format!("config-changed: tool is-leader\n*: status active {}", message(self.note));
        let set = BTreeMap::from([("script".to_owned(), script)]);
        // A change that is made twice is made once.
        self.ask(async |client, model| {
            let change = Command::SetConfig {
                application: NAME.parse().map_err(|_| ClientError::Local("a name".to_owned()))?,
                set: set.clone(),
                reset: Vec::new(),
            };
            client.command(model, change).await
        })
        .await?;
        Ok(())
    }

    /// Collects new hooks of the journal before the controller drops them. Returns their number.
    async fn follow(&mut self) -> anyhow::Result<u64> {
        let mut new = 0;
        for unit in self.units.clone() {
            let journal = self.ask(async |client, model| client.journal(model, Some(&unit)).await).await?;
            let shown = journal.entries.into_iter().map(|entry| entry.record).collect();
            new += self.history.enter(&unit, shown)?;
        }
        Ok(new)
    }

    /// Waits until all units have followed the last change and are at rest.
    async fn settled(&mut self) -> anyhow::Result<Vec<UnitDetails>> {
        let (began, mut calm) = (Instant::now(), 0);
        loop {
            let new = self.follow().await?;
            let mut units = Vec::new();
            for unit in &self.units {
                units.push(self.ask(async |client, model| client.unit(model, unit).await).await?);
            }
            let follows = |unit: &UnitDetails| {
                unit.agent_status.status == AgentStatus::Idle
                    && unit.record.operation == Operation::Continue
                    && unit.workload_status.message == message(self.note)
            };
            calm = if new == 0 && units.iter().all(follows) { calm + 1 } else { 0 };
            if calm == CALM {
                return Ok(units);
            }
            let found: Vec<_> = units
                .iter()
                .map(|unit| (&unit.name, unit.agent_status.status, &unit.workload_status.message))
                .collect();
            ensure!(began.elapsed() < UNTIL, "the units do not follow note {}: {found:?}", self.note);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Repeats a request until a controller answers.
    async fn ask<T>(
        &self,
        question: impl AsyncFn(&Client, &ModelSelector) -> Result<T, ClientError>,
    ) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            match question(&self.client, &self.model).await {
                Ok(answer) => return Ok(answer),
                Err(error) if may_be_repeated(&error) && began.elapsed() < UNTIL => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The answers of agents that a unit leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leaderships {
    /// The number of answers.
    pub(crate) told: usize,
    /// A line for each two answers to two units, one after the other, between which less time passed than a unit leads for.
    pub(crate) overlapping: Vec<String>,
}

impl Leaderships {
    /// Judges answers by their times and units, in the order of the times.
    fn of(told: &[(Timestamp, &str)]) -> Self {
        let overlapping = told.windows(2).filter_map(|pair| {
            let [(before, former), (after, next)] = pair else { return None };
            let apart = after.as_second() - before.as_second();
            let overlap = former != next && apart < LEADS_FOR;
            overlap.then(|| format!("{former} at {before}, and {next} at {after}"))
        });
        Self { told: told.len(), overlapping: overlapping.collect() }
    }
}

/// Returns when units were told that they lead, as the units' logs tell. The clocks of the agents' hosts must be this
/// machine's.
pub(crate) async fn leaderships(site: &Site) -> anyhow::Result<Leaderships> {
    let query = LogQuery { replay: true, include: vec![NAME.to_owned()], ..LogQuery::default() };
    let client = everywhere(site).await?;
    let lines: Vec<_> = client.logs(&NAME.parse()?, &query).await?.try_collect().await?;
    let told = lines.iter().filter(|line| line.message.starts_with("tool is-leader: 0 True"));
    let mut told: Vec<(Timestamp, &str)> = told.map(|line| (line.at, line.entity.as_str())).collect();
    told.sort();
    Ok(Leaderships::of(&told))
}

fn message(note: u64) -> String {
    format!("note {note}")
}

fn deploy(charm: Digest, application: &str, units: u32) -> anyhow::Result<Deploy> {
    Ok(Deploy { application: Some(application.parse()?), ..Deploy::of(charm, units) })
}

/// Returns true if nobody answered, or only later. What these requests ask for can be asked twice.
pub(crate) fn may_be_repeated(error: &ClientError) -> bool {
    error.is_temporary() || error.refusal().is_none()
}

/// Returns the URL of a host's controller.
pub(crate) fn url_of(host: &Installation) -> anyhow::Result<String> {
    let shown = controller(host)?;
    let url = shown.pointer("/details/url").and_then(serde_json::Value::as_str);
    Ok(url.context("a URL")?.to_owned())
}

/// Returns a client of a host's controller alone.
pub(crate) fn on_socket(host: &Installation) -> anyhow::Result<Client> {
    let url = format!("unix://{}", host.socket("local").display());
    Ok(Client::new(Options::new(url, Identity::Local))?)
}

/// Returns a client of all controllers, which shows an API token of the operator's.
async fn everywhere(site: &Site) -> anyhow::Result<Client> {
    let first = site.host(0)?;
    let urls = site.hosts.iter().map(|host| url_of(host)).collect::<anyhow::Result<Vec<_>>>()?;
    let authority = fs::read_to_string(authority_of(first.path()))?;
    let scope = TokenScope { access: ModelAccess::Admin, models: Vec::new() };
    let name = format!("storm-{}", Timestamp::now().as_millisecond());
    let token = NewApiToken { name, scope, lifetime_seconds: DAY };
    let token = on_socket(first)?.make_token(&token).await?.token;
    let mut options =
        Options::new(urls.join(","), Identity::Token(token)).with_trust(Trust::Authority(authority));
    options.answer_within = ANSWER_WITHIN;
    Ok(Client::new(options)?)
}

fn authority_of(place: &Path) -> std::path::PathBuf {
    place.join("data/controllers/local/controller/ca.pem")
}

#[test]
fn two_units_that_were_told_at_one_time_that_they_lead_are_found() -> anyhow::Result<()> {
    let at = |second: i64| Timestamp::from_second(1_700_000_000 + second);
    let judged = |told: &[(i64, &'static str)]| {
        let told = told.iter().map(|(second, unit)| Ok((at(*second)?, *unit)));
        Ok::<_, anyhow::Error>(Leaderships::of(&told.collect::<anyhow::Result<Vec<_>>>()?))
    };
    let one_after_the_other = judged(&[(0, "a/0"), (20, "a/0"), (20 + LEADS_FOR, "a/1")])?;
    assert_eq!(one_after_the_other, Leaderships { told: 3, overlapping: Vec::new() });
    let too_soon = judged(&[(0, "a/0"), (20, "a/0"), (19 + LEADS_FOR, "a/1"), (90, "a/0")])?;
    assert_eq!((too_soon.told, too_soon.overlapping.len()), (4, 1), "{too_soon:?}");
    Ok(())
}
