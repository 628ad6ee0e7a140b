//! Measures what a second of CPU time is in fuel, for `FUEL_PER_SECOND`: runs the guests that use it up, and
//! tells their fuel per second of this thread's CPU time.
//!
//! `make guests && cargo run --release -p periapt-sandbox --example fuel`
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
        let (fuel, nanoseconds) = measure(body);
        println!("{name}: {:.2} units per ns", fuel as f64 / nanoseconds as f64);
    }
}

fn measure(body: &str) -> (u64, u64) {
    let engine = Engine::new(Config::new().consume_fuel(true).epoch_interruption(true)).unwrap();
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
    store.set_fuel(u64::MAX).unwrap();
    store.set_epoch_deadline(1);
    let run = Instance::new(&mut store, &module, &[]).unwrap();
    let run = run.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    let before = cpu_nanoseconds();
    run.call(&mut store, ()).unwrap();
    (u64::MAX - store.get_fuel().unwrap(), cpu_nanoseconds() - before)
}

/// CPU time of this thread so far, which others on the machine do not touch.
fn cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split_whitespace().next().unwrap().parse().unwrap()
}
