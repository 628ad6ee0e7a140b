//! Measures what a second of CPU time is in fuel, for `FUEL_PER_SECOND`: loops that do what ordinary code does,
//! and their fuel per nanosecond of this thread's CPU time.
//!
//! `cargo run -p periapt-sandbox --example fuel`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use wasmtime::{Config, Engine, Instance, Module, Store};

/// Loops that do what ordinary code does: name, and the body of a loop over `$i`, downwards.
const WORK: [(&str, &str); 4] = [
    ("count", ""),
    ("mix", "(local.set $x (i32.mul (i32.xor (local.get $x) (local.get $i)) (i32.const 0x9e3779b1)))"),
    (
        "memory",
        "(i32.store (i32.and (local.get $x) (i32.const 0xfffc)) (local.get $i))
         (local.set $x (i32.add (i32.load (i32.and (local.get $i) (i32.const 0xfffc))) (local.get $x)))",
    ),
    ("calls", "(local.set $x (call $f (local.get $x)))"),
];

fn main() {
    for (name, body) in WORK {
        let (fuel, with) = measure(body, true);
        let (_, without) = measure(body, false);
        println!(
            "{name}: {:.2} units per ns; counting them takes {:.0} % more time",
            fuel as f64 / with as f64,
            (with as f64 / without as f64 - 1.0) * 100.0
        );
    }
}

/// Fuel used, and nanoseconds.
fn measure(body: &str, count: bool) -> (u64, u64) {
    let engine = Engine::new(Config::new().consume_fuel(count).epoch_interruption(true)).unwrap();
    let module = format!(
        r#"(module (memory 1)
            (func $f (param i32) (result i32)
                (if (result i32) (i32.and (local.get 0) (i32.const 1))
                    (then (i32.add (i32.mul (local.get 0) (i32.const 3)) (i32.const 1)))
                    (else (i32.shr_u (local.get 0) (i32.const 1)))))
            (func (export "run") (local $i i32) (local $x i32)
                (local.set $i (i32.const 300000000))
                (loop $l {body}
                    (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))))"#
    );
    let module = Module::new(&engine, module).unwrap();
    let mut store = Store::new(&engine, ());
    if count {
        store.set_fuel(u64::MAX).unwrap();
    }
    store.set_epoch_deadline(1);
    let run = Instance::new(&mut store, &module, &[]).unwrap();
    let run = run.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    let before = cpu_nanoseconds();
    run.call(&mut store, ()).unwrap();
    let nanoseconds = cpu_nanoseconds() - before;
    (if count { u64::MAX - store.get_fuel().unwrap() } else { 0 }, nanoseconds)
}

/// CPU time of this thread so far, which others on the machine do not touch.
fn cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split_whitespace().next().unwrap().parse().unwrap()
}
