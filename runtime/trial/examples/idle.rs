//! Measures the memory of a process with idle units of one charm, each of which ran a hook before.
//!
//! `cargo run --release -p periapt-trial --example idle CHARM [UNITS]`
//!
//! Each row is the process's proportional set size, and the anonymous part of it, which no other process shares.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use periapt_trial::{CompiledCache, Scene, Trial, TrialOutcome};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let archive = std::fs::read(arguments.next().unwrap()).unwrap();
    let units: usize = arguments.next().map_or(100, |count| count.parse().unwrap());
    let trial = {
        // A cached component is measured, because a process keeps memory of a compilation.
        let cache = CompiledCache::open(&std::env::temp_dir().join("periapt-idle")).unwrap();
        Trial::open(&archive, &cache).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("{:>8} {:>10}  after", "KiB", "anonymous");
    tell("the charm was opened");
    for unit in 0..units {
        let scene = format!(r#"{{"unit": "{}/{unit}", "event": {{"hook": "start"}}}}"#, trial.meta().name);
        let scene: Scene = serde_json::from_str(&scene).unwrap();
        let tried = runtime.block_on(trial.run(&scene)).unwrap();
        assert!(matches!(tried.outcome, TrialOutcome::Handled), "{:?}", tried.outcome);
        if unit == 0 {
            tell("a hook of one unit");
        }
    }
    tell(&format!("a hook of each of {units} units"));
    drop(trial);
    tell("the charm was closed");
}

fn tell(when: &str) {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let of = |name: &str| {
        let line = rollup.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    println!("{:8} {:10}  {when}", of("Pss:"), of("Anonymous:"));
}
