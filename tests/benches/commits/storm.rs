//! Concurrent clients, each with its own connection and unit, that commit one hook after the other.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use periapt_client::Client;
use periapt_host_api::{
    AgentName, ModelUuid, RelationId, UnitName,
    agent::RunnerCommand,
    commit::{HookEffects, UnitCommit},
    journal::JournalRecord,
};
use tokio::task::JoinSet;

use crate::{controller::Controller, model::Model};

pub(crate) struct Storm {
    clients: Vec<Committer>,
    committed: u32,
}

/// A client of one unit.
struct Committer {
    client: Client,
    agent: AgentName,
    model: ModelUuid,
    unit: UnitName,
    relation: RelationId,
    /// The client's next commit.
    next: UnitCommit,
}

impl Storm {
    /// Creates a client for each unit of the model. All commits carry the same journal record.
    pub(crate) fn new(
        controller: &Controller,
        model: Model,
        journal: &JournalRecord,
    ) -> anyhow::Result<Self> {
        let units: Vec<UnitName> = model.view.units.keys().cloned().collect();
        let clients = units.into_iter().map(|unit| {
            let mut record = model.record(&unit)?;
            let seq = record.seq;
            record.seq += 1;
            // Whom a unit was told of is written with each of its commits; that of a pair is enough here, too.
            record.relations.values_mut().for_each(|relation| {
                let members = relation.members.iter().take(1);
                relation.members = members.map(|(unit, version)| (unit, *version)).collect();
            });
            let next = UnitCommit {
                unit: unit.clone(),
                seq,
                incarnation: model.incarnation,
                record,
                effects: HookEffects::default(),
                transitions: Default::default(),
                leader_term: None,
                early: Vec::new(),
                journal: Some(JournalRecord { seq, ..journal.clone() }),
                uncommitted_usage: Default::default(),
            };
            let (client, agent) = (controller.connect()?, model.agent.clone());
            Ok(Committer { client, agent, model: model.uuid, unit, relation: model.relation, next })
        });
        Ok(Self { clients: clients.collect::<anyhow::Result<_>>()?, committed: 0 })
    }

    /// Lets all clients commit for a while, and waits for their last answers.
    pub(crate) async fn burst(&mut self, lasting: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + lasting;
        let mut running = JoinSet::new();
        for mut client in self.clients.drain(..) {
            running.spawn(async move {
                let mut committed = 0;
                while Instant::now() < until {
                    client.commit().await?;
                    committed += 1;
                }
                anyhow::Ok((client, committed))
            });
        }
        self.committed = 0;
        while let Some(ended) = running.join_next().await {
            let (client, committed) = ended.context("a client panicked")??;
            self.clients.push(client);
            self.committed += committed;
        }
        Ok(())
    }

    /// Returns the number of commits in the last burst.
    pub(crate) fn committed(&self) -> f64 {
        f64::from(self.committed)
    }
}

impl Committer {
    async fn commit(&mut self) -> anyhow::Result<()> {
        let next = &mut self.next;
        let bag = next.effects.bags.entry(self.relation).or_default();
        bag.unit.insert("count".to_owned(), next.record.seq.to_string());
        let command = RunnerCommand::Commit(Box::new(next.clone()));
        let sent = self.client.runner_command(&self.agent, &self.model, command).await;
        sent.with_context(|| format!("a commit of {}", self.unit))?;
        next.seq += 1;
        next.record.seq += 1;
        Ok(())
    }
}
