//! The memory and the processor time of a process and its descendants, by what the kernel tells of each.

use std::{collections::VecDeque, fs};

use crate::{
    cgroups::GuardedCgroups,
    descendants::{children, threads},
};

/// The most processes that one count reads: as many as a container may have, and some more.
const MAX_PROCESSES: usize = 4_096;

/// The microseconds of a tick, in which the kernel tells times of processes. Its interface has a hundred ticks a second,
/// whatever it counts in itself.
const TICK_US: u64 = 10_000;

/// The use of memory and processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodUsage {
    /// The bytes of memory now.
    pub memory: u64,
    /// The processor time since the start, in microseconds.
    pub cpu_us: u64,
}

impl PodUsage {
    /// Returns the use of a pod that this process started: by its cgroups if it has some, and else by its processes.
    /// Memory that these share is then counted for each. It reads files of the kernel and may take milliseconds.
    #[must_use]
    pub fn of_pod(process: u32) -> Self {
        let cgroups = GuardedCgroups::of(process);
        match (cgroups.memory(), cgroups.cpu_us()) {
            (Some(memory), Some(cpu_us)) => Self { memory, cpu_us },
            (memory, cpu) => {
                let counted = Self::of_descendants(process);
                Self { memory: memory.unwrap_or(counted.memory), cpu_us: cpu.unwrap_or(counted.cpu_us) }
            }
        }
    }

    /// Returns the use of a process and its descendants, of ended ones as far as their parents have waited for them.
    fn of_descendants(process: u32) -> Self {
        let mut sum = Self::default();
        let (mut left, mut read) = (VecDeque::from([process]), 0);
        while let Some(process) = left.pop_front() {
            read += 1;
            if read > MAX_PROCESSES {
                break;
            }
            let text = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
            sum.cpu_us = sum.cpu_us.saturating_add(ticks(&text("stat")).saturating_mul(TICK_US));
            sum.memory = sum.memory.saturating_add(resident(&text("status")));
            // Each thread has the children that it started.
            for thread in threads(process).take(MAX_PROCESSES) {
                left.extend(children(process, thread));
            }
        }
        sum
    }
}

/// Returns the ticks of a process and of its children that have ended.
fn ticks(stat: &str) -> u64 {
    // The second field is the name, in parentheses, and may hold anything.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    // `utime`, `stime`, `cutime` and `cstime` are fields 14 to 17.
    let times = fields.split_ascii_whitespace().skip(11).take(4);
    times.filter_map(|ticks| ticks.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

/// Returns the resident bytes of a process.
fn resident(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or_default().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c) 9) S 1 7 7 0 -1 4194560 9 8 7 6 3 4 5 6 20 0 1 0 99";
        assert_eq!(ticks(stat), 18);
        assert_eq!((ticks(""), ticks("7 (x")), (0, 0));
        assert_eq!(resident("Name:\tx\nVmRSS:\t     100 kB\nThreads: 1\n"), 100 << 10);
        assert_eq!(resident("Name:\tkthread\n"), 0);
    }

    #[test]
    fn a_process_and_its_descendants_are_counted() {
        // The shell's child computes for a while, and says so before it waits.
        let script = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read _; :); :";
        let mut shell = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let used = PodUsage::of_pod(shell.id());
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(used.cpu_us >= TICK_US && used.memory > 0, "{used:?}");
        assert_eq!(PodUsage::of_descendants(u32::MAX), PodUsage::default());
    }
}
