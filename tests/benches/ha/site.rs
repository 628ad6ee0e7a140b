//! The controllers under measurement, without agents, and clients of them.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use futures_util::TryStreamExt as _;
use periapt_client::{Client, Identity, Options, Trust};
use periapt_host_api::{
    Digest, Revision, StoreId,
    api::ModelSelector,
    audit::AuditEntry,
    command::{Answer, Command, ControllerCommand, Deploy, MemberRole},
};
use periapt_log::{Entry, Log as _, LogError};
use periapt_log_etcd::{EtcdLog, EtcdOptions, testing::TestEtcd};
use periapt_store::Store as _;
use periapt_store_rocksdb::RocksStore;
use periapt_tests::{
    Acknowledged, CommandDeviations, CpuTime, Installation, InstallationGuard, packed, parts, signal,
};

/// The names of the controllers: of the first three, and of those that join later.
const NAMES: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The number of controllers that a site with a log begins with.
const FIRST: usize = 3;

/// The timeout of waits.
const UNTIL: Duration = Duration::from_secs(300);

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The setting of models that the measured commands write.
pub(crate) const SETTING: &str = "logging-config";

/// The most units that one command makes.
const MOST_AT_ONCE: usize = 1_000;

/// The CPU time of all parts, in seconds.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cpu {
    /// The time of the controller that leads, or is alone.
    pub(crate) leader: f64,
    /// The time of all other controllers.
    pub(crate) followers: f64,
    /// The time of all servers of etcd.
    pub(crate) etcd: f64,
    /// The time of the clients, which are this process.
    pub(crate) clients: f64,
}

impl Cpu {
    /// Returns the time since an earlier one for each of so many commands, in microseconds.
    pub(crate) fn each(self, before: Self, commands: u64) -> Self {
        let each = |now: f64, before: f64| (now - before) * 1e6 / commands.max(1) as f64;
        Self {
            leader: each(self.leader, before.leader),
            followers: each(self.followers, before.followers),
            etcd: each(self.etcd, before.etcd),
            clients: each(self.clients, before.clients),
        }
    }
}

/// One controller with its own store, or three that share a log.
pub(crate) struct Site {
    // Before the installations, which end their own processes.
    _guards: Vec<InstallationGuard>,
    hosts: Vec<Installation>,
    etcd: Option<TestEtcd>,
    /// The number of models that were made.
    models: AtomicUsize,
}

impl Site {
    /// Starts one controller in a new directory below `parent`.
    pub(crate) fn alone(parent: &Path) -> anyhow::Result<Self> {
        let mut site =
            Self { _guards: Vec::new(), hosts: Vec::new(), etcd: None, models: AtomicUsize::new(0) };
        site.add(parent)?.ok(["bootstrap", "local", "--no-agent"])?;
        Ok(site)
    }

    /// Starts three servers of etcd and three controllers in new directories below `parent`.
    pub(crate) fn of_three(parent: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("periapt-etcd-").tempdir_in(parent)?;
        let etcd = TestEtcd::start_in(directory, 3, &[]);
        // It waits in a runtime of its own.
        tokio::task::block_in_place(|| etcd.ready());
        let log = etcd.url().to_string();
        let mut site =
            Self { _guards: Vec::new(), hosts: Vec::new(), etcd: Some(etcd), models: AtomicUsize::new(0) };
        let first = site.add(parent)?;
        first.ok(["bootstrap", "local", "--no-agent", "--log", &log, "--member", NAMES[0]])?;
        for _ in 1..FIRST {
            site.join(parent)?;
        }
        Ok(site)
    }

    /// Lets one more controller join with an empty disk, and returns the time from the command that starts it until it
    /// serves.
    fn join(&mut self, parent: &Path) -> anyhow::Result<Duration> {
        let name = *NAMES.get(self.hosts.len()).context("a name for one more controller")?;
        let token = self.add(parent)?.path().join("token");
        let token = token.to_str().context("a path")?;
        let first = self.host(0)?;
        first.ok(["controller-token", name, "--output", token])?;
        let shown = first.json(["show-controller"])?;
        let url = shown.pointer("/local/details/url").and_then(|url| url.as_str()).context("a URL")?;
        let join = ["controller", "join", "local", "--controller", url, "--token-file", token];
        let host = self.hosts.last().context("a host")?;
        let began = Instant::now();
        host.ok(join.into_iter().chain(["--member", name]))?;
        Ok(began.elapsed())
    }

    /// Lets one more controller join with an empty disk, and returns the time from the command that starts it until it has
    /// applied all that the others had before.
    pub(crate) async fn joined(&mut self, parent: &Path) -> anyhow::Result<Duration> {
        let leader = self.leader().await?;
        let revision = self.revision(leader).await?;
        let serves = self.join(parent)?;
        let reaches = applied(&self.client(self.hosts.len() - 1)?, revision, Instant::now()).await?;
        self.settled().await?;
        Ok(serves + reaches)
    }

