//! The units with workloads, and what their charm was told.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, POLL_INTERVAL};
use serde_json::{Value, json};

use super::{client::Client, own_processes::OwnProcess};

/// The notices that are made at a time.
const NOTICES: usize = 2;

/// The tries to have notices acknowledged.
const TRIES: usize = 60;

/// The one unit of an application of the charm `probe`.
#[derive(Debug)]
pub(super) struct KilledUnit {
    /// The application.
    pub(super) name: &'static str,
    /// The container or workload.
    pub(super) container: &'static str,
    /// The words of its pod's command line.
    pub(super) driver: &'static str,
    /// The work of the charm, without notices.
    pub(super) script: String,
    pub(super) client: Client,
    /// The keys of the notices that were made.
    pub(super) made: BTreeSet<String>,
    /// The keys that the charm must be told of: Pebble acknowledged their notices, and its pod has lived since.
    pub(super) owed: BTreeSet<String>,
    /// The keys that the charm was told of, by the numbers of the commits.
    told: BTreeMap<u64, String>,
    /// The commits of `pebble-ready`.
    ready: BTreeSet<u64>,
}

impl KilledUnit {
    pub(super) fn new(
        name: &'static str,
        (container, driver): (&'static str, &'static str),
        script: String,
        client: Client,
    ) -> Self {
        Self {
            name,
            container,
            driver,
            script,
            client,
            made: BTreeSet::new(),
            owed: BTreeSet::new(),
            told: BTreeMap::new(),
            ready: BTreeSet::new(),
        }
    }

    fn unit(&self) -> String {
        format!("{}/0", self.name)
    }

    /// Returns true for a process of the unit's pod.
    pub(super) fn has_pod(&self, process: &OwnProcess) -> bool {
        process.line.contains(" agent pod") && process.line.contains(self.driver)
    }

    /// Makes notices with new keys in the unit's Pebble. Returns the keys once all are acknowledged.
    pub(super) fn notify(&mut self, periapt: &Installation) -> anyhow::Result<Vec<String>> {
        let Self { name, container, .. } = *self;
        for _ in 0..TRIES {
            let first = self.made.len();
            let keys: Vec<String> =
                (0..NOTICES).map(|number| format!("example.com/n{}", first + number)).collect();
            let mut script = self.script.clone();
            for key in &keys {
                let notice = json!({"action": "add", "type": "custom", "key": key});
                script.push_str(&format!("\nact: ask {container} POST /v1/notices?of={key} {notice}"));
            }
            self.made.extend(keys.iter().cloned());
            periapt.ok(["config", name, &format!("script={script}")])?;
            periapt.run(["run", &self.unit(), "act"])?;
            let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", &self.unit()])?;
            if keys.iter().all(|key| log.contains(&format!("/v1/notices?of={key}: 200 "))) {
                return Ok(keys);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        anyhow::bail!("{name}: no notice is acknowledged")
    }

    /// Reads which hooks were committed. Returns true if the charm was told of all notices that are owed to it.
    pub(super) fn is_told(&mut self, periapt: &Installation) -> anyhow::Result<bool> {
        let shown = periapt.json(["hooks", &self.unit()])?;
        let entries = shown.get("entries").and_then(Value::as_array).context("entries")?;
        for record in entries.iter().filter_map(|entry| entry.get("record")) {
            let event = record["event"].as_object().and_then(|event| event.iter().next());
            let (Some(seq), Some((kind, about))) = (record["seq"].as_u64(), event) else { continue };
            match (kind.as_str(), about["key"].as_str()) {
                _ if record["outcome"] != "handled" => {}
                ("pebble-ready", _) => {
                    self.ready.insert(seq);
                }
                ("pebble-custom-notice", Some(key)) => {
                    self.told.insert(seq, key.to_owned());
                }
                _ => {}
            }
        }
        let told: BTreeSet<&String> = self.told.values().collect();
        Ok(self.owed.iter().all(|key| told.contains(key)))
    }

    /// Checks what the charm was told of in the end, when its pods have begun so many times at most.
    pub(super) fn check(&self, begun: usize) -> anyhow::Result<()> {
        let told: BTreeSet<&String> = self.told.values().collect();
        ensure!(told.len() == self.told.len(), "{}: a notice was told twice: {:?}", self.name, self.told);
        let unknown = told.iter().find(|key| !self.made.contains(**key));
        ensure!(unknown.is_none(), "{}: told of {unknown:?}, which nobody made", self.name);
        let lost: Vec<&String> = self.owed.iter().filter(|key| !told.contains(key)).collect();
        ensure!(lost.is_empty(), "{}: lost {lost:?}", self.name);
        let ready = self.ready.len();
        ensure!(
            (1..=begun).contains(&ready),
            "{}: {ready} times ready, of {begun} starts at most",
            self.name
        );
        Ok(())
    }
}
