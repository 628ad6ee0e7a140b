//! Measures what a second of CPU time is in fuel, for `FUEL_PER_SECOND`: loops that do what ordinary code does,
//! and their fuel per nanosecond of this thread's CPU time.
//!
//! `cargo run -p periapt-sandbox --example fuel [COMPONENT]`
//!
//! With a component, also what counting costs in it: the guest in `examples/python`, as `componentize-py` builds it,
//! is an interpreter at the work of a charm. How to build it stands at its head.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use wasmtime::{
    Config, Engine, Instance, Module, Store,
    component::{Component, Linker, ResourceTable},
};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

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

/// What the Python guest can be asked to do.
const PYTHON_WORK: [&str; 4] = ["dispatch", "metadata", "objects", "text"];

/// How often each is measured, with and without counting by turns; the least time of each counts.
const ROUNDS: usize = 41;

fn main() {
    if let Some(path) = std::env::args_os().nth(1) {
        measure_component(&std::fs::read(path).unwrap());
        return;
    }
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

/// What counting costs in a component that exports `run`.
fn measure_component(bytes: &[u8]) {
    let mut counted = Python::new(bytes, true);
    let mut plain = Python::new(bytes, false);
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

/// The Python guest on an engine of its own.
struct Python {
    store: Store<Host>,
    run: wasmtime::component::TypedFunc<(String,), (u64,)>,
    count: bool,
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
    fn new(bytes: &[u8], count: bool) -> Self {
        let engine = Engine::new(Config::new().consume_fuel(count).epoch_interruption(true)).unwrap();
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
        if count {
            store.set_fuel(u64::MAX).unwrap();
        }
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let run = instance.get_typed_func(&mut store, "run").unwrap();
        Self { store, run, count }
    }

    /// Fuel used, and nanoseconds.
    fn run(&mut self, work: &str) -> (u64, u64) {
        if self.count {
            self.store.set_fuel(u64::MAX).unwrap();
        }
        let before = cpu_nanoseconds();
        self.run.call(&mut self.store, (work.to_owned(),)).unwrap();
        let nanoseconds = cpu_nanoseconds() - before;
        (if self.count { u64::MAX - self.store.get_fuel().unwrap() } else { 0 }, nanoseconds)
    }
}

/// CPU time of this thread so far, which others on the machine do not touch.
fn cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    statistics.split_whitespace().next().unwrap().parse().unwrap()
}