    /// Opens the log of the controllers.
    pub(crate) async fn log(&self) -> anyhow::Result<EtcdLog> {
        let options =
            EtcdOptions { url: self.etcd()?.url(), tls: None, fresh_id: StoreId(uuid::Uuid::nil()) };
        Ok(EtcdLog::open(&options).await?)
    }

    /// Trims all entries, as the leading controller does with what nobody needs.
    pub(crate) async fn trim(&self) -> anyhow::Result<()> {
        let log = self.log().await?;
        let end = log.end().await?;
        let last = log.read(Revision(end.0.saturating_sub(1)), usize::MAX).await?;
        let last = last.first().context("an entry")?;
        let term = Entry::decode(last.position, &last.bytes)?.term;
        log.trim(term, end).await?;
        let first = log.read(Revision(0), 1).await;
        ensure!(matches!(first, Err(LogError::Trimmed(_))), "the log was not trimmed");
        Ok(())
    }

    /// Stops the controller that joined last, and returns the bytes of all keys and values of the state in its store.
    pub(crate) async fn stored_bytes(&self) -> anyhow::Result<u64> {
        let last = self.hosts.last().context("a host")?;
        let process = last.controller_process("local")?;
        signal(process, "TERM")?;
        gone(process).await?;
        let socket = last.socket("local");
        let store = socket.parent().context("the directory of a controller")?.join("store");
        let store = RocksStore::open(&store, StoreId(uuid::Uuid::nil())).await?;
        let (mut chunks, mut bytes) = (store.load().await?.chunks, 0);
        while let Some(chunk) = chunks.try_next().await? {
            bytes += chunk.bytes() as u64;
        }
        Ok(bytes)
    }

    fn add(&mut self, parent: &Path) -> anyhow::Result<&Installation> {
        let host = Installation::below(parent)?;
        self._guards.push(InstallationGuard::of(&host)?);
        self.hosts.push(host);
        self.hosts.last().context("a host")
    }

    pub(crate) fn host(&self, number: usize) -> anyhow::Result<&Installation> {
        self.hosts.get(number).context("a host")
    }

    pub(crate) fn etcd(&self) -> anyhow::Result<&TestEtcd> {
        self.etcd.as_ref().context("a site without etcd")
    }

    /// Returns the CPU time in seconds that all parts have taken. `leader` is the number of the controller that leads.
    pub(crate) fn cpu(&self, leader: usize) -> anyhow::Result<Cpu> {
        let of = |process| CpuTime::of(process).map_or(0.0, |CpuTime { own, children }| own + children);
        let mut cpu = Cpu { clients: of(std::process::id()), ..Cpu::default() };
        for (number, host) in self.hosts.iter().enumerate() {
            let part = if number == leader { &mut cpu.leader } else { &mut cpu.followers };
            for (process, _) in parts(host)? {
                *part += of(process);
            }
        }
        let servers = self.etcd.iter().flat_map(|etcd| (0..FIRST).filter_map(|number| etcd.process(number)));
        cpu.etcd = servers.map(of).sum();
        Ok(cpu)
    }

    /// Returns a client of one controller, which repeats requests whose answers are lost.
    pub(crate) fn client(&self, number: usize) -> anyhow::Result<Client> {
        let socket = format!("unix://{}", self.host(number)?.socket("local").display());
        let options = Options::new(socket, Identity::Local)
            .with_unanswered_retry_timeout(UNTIL)
            .with_busy_retry_timeout(UNTIL);
        Ok(Client::new(options)?)
    }

    /// Returns the number of the controller that leads, once all know it.
    pub(crate) async fn leader(&self) -> anyhow::Result<usize> {
        let began = Instant::now();
        loop {
            let mut leaders = Vec::new();
            for number in 0..self.hosts.len() {
                let members = self.client(number)?.controller().await.map(|info| info.members);
                let leads =
                    members.unwrap_or_default().into_iter().find(|member| member.role == MemberRole::Leader);
                leaders.push(leads.and_then(|leads| NAMES.iter().position(|name| *name == leads.name)));
            }
            if let Some(Some(first)) = leaders.first()
                && leaders.iter().all(|leader| *leader == Some(*first))
            {
                return Ok(*first);
            }
            ensure!(began.elapsed() < UNTIL, "no controller leads");
            tokio::time::sleep(LOOK_EVERY * 10).await;
        }
    }

    /// Returns the revision of a controller.
    pub(crate) async fn revision(&self, number: usize) -> anyhow::Result<Revision> {
        Ok(self.client(number)?.controller().await?.revision)
    }

