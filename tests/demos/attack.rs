//! Attacks a controller of its own, and prints a table. For `tools/attack`.

#![expect(clippy::print_stdout, reason = "the table is the program's output")]

use anyhow::ensure;
use periapt_tests::{Attack, AttackScale, AttackedController, attack, attack_table, nobody};

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
    println!("== a controller, an honest user and a hostile one");
    let target = AttackedController::bootstrapped().await?;
    let mut rows = vec![nobody(&target, SCALE).await?];
    for each in Attack::ALL {
        println!("== {}", each.name());
        rows.push(attack(&target, each, SCALE).await?);
    }
    println!();
    print!("{}", attack_table(&rows));
    let checked = rows.iter().map(|row| row.check().and_then(|()| row.check_latency()));
    let failed: Vec<String> =
        checked.filter_map(|checked| checked.err().map(|error| error.to_string())).collect();
    ensure!(failed.is_empty(), "{} of the bounds did not hold: {}", failed.len(), failed.join("; "));
    Ok(())
}
