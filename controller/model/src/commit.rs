//! The calls of runners: attachment, commits, early effects, leases, reports about storage.

use periapt_host_api::{
    AgentName, Digest, ErrorCode, Incarnation, Refusal, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    commit::UnitCommit,
    hash,
    logs::LogLevel,
    record::UnitRecord,
    status::Life,
};

use crate::{
    access::check::denied,
    action, charm,
    entity::{CommitMark, Runner, Unit},
    leadership, network, relation,
    root::changes::RecordBody,
    secret, storage,
    transaction::{Transaction, json_size},
    unit,
};

mod early;
pub(crate) mod text;

/// The most bytes of a commit as JSON: 1 MiB of effects, as much of journal and log, and the record.
const MAX_COMMIT_BYTES: usize = 4 << 20;

/// The most bytes of a unit's record as JSON. The bound is low because the record is written with each commit.
const MAX_RECORD_BYTES: usize = 512 << 10;

/// The most members that a unit's record may name, of all its relations: a few bytes of a record may name any number of
/// them, and some are listed.
const MAX_TOLD_MEMBERS: usize = 200_000;

/// The most scopes that one commit enters: each takes up to four entities, and may make a subordinate.
const MAX_ENTERED_SCOPES: usize = 20;

pub(crate) fn runner_call(
    tx: &mut Transaction<'_>,
    agent: &AgentName,
    call: &RunnerCommand,
) -> Result<RunnerAnswer, Refusal> {
    match call {
        RunnerCommand::Attach => attach(tx, agent),
        RunnerCommand::Commit(commit) => self::commit(tx, agent, commit),
        RunnerCommand::Early { unit, incarnation, items } => {
            let mut unit = own_unit(tx, agent, unit)?;
            require_incarnation(tx, agent, *incarnation)?;
            early::take(tx, &mut unit, items)?;
            tx.put(unit);
            Ok(RunnerAnswer::Done)
        }
        RunnerCommand::Claim(claim) => {
            let unit = own_unit(tx, agent, &claim.unit)?;
            leadership::claim::claim(tx, &unit, claim)
        }
        RunnerCommand::Storage { storage, incarnation, report } => {
            require_incarnation(tx, agent, *incarnation)?;
            storage::commit::report(tx, agent, storage, report)
        }
        RunnerCommand::Container { unit, container, incarnation, reason } => {
            let unit = own_unit(tx, agent, unit)?;
            require_incarnation(tx, agent, *incarnation)?;
            let now = tx.now();
            let message = format!("container {container} does not run: {reason}");
            early::log(tx, &unit, now, (LogLevel::Warning, "periapt.workload"), &message);
            Ok(RunnerAnswer::Done)
        }
        RunnerCommand::Workloads { unit, incarnation, report } => {
            let unit = own_unit(tx, agent, unit)?;
            require_incarnation(tx, agent, *incarnation)?;
            unit::workloads::commit::report(tx, agent, &unit, report)?;
            Ok(RunnerAnswer::Done)
        }
    }
}

/// Attaches a new runner. Commits of the runner before it are refused from now on.
fn attach(tx: &mut Transaction<'_>, agent: &AgentName) -> Result<RunnerAnswer, Refusal> {
    if tx.root.agent(agent).is_none() {
        return Err(denied());
    }
    let before = tx.state.runner(agent).map_or(0, |runner| runner.incarnation.0);
    let incarnation = Incarnation(before.saturating_add(1));
    tx.put(Runner { agent: agent.clone(), incarnation });
    Ok(RunnerAnswer::Attached { incarnation })
}

/// Returns a unit that this agent hosts. About other units the caller learns nothing.
fn own_unit(tx: &Transaction<'_>, agent: &AgentName, name: &UnitName) -> Result<Unit, Refusal> {
    let unit = tx.state.unit(name).ok_or_else(denied)?;
    if tx.state.agent_of(unit) == Some(agent) { Ok(Unit::clone(unit)) } else { Err(denied()) }
}

