//! Hostile workloads of an agent: each is stopped, and costs an honest page none of its calls.

use anyhow::ensure;
use periapt_tests::{AttackRow, AttackedAgent, ServerAttack, WorkloadAttack, skipped};

/// The least calls of each honest client beside an attack.
const CALLS: usize = 5;

/// The attacks of a server in WebAssembly that are over in seconds. A request that computes, sleeps or answers for ever is
/// ended after a minute: `tools/attack` has those. The last one ends the server.
const BY_SERVER: [ServerAttack; 5] = [
    ServerAttack::HugeHeaders,
    ServerAttack::Traps,
    ServerAttack::ForbiddenTargets,
    ServerAttack::Escapes,
    ServerAttack::Storage,
];

/// The attacks of a container that need no cgroups of the host: `runtime/pod` tests the bounds on memory and processes.
/// Hostile images have tests of their own, by commands. The last one ends the container.
const BY_CONTAINER: [WorkloadAttack; 10] = [
    WorkloadAttack::NewFiles,
    WorkloadAttack::Orphans,
    WorkloadAttack::ForbiddenTargets,
    WorkloadAttack::HostFiles,
    WorkloadAttack::NeighboursFiles,
    WorkloadAttack::Rights,
    WorkloadAttack::DeafServer,
    WorkloadAttack::EndlessAnswer,
    WorkloadAttack::DeletedFiles,
    WorkloadAttack::Storage,
];

fn check(row: &AttackRow) -> anyhow::Result<()> {
    row.check()?;
    ensure!(row.latencies.len() >= CALLS, "{}: the honest client was served", row.name);
    Ok(())
}

#[test]
fn hostile_workloads_are_stopped_and_leave_nothing() -> anyhow::Result<()> {
    let target = AttackedAgent::begun()?;
    target.begin_server()?;
    for attack in BY_SERVER {
        check(&target.attack_by_server(attack, CALLS)?)?;
    }
    target.end_server()?;
    if let Err(reason) = target.begin_container()? {
        return skipped(&reason);
    }
    for attack in BY_CONTAINER {
        check(&target.attack(Some(attack), CALLS)?)?;
    }
    target.end_container()
}
