//! One outage: a process is killed, or two, and what died comes back.

use std::{collections::BTreeSet, thread::sleep, time::Duration};

use anyhow::ensure;
use periapt_lab::RandomNumbers;
use periapt_tests::signal;

use super::{
    own_processes::{OwnProcess, Part, ProcessIdentity},
    scene::Scene,
    units::KilledUnit,
};

/// The age from which a workload is started again when it dies: one that ends in its first second has not started.
const STARTED: Duration = Duration::from_secs(2);

/// The longest pause between what the workloads do and a kill, in milliseconds. A pod reports once a second.
const MOST_BEFORE: usize = 1_500;

/// The longest pause between two kills at a time.
const MOST_BETWEEN: usize = 500;

impl Scene {
    /// Has the units' workloads make notices, kills a process of a part, and perhaps one of a second part, and waits until
    /// all is as before. Returns the longest gap of each unit's client.
    pub(super) fn outage(
        &mut self,
        part: Part,
        second: Option<Part>,
        random: &mut RandomNumbers,
    ) -> anyhow::Result<Vec<(&'static str, Duration)>> {
        let mut made = Vec::new();
        for unit in &mut self.units {
            made.push(unit.notify(&self.periapt)?);
        }
        let before = self.pods()?;
        sleep(milliseconds(random.below(MOST_BEFORE)));
        for unit in &self.units {
            unit.client.forget();
        }
        self.kill(part, random)?;
        if let Some(second) = second {
            sleep(milliseconds(random.below(MOST_BETWEEN)));
            self.kill(second, random)?;
        }
        if part == Part::Keeper || second == Some(Part::Keeper) {
            self.restart_agent()?;
        }
        if [Some(part), second].iter().flatten().any(|part| matches!(part, Part::Keeper | Part::Pod)) {
            // The keeper's death may end the pods, or not.
            self.pod_ends += 2;
        }
        let name =
            second.map_or(part.name().to_owned(), |second| format!("{} and {}", part.name(), second.name()));
        self.until(&format!("all processes are back, without {name}"), Self::is_whole)?;
        let answers: Vec<u64> = self.units.iter().map(|unit| unit.client.seen().answers).collect();
        self.until(&format!("all units answer, without {name}"), |scene| {
            Ok(scene.units.iter().zip(&answers).all(|(unit, before)| unit.client.seen().answers > *before))
        })?;
        if (part, second) == (Part::Runner, None) {
            for unit in &self.units {
                let failures = unit.client.seen().failures;
                ensure!(failures == 0, "{}: {failures} requests failed for a runner's death", unit.name);
            }
        }
        let gaps = self.units.iter().map(|unit| (unit.name, unit.client.seen().gap())).collect();

        // What a pod that lives on has acknowledged is told.
        let after = self.pods()?;
        for ((unit, keys), (before, after)) in self.units.iter_mut().zip(made).zip(before.iter().zip(&after))
        {
            if before.is_subset(after) {
                unit.owed.extend(keys);
            }
        }
        self.until(&format!("the charms are told of all notices, without {name}"), |scene| {
            let mut all = true;
            for unit in &mut scene.units {
                all &= unit.is_told(&scene.periapt)?;
            }
            Ok(all)
        })?;
        Ok(gaps)
    }

    /// Returns the processes of each unit's pod.
    fn pods(&mut self) -> anyhow::Result<Vec<BTreeSet<ProcessIdentity>>> {
        let processes = self.processes.look()?;
        let of = |unit: &KilledUnit| {
            processes.iter().filter(|process| unit.has_pod(process)).map(|process| process.id).collect()
        };
        Ok(self.units.iter().map(of).collect())
    }

    /// Kills a process of a part, if there is one.
    fn kill(&mut self, part: Part, random: &mut RandomNumbers) -> anyhow::Result<()> {
        let is_victim = |process: &OwnProcess| {
            process.part() == Some(part) && (part != Part::Workload || process.known_for >= STARTED)
        };
        let mut victims: Vec<OwnProcess> = self.processes.look()?;
        if part == Part::Workload && !victims.iter().any(&is_victim) {
            // The look before has made them known.
            sleep(STARTED);
            victims = self.processes.look()?;
        }
        victims.retain(is_victim);
        // A runner without work may have ended.
        let Some(victim) = victims.get(random.below(victims.len())) else { return Ok(()) };
        match signal(victim.id.0, "KILL") {
            Err(error) if part == Part::Keeper => Err(error),
            // It may have ended by itself.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn milliseconds(count: usize) -> Duration {
    Duration::from_millis(count as u64)
}
