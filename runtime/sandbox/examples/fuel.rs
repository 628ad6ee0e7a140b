//! Measures the fuel of a second of CPU time, for `FUEL_PER_SECOND`: loops of ordinary code, with their fuel per
//! nanosecond of this thread's CPU time.
//!
//! `cargo run -p periapt-sandbox --example fuel [COMPONENT]`
//!
//! With a component, it also measures the cost of counting in it: the guest in `examples/python`, built by
//! `componentize-py`, is an interpreter that does the work of a charm. Its first lines explain the build.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use wasmtime::{
    Config, Engine, Instance, Module, Store,
    component::{Component, Linker, ResourceTable},
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

/// Loops of ordinary code: the name, and the body of a loop over `$i`, downwards.
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

/// The work that the Python guest supports.
const PYTHON_WORK: [&str; 4] = ["dispatch", "metadata", "objects", "text"];

/// The number of measurements with and without counting, by turns. The least time of each counts.
const ROUNDS: usize = 41;

/// The mode of an engine: with or without the count of fuel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fuel {
    Counted,
    Uncounted,
}

fn main() {
    if let Some(path) = std::env::args_os().nth(1) {
        measure_component(&std::fs::read(path).unwrap());
        return;
    }
    for (name, body) in WORK {
        let (fuel, with) = measure(body, Fuel::Counted);
        let (_, without) = measure(body, Fuel::Uncounted);
        println!(
            "{name}: {:.2} units per ns; counting them takes {:.0} % more time",
            fuel as f64 / with as f64,
            (with as f64 / without as f64 - 1.0) * 100.0
        );
    }
}

/// Returns the fuel used, and nanoseconds.
fn measure(body: &str, fuel: Fuel) -> (u64, u64) {
    let engine =
        Engine::new(Config::new().consume_fuel(fuel == Fuel::Counted).epoch_interruption(true)).unwrap();
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
    if fuel == Fuel::Counted {
        store.set_fuel(u64::MAX).unwrap();
    }
    store.set_epoch_deadline(1);
    let run = Instance::new(&mut store, &module, &[]).unwrap();
    let run = run.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    let before = cpu_nanoseconds();
    run.call(&mut store, ()).unwrap();
    let nanoseconds = cpu_nanoseconds() - before;
    (if fuel == Fuel::Counted { u64::MAX - store.get_fuel().unwrap() } else { 0 }, nanoseconds)
}

/// Prints the cost of counting in a component that exports `run`.
fn measure_component(bytes: &[u8]) {
    let mut counted = Python::new(bytes, Fuel::Counted);
    let mut plain = Python::new(bytes, Fuel::Uncounted);
    for work in PYTHON_WORK {
        let mut best = [u64::MAX; 2];
        let mut fuel = 0;
        for _ in 0..ROUNDS {
            let (used, nanoseconds) = counted.run(work);
            fuel = used;
            best[0] = best[0].min(nanoseconds);
            best[1] = best[1].min(plain.run(work).1);
        }
        let [with, without] = best;
        println!(
            "{work}: {:.2} units per ns, {:.1} ms; counting them takes {:.0} % more time",
            fuel as f64 / with as f64,
            with as f64 / 1e6,
            (with as f64 / without as f64 - 1.0) * 100.0
        );
    }
}

/// The Python guest in its own engine.
struct Python {
    store: Store<Host>,
    run: wasmtime::component::TypedFunc<(String,), (u64,)>,
    fuel: Fuel,
}

struct Host {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl Python {
    fn new(bytes: &[u8], fuel: Fuel) -> Self {
        let engine =
            Engine::new(Config::new().consume_fuel(fuel == Fuel::Counted).epoch_interruption(true)).unwrap();
        let component = Component::new(&engine, bytes).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        let scratch = std::env::temp_dir();
        let wasi = WasiCtx::builder()
            .preopened_dir(scratch, "/tmp", FsPerms::ReadWrite)
            .unwrap()
            .inherit_stderr()
            .build();
        let host = Host { wasi, table: ResourceTable::new() };
        let mut store = Store::new(&engine, host);
        store.set_epoch_deadline(1);
        if fuel == Fuel::Counted {
            store.set_fuel(u64::MAX).unwrap();
        }
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let run = instance.get_typed_func(&mut store, "run").unwrap();
        Self { store, run, fuel }
    }

    /// Returns the fuel used, and nanoseconds.
    fn run(&mut self, work: &str) -> (u64, u64) {
        if self.fuel == Fuel::Counted {
            self.store.set_fuel(u64::MAX).unwrap();
        }
        let before = cpu_nanoseconds();
        self.run.call(&mut self.store, (work.to_owned(),)).unwrap();
        let nanoseconds = cpu_nanoseconds() - before;
        (if self.fuel == Fuel::Counted { u64::MAX - self.store.get_fuel().unwrap() } else { 0 }, nanoseconds)
    }
}

/// Returns the CPU time of this thread so far, which other processes do not affect.
fn cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split_whitespace().next().unwrap().parse().unwrap()
}