fn require_incarnation(
    tx: &Transaction<'_>,
    agent: &AgentName,
    incarnation: Incarnation,
) -> Result<(), Refusal> {
    match tx.state.runner(agent) {
        Some(runner) if runner.incarnation == incarnation => Ok(()),
        _ => Err(Refusal::stale(format!("incarnation {incarnation} is no longer the runner's"))),
    }
}

/// Applies one commit of one unit (`docs/design/commit.md`).
fn commit(tx: &mut Transaction<'_>, agent: &AgentName, commit: &UnitCommit) -> Result<RunnerAnswer, Refusal> {
    // The last commit of a removed unit, sent again, is refused as if the unit belonged to another agent. The
    // runner sees in its view that the unit is gone.
    let mut unit = own_unit(tx, agent, &commit.unit)?;
    let mark = CommitMark { seq: commit.seq, digest: hash::of_value(commit) };
    if unit.last_commit.as_ref() == Some(&mark) {
        return Ok(RunnerAnswer::Done);
    }
    require_incarnation(tx, agent, commit.incarnation)?;
    if commit.seq != unit.record.seq {
        let text =
            format!("unit {} is at {}, the commit started from {}", unit.name, unit.record.seq, commit.seq);
        return Err(Refusal::stale(text).about(format!("unit {}", unit.name)));
    }
    check_shape(commit)?;
    let leads = require_leadership(tx, &unit, commit)?;
    require_known_charm(tx, &unit.name, &commit.record)?;

    early::take(tx, &mut unit, &commit.early)?;
    let before = std::mem::replace(&mut unit.record, commit.record.clone());
    unit.last_commit = Some(mark);
    count(&mut unit, commit);
    if commit.transitions.clear_resolved {
        unit.resolved = None;
    }
    if let Some(id) = commit.transitions.begin_task {
        action::commit::begin(tx, &unit.name, id)?;
    }
    if let Some(end) = &commit.transitions.end_task {
        action::commit::end(tx, &unit.name, end)?;
    }
    network::commit::apply(tx, &mut unit, &commit.effects.ports)?;
    tx.put(unit.clone());

    if commit.transitions.refresh_addresses {
        relation::scope::refresh_addresses(tx, &unit);
    }
    relation::commit::apply(tx, &unit, &before, &commit.effects)?;
    unit::state::commit::apply(tx, &unit, &commit.effects.state)?;
    unit::event::commit::apply(tx, &unit, commit)?;
    storage::commit::apply(tx, &unit, commit)?;
    let committer = secret::commit::Committer { unit: &unit, leads };
    secret::commit::apply(tx, committer, &commit.effects)?;
    secret::commit::note_reported_expiries(tx, &unit, &commit.transitions);
    for relation in &commit.transitions.enter_scope {
        relation::scope::enter(tx, &unit, relation)?;
    }
    for relation in &commit.transitions.leave_scope {
        relation::scope::leave(tx, &unit.name, relation);
    }
    for relation in before.relations.keys().filter(|id| !unit.record.relations.contains_key(id)) {
        relation::life::forget_if_done(tx, relation);
    }
    if let Some(old) = before.charm.filter(|old| Some(*old) != unit.record.charm) {
        charm::life::release(tx, &old.digest);
    }
    if let Some(journal) = &commit.journal {
        tx.record(&unit.name, journal.started_at, RecordBody::Journal(Box::new(journal.clone())));
    }
    if commit.transitions.terminate {
        terminate(tx, &unit.name)?;
    }
    Ok(RunnerAnswer::Done)
}

/// Adds the commit's resource usage to the unit's.
fn count(unit: &mut Unit, commit: &UnitCommit) {
    unit.usage.add(&commit.uncommitted_usage);
    if let Some(journal) = &commit.journal {
        unit.usage.count(&journal.outcome, &journal.costs);
    }
}