    /// Makes a model, whose name begins so.
    pub(crate) async fn model(&self, client: &Client, name: &str) -> anyhow::Result<ModelSelector> {
        let name = format!("{name}-{}", self.models.fetch_add(1, Ordering::Relaxed));
        let made = client.controller_command(ControllerCommand::add_model(name.parse()?)).await?;
        let Answer::Model { uuid } = made else { bail!("no model was made") };
        Ok(uuid.into())
    }

    /// Returns a controller's URL over TLS, and its authority.
    pub(crate) fn over_tls(&self, number: usize) -> anyhow::Result<(String, Trust)> {
        let file = std::fs::read(self.host(number)?.path().join("data/client.json"))?;
        let file: serde_json::Value = serde_json::from_slice(&file)?;
        let text = |name: &str| {
            let value = file.pointer(&format!("/controllers/local/{name}"));
            value.and_then(|value| value.as_str()).with_context(|| format!("no {name} in {file}"))
        };
        Ok((text("url")?.to_owned(), Trust::Authority(text("ca-cert")?.to_owned())))
    }

    /// Uploads the charm of the units to a controller, and returns its digest.
    pub(crate) async fn charm(&self, number: usize, client: &Client) -> anyhow::Result<Digest> {
        let archive = std::fs::read(packed("bench", self.host(number)?.path())?)?;
        Ok(client.upload_charm(archive.into()).await?.digest)
    }

    /// Deploys an application with so many units.
    pub(crate) async fn deploy(&self, number: usize, units: usize) -> anyhow::Result<()> {
        let client = self.client(number)?;
        let model = self.model(&client, "units").await?;
        let charm = self.charm(number, &client).await?;
        let deploy = Command::Deploy(Deploy { application: Some("app".parse()?), ..Deploy::of(charm, 1) });
        client.command(&model, deploy).await?;
        let mut made = 1;
        while made < units {
            let count = (units - made).min(MOST_AT_ONCE);
            let more = Command::AddUnits {
                application: "app".parse()?,
                count: count.try_into()?,
                placement: Vec::new(),
                attach_storage: Vec::new(),
            };
            client.command(&model, more).await?;
            made += count;
        }
        Ok(())
    }

    /// Waits until all controllers have the same revision.
    pub(crate) async fn settled(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            let mut revisions = Vec::new();
            for number in 0..self.hosts.len() {
                revisions.push(self.revision(number).await.ok());
            }
            let first = revisions.first().copied().flatten();
            if first.is_some() && revisions.iter().all(|revision| *revision == first) {
                return Ok(());
            }
            ensure!(began.elapsed() < UNTIL, "the controllers differ: {revisions:?}");
            tokio::time::sleep(LOOK_EVERY * 10).await;
        }
    }

    /// Compares the commands of `commits::sent` that clients were answered with what each controller shows of them.
    pub(crate) async fn deviations(&self, acknowledged: &Acknowledged) -> anyhow::Result<CommandDeviations> {
        self.settled().await?;
        let mut deviations = CommandDeviations::default();
        for number in 0..self.hosts.len() {
            let client = self.client(number)?;
            let (mut entries, mut after) = (Vec::<AuditEntry>::new(), None::<String>);
            loop {
                let page = client.audit(after.as_deref()).await?;
                entries.extend(page.entries);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let first = entries.first().map(|entry| entry.number);
            ensure!(first == Some(1), "the audit log has lost its oldest entries: it begins with {first:?}");
            let mut outdated = BTreeSet::new();
            for (model, commands) in acknowledged.models() {
                let shown = client.model_config(model).await?;
                let last = setting(commands.saturating_sub(1));
                if shown.0.get(SETTING).is_none_or(|shown| shown.value != last) {
                    outdated.insert(model.clone());
                }
            }
            deviations += acknowledged.compare("set-model-config", &entries, &outdated);
        }
        Ok(deviations)
    }

    /// Starts a controller again, and returns the time until it serves.
    pub(crate) async fn restarted(&mut self, number: usize) -> anyhow::Result<Duration> {
        let began = Instant::now();
        self.host(number)?.ok(["controller", "start", "local"])?;
        self.revision(number).await?;
        let taken = began.elapsed();
        self.settled().await?;
        Ok(taken)
    }
}

/// Returns the value that a model's command with this number writes; the numbers begin with 0.
pub(crate) fn setting(count: u64) -> String {
    format!("<root>=INFO;count={count}")
}

/// Waits until a process has ended.
pub(crate) async fn gone(process: u32) -> anyhow::Result<()> {
    let began = Instant::now();
    while Path::new(&format!("/proc/{process}")).exists() {
        ensure!(began.elapsed() < UNTIL, "process {process} does not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Waits until a controller has applied a revision, and returns the time since `began`.
pub(crate) async fn applied(client: &Client, revision: Revision, began: Instant) -> anyhow::Result<Duration> {
    while client.controller().await?.revision < revision {
        ensure!(began.elapsed() < UNTIL, "revision {revision} does not arrive");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(began.elapsed())
}
