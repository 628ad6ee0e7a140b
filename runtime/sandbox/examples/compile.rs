//! Compiles charms one after the other like an agent, each without the shared modules that exist already.
//!
//! `cargo run --release -p periapt-sandbox --example compile CHARM...`
//!
//! A charm's row: seconds of wall time and of CPU time, the number of existing modules, the number of modules that were
//! compiled beside the rest of the component, and the peak memory so far.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use std::{collections::BTreeSet, time::Instant};

use periapt_archive::{Archive, COMPONENT};
use periapt_sandbox::{Options, Sandbox, shared_modules};

fn main() {
    let mut known = BTreeSet::new();
    println!("{:>9} {:>9} {:>7} {:>8} {:>9}  charm", "seconds", "CPU", "there", "compiled", "MiB");
    for path in std::env::args_os().skip(1) {
        let archive = std::fs::read(&path).unwrap();
        let archive = Archive::read(&archive).unwrap();
        let component = archive.file(COMPONENT).unwrap();
        let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
        let (began, cpu) = (Instant::now(), cpu_seconds());
        let modules = shared_modules(component);
        let new: Vec<_> = modules.iter().filter(|module| known.insert(module.digest)).collect();
        for module in &new {
            sandbox.compile_module(module.bytes(component)).unwrap();
        }
        sandbox.compile(component).unwrap();
        let (took, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let (there, compiled, charm) = (modules.len() - new.len(), new.len(), path.display());
        println!("{took:9.2} {cpu:9.2} {there:7} {compiled:8} {:9}  {charm}", peak_mib());
    }
}

/// Returns the CPU time of the whole process so far.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the peak memory of the process.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