fn check_shape(commit: &UnitCommit) -> Result<(), Refusal> {
    let about = format!("unit {}", commit.unit);
    if commit.record.seq != commit.seq.saturating_add(1) {
        let text = format!("the record's seq must be one above {}, not {}", commit.seq, commit.record.seq);
        return Err(Refusal::bad_request(text).about(about));
    }
    for (what, size, bound) in [
        ("commit", json_size(commit), MAX_COMMIT_BYTES),
        ("unit's record", json_size(&commit.record), MAX_RECORD_BYTES),
    ] {
        if size > bound {
            let text = format!("the {what} takes {size} bytes, at most {bound} are allowed");
            return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(about));
        }
    }
    let told = commit.record.relations.values().map(|relation| relation.members.len());
    let told = told.fold(0, usize::saturating_add);
    if told > MAX_TOLD_MEMBERS {
        let text = format!("the record names {told} members, at most {MAX_TOLD_MEMBERS} are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(about));
    }
    let entered = commit.transitions.enter_scope.len();
    if entered > MAX_ENTERED_SCOPES {
        let text = format!("{entered} scopes entered at once, at most {MAX_ENTERED_SCOPES} are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(about));
    }
    Ok(())
}

/// Returns true if this unit leads the application in the commit's leader term. Refuses leader-only writes otherwise
/// (D-4).
fn require_leadership(tx: &Transaction<'_>, unit: &Unit, commit: &UnitCommit) -> Result<bool, Refusal> {
    let writes_bag = commit.effects.bags.values().any(|changes| !changes.application.is_empty());
    let writes_settings = !commit.effects.leader_settings.is_empty();
    let leader = tx.state.application(unit.name.application()).and_then(|found| found.leader.as_ref());
    let leads =
        leader.is_some_and(|leader| leader.unit == unit.name && Some(leader.term) == commit.leader_term);
    if !writes_bag && !writes_settings {
        return Ok(leads);
    }
    let text = match (leads, writes_bag) {
        (true, _) => return Ok(true),
        (false, true) => "cannot write relation settings",
        (false, false) => "cannot write leadership settings: cannot write settings: not the leader",
    };
    Err(Refusal::new(ErrorCode::NotLeader, text).about(format!("unit {}", unit.name)))
}

/// Refuses a record whose charm the model no longer uses, because a refresh replaced it first. The refusal is not
/// "stale": the unit's own position is right, and its runner only has to learn of the new charm.
fn require_known_charm(tx: &Transaction<'_>, unit: &UnitName, record: &UnitRecord) -> Result<(), Refusal> {
    let wanted = tx.state.application(unit.application()).map(|application| application.charm.digest);
    match record.charm {
        // Former charms that are kept for a refresh count as gone.
        Some(charm) if Some(charm.digest) != wanted && !is_used(tx, unit, &charm.digest) => {
            let text = format!("charm {} is no longer wanted", charm.digest.short());
            Err(Refusal::charm_replaced(text).about(format!("unit {unit}")))
        }
        _ => Ok(()),
    }
}

/// Returns true if the unit, another unit or an application has a charm. Looks at the unit first: most commits keep their
/// charm.
fn is_used(tx: &Transaction<'_>, unit: &UnitName, charm: &Digest) -> bool {
    let own = tx.state.unit(unit).and_then(|unit| unit.record.charm);
    own.is_some_and(|own| own.digest == *charm) || charm::life::is_used(&tx.state, charm)
}

/// Removes a dying unit at the end of its life (U-39). Refuses while it has subordinates or storage.
fn terminate(tx: &mut Transaction<'_>, name: &UnitName) -> Result<(), Refusal> {
    let unit = tx.unit(name)?;
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot set unit {name:?} to dead: {reason}"))
            .about(format!("unit {name}"))
    };
    if unit.life == Life::Alive {
        return Err(cannot(ErrorCode::BadRequest, "unit is alive".to_owned()));
    }
    if tx.state.subordinates_of(name).next().is_some() {
        // Q05
        return Err(cannot(ErrorCode::Conflict, "unit has subordinates".to_owned()));
    }
    if tx.state.storages_of(name).next().is_some() {
        return Err(cannot(ErrorCode::Conflict, "unit has storage attachments".to_owned()));
    }
    unit::life::remove(tx, &unit);
    Ok(())
}
