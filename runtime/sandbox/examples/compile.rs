//! Compiles charms one after the other, as an agent does: each with the functions of those before it.
//!
//! `cargo run --release -p periapt-sandbox --example compile CHARM...`
//!
//! Each compilation has an engine of its own, and so shares with the others what processes share. Its row: seconds
//! from beginning to end, of CPU time, functions that were taken and compiled, and the most memory so far.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use std::{sync::Arc, time::Instant};

use periapt_archive::{Archive, COMPONENT};
use periapt_sandbox::{Functions, Options, Sandbox};

fn main() {
    let mut known = Vec::new();
    println!("{:>9} {:>9} {:>7} {:>8} {:>9}  charm", "seconds", "CPU", "taken", "compiled", "MiB");
    for path in std::env::args_os().skip(1) {
        let archive = std::fs::read(&path).unwrap();
        let archive = Archive::read(&archive).unwrap();
        let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
        let functions = Arc::new(Functions::new(known.clone()));
        let (began, cpu) = (Instant::now(), cpu_seconds());
        sandbox.compile_with(archive.file(COMPONENT).unwrap(), &functions).unwrap();
        let (took, cpu, counts) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu, functions.counts());
        known.extend(functions.take_added());
        let charm = path.display();
        println!("{took:9.2} {cpu:9.2} {:7} {:8} {:9}  {charm}", counts.found, counts.compiled, peak_mib());
    }
}

/// Of the whole process, until now.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most that the process has held.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
