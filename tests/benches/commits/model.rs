//! A model as its runner sees it: the view that hooks read, and the commits of hooks.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use periapt_client::{Client, NdJson};
use periapt_hook::{CallTime, HookContext, HookInputs, HookLimits, HookResults, LeaseState};
use periapt_host_api::{
    AgentName, Digest, Incarnation, ModelUuid, RelationId, Timestamp, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    commit::{HookEffects, Transitions, UnitCommit},
    event::{Event, RelationContext},
    journal::{HookCosts, HookOutcome, JournalRecord},
    record::{RelationRecord, UnitRecord},
    view::{Frame, View},
};

/// The settings of each unit's bag, all of which the charm reads.
const TOLD: [(&str, &str); 9] = [
    ("address", "10.152.183.41"),
    ("database", "wordpress"),
    ("password", "correct horse battery staple"),
    ("port", "3306"),
    ("replicas", "10.152.183.42 10.152.183.43"),
    ("role", "primary"),
    ("user", "wordpress"),
    ("version", "8.0.36"),
    ("zone", "eu-west-1a"),
];

pub(crate) struct Model {
    client: Client,
    pub(crate) agent: AgentName,
    pub(crate) uuid: ModelUuid,
    pub(crate) incarnation: Incarnation,
    pub(crate) relation: RelationId,
    pub(crate) view: View,
    frames: NdJson<Frame>,
}

impl Model {
    /// Attaches to a model whose units have an agent, enters each unit into the peer relation, and writes its bag.
    pub(crate) async fn attach(client: Client, agent: AgentName, uuid: ModelUuid) -> anyhow::Result<Self> {
        let (answer, _) = client.runner_command(&agent, &uuid, RunnerCommand::Attach).await?;
        let RunnerAnswer::Attached { incarnation } = answer else { bail!("not attached: {answer:?}") };
        let frames = client.watch(&agent, &uuid, None).await?;
        let view = View::default();
        let mut model = Self { client, agent, uuid, incarnation, relation: RelationId(0), view, frames };
        model.follow(|view| !view.relations.is_empty()).await?;
        model.relation = *model.view.relations.keys().next().context("no peer relation")?;
        let units: Vec<UnitName> = model.view.units.keys().cloned().collect();
        for unit in &units {
            let mut record = model.record(unit)?;
            let members = units.iter().filter(|other| *other != unit);
            let told = RelationRecord {
                endpoint: "peer".parse()?,
                remote_application: unit.application().clone(),
                created: true,
                members: members.map(|other| (other.clone(), 1)).collect(),
                applications: BTreeMap::new(),
                changed_pending: None,
                gone: 0,
            };
            record.relations.insert(model.relation, told);
            let enter = Transitions { enter_scope: [model.relation].into(), ..Transitions::default() };
            model.commit(unit, record, HookEffects::default(), enter, None).await?;
            let mut effects = HookEffects::default();
            effects.bags.entry(model.relation).or_default().unit =
                TOLD.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            model.commit(unit, model.record(unit)?, effects, Transitions::default(), None).await?;
        }
        Ok(model)
    }

    /// Returns the context of the measured hook on the newest view.
    pub(crate) fn context(&self) -> anyhow::Result<HookContext> {
        let inputs = HookInputs {
            view: self.view.clone(),
            unit: "bench/0".parse()?,
            event: self.event()?,
            attempt: 1,
            lease: LeaseState::default(),
            context_id: "0123456789abcdef0123456789abcdef".to_owned(),
            ids: periapt_hook::IdSeed([9; 32]),
            api_addresses: Vec::new(),
            limits: HookLimits::default(),
        };
        Ok(HookContext::new(inputs)?)
    }

    /// Commits a hook's effects with its journal record, and waits until the view shows them for the next hook.
    pub(crate) async fn commit_hook(
        &mut self,
        gathered: HookResults,
        costs: HookCosts,
        started_at: Timestamp,
    ) -> anyhow::Result<JournalRecord> {
        let unit = "bench/0".parse()?;
        let record = self.record(&unit)?;
        let journal = JournalRecord {
            seq: record.seq,
            event: self.event()?,
            attempt: 1,
            snapshot: self.view.revision,
            charm: Digest::from_bytes([1; 32]),
            component: Digest::from_bytes([2; 32]),
            engine: periapt_sandbox::engine_version().to_owned(),
            started_at,
            outcome: HookOutcome::Handled,
            costs,
            coalesced: Vec::new(),
            calls: gathered.calls,
            seed: "0".repeat(64),
            sealed: None,
        };
        let effects = gathered.effects;
        self.commit(&unit, record, effects, Transitions::default(), Some(journal.clone())).await?;
        Ok(journal)
    }

    /// Returns the number of commits of the measured hook, as its charm counts them.
    pub(crate) fn counted(&self) -> u32 {
        let own = self.view.bags.values().find(|bag| bag.settings.contains_key("count"));
        own.and_then(|bag| bag.settings.get("count")?.parse().ok()).unwrap_or_default()
    }

    /// Returns a unit's record, from which its next commit starts.
    pub(crate) fn record(&self, unit: &UnitName) -> anyhow::Result<UnitRecord> {
        Ok(self.view.units.get(unit).with_context(|| format!("no unit {unit}"))?.record.clone())
    }

    fn event(&self) -> anyhow::Result<Event> {
        let relation = RelationContext {
            endpoint: "peer".parse()?,
            relation: self.relation,
            remote_application: "bench".parse()?,
        };
        Ok(Event::RelationChanged { relation, remote_unit: Some("bench/1".parse()?) })
    }

    async fn commit(
        &mut self,
        unit: &UnitName,
        record: UnitRecord,
        effects: HookEffects,
        transitions: Transitions,
        journal: Option<JournalRecord>,
    ) -> anyhow::Result<()> {
        let seq = record.seq;
        let commit = UnitCommit {
            unit: unit.clone(),
            seq,
            incarnation: self.incarnation,
            record: UnitRecord { seq: seq + 1, ..record },
            effects,
            transitions,
            leader_term: None,
            early: Vec::new(),
            journal,
            uncommitted_usage: Default::default(),
        };
        let command = RunnerCommand::Commit(Box::new(commit));
        self.client.runner_command(&self.agent, &self.uuid, command).await?;
        self.follow(|view| view.units.get(unit).is_some_and(|unit| unit.record.seq > seq)).await
    }

    /// Applies frames until the view satisfies `wanted`.
    async fn follow(&mut self, wanted: impl Fn(&View) -> bool) -> anyhow::Result<()> {
        while !wanted(&self.view) {
            let frame = self.frames.next().await.context("the watch ended")??;
            self.view.apply(frame)?;
        }
        Ok(())
    }
}

/// Returns the time of a call. The boot time is 0, as no lease is used.
pub(crate) fn now() -> CallTime {
    CallTime { at: Timestamp::now(), boot_ms: 0 }
}
