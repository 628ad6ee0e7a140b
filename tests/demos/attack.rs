//! Attacks a controller of its own, and then an agent by hostile workloads, and prints a table of each. For `tools/attack`.

#![expect(clippy::print_stdout, reason = "the table is the program's output")]

use anyhow::ensure;
use periapt_tests::{
    Attack, AttackRow, AttackScale, AttackedAgent, AttackedController, ServerAttack, WorkloadAttack, attack,
    attack_table, nobody,
};

/// Enough to be noticed, and to be over in a few minutes: the longest attacks last until the controller ends streams
/// that stall for two.
const SCALE: AttackScale = AttackScale {
    flood: 100_000,
    holders: 8,
    streams: 160,
    connections: 300,
    honest_calls: 200,
    until_ended: true,
};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1);
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    ensure!(wanted("controller") || wanted("workloads"), "what is attacked is `controller` or `workloads`");
    let mut rows = if wanted("controller") { attack_controller().await? } else { Vec::new() };
    if wanted("workloads") {
        let by_workloads = tokio::task::spawn_blocking(attack_by_workloads).await??;
        print!("{}", attack_table(&by_workloads));
        rows.extend(by_workloads);
    }
    let checked = rows.iter().map(|row| row.check().and_then(|()| row.check_latency()));
    let failed: Vec<String> =
        checked.filter_map(|checked| checked.err().map(|error| error.to_string())).collect();
    ensure!(failed.is_empty(), "{} of the bounds did not hold: {}", failed.len(), failed.join("; "));
    Ok(())
}

/// Attacks a controller by callers.
async fn attack_controller() -> anyhow::Result<Vec<AttackRow>> {
    println!("== a controller, an honest user and a hostile one");
    let target = AttackedController::bootstrapped().await?;
    let mut rows = vec![nobody(&target, SCALE).await?];
    for each in Attack::ALL {
        println!("== {}", each.name());
        rows.push(attack(&target, each, SCALE).await?);
    }
    println!();
    print!("{}", attack_table(&rows));
    println!();
    Ok(rows)
}

/// Attacks an agent, and looks for what is left. The container is left out where none can be made.
fn attack_by_workloads() -> anyhow::Result<Vec<AttackRow>> {
    println!("== an agent, an honest page and a hostile server in WebAssembly");
    let target = AttackedAgent::begun()?;
    let mut rows = vec![target.attack(None, SCALE.honest_calls)?];
    target.begin_server()?;
    for each in ServerAttack::ALL {
        println!("== {}", each.name());
        rows.push(target.attack_by_server(each, SCALE.honest_calls)?);
    }
    target.end_server()?;
    println!("== a hostile container");
    if let Err(reason) = target.begin_container()? {
        println!("left out: {reason}");
        return Ok(rows);
    }
    for each in WorkloadAttack::ALL {
        println!("== {}", each.name());
        rows.push(target.attack(Some(each), SCALE.honest_calls)?);
    }
    target.end_container()?;
    println!();
    Ok(rows)
}
