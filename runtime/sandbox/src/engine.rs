//! The engine's configuration, equal for all hooks.

use std::{fmt, hash::Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::{
    Collector, Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy, WasmFeatures,
};

use crate::{Options, divide, limits};

/// Returns the engine's name and version, for `status` and for the journal.
pub fn engine_version() -> &'static str {
    // The dependency pins the major version. A test compares the patch version with the lock file.
    ENGINE_VERSION
}

const ENGINE_VERSION: &str = concat!("wasmtime ", "48.0.8");

/// Builds the engine.
pub(crate) fn build(options: &Options) -> wasmtime::Result<Engine> {
    Engine::new(&config(options))
}

fn config(options: &Options) -> Config {
    let mut config = Config::new();
    features(&mut config);
    determinism(&mut config);
    config
        .strategy(Strategy::Cranelift)
        // A trap's message names the functions of its backtrace, without source lines.
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES))
        .native_unwind_info(false)
        .memory_init_cow(true)
        .max_wasm_stack(limits::WASM_STACK)
        .async_stack_size(limits::ASYNC_STACK)
        // A hook's stack is zeroed before the next hook gets it.
        .async_stack_zeroing(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    config
}

/// The most frames of a trap's backtrace.
const BACKTRACE_FRAMES: usize = 20;

/// Sets the WebAssembly proposals that charms may use.
fn features(config: &mut Config) {
    // Switched off at run time and not at compile time: without the cargo feature `gc`, a module with a typed
    // `call_indirect` aborts the process. Multi-memory stays on for composed components.
    let off = WasmFeatures::GC
        | WasmFeatures::GC_TYPES
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::THREADS
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::MEMORY64
        | WasmFeatures::TAIL_CALL;
    config.wasm_features(off, false).collector(Collector::Null).shared_memory(false);
}

/// Sets the options that make runs repeatable and interruptible.
fn determinism(config: &mut Config) {
    config
        .cranelift_nan_canonicalization(true)
        .concurrency_support(false)
        .consume_fuel(true)
        .epoch_interruption(true);
}

fn pool(options: &Options) -> PoolingAllocationConfig {
    let hooks = options.hooks_in_flight.max(1);
    let resident = usize::try_from(options.resident_bytes).unwrap_or(usize::MAX);
    let largest = usize::try_from(options.largest_memory).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.max_component_instance_size(limits::INSTANCE_BYTES)
        .max_core_instance_size(limits::INSTANCE_BYTES)
        .total_component_instances(hooks)
        .total_stacks(hooks)
        .total_core_instances(hooks.saturating_mul(limits::MAX_INSTANCES))
        .total_memories(hooks.saturating_mul(limits::MAX_MEMORIES))
        .total_tables(hooks.saturating_mul(limits::MAX_TABLES))
        .max_core_instances_per_component(limits::MAX_INSTANCES)
        .max_memories_per_component(limits::MAX_MEMORIES)
        .max_tables_per_component(limits::MAX_TABLES)
        .max_memories_per_module(limits::MAX_MEMORIES)
        .max_tables_per_module(limits::MAX_TABLES)
        .table_elements(limits::MAX_TABLE_ELEMENTS as usize)
        .max_memory_size(largest)
        .linear_memory_keep_resident(resident)
        .table_keep_resident(resident)
        .async_stack_keep_resident(limits::WASM_STACK)
        .max_unused_warm_slots(hooks);
    pool
}

/// A hash of the factors of compiled code beside the component: the engine's version and settings, this machine's
/// processor, and the rules of division. Engines with the same hash can share compiled code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompatibilityHash([u8; 16]);

impl CompatibilityHash {
    pub(crate) fn of(engine: &Engine) -> Self {
        let mut digest = DigestHasher(Sha256::new());
        std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut digest);
        digest.0.update(engine_version());
        digest.0.update(divide::VERSION.to_le_bytes());
        let full: [u8; 32] = digest.0.finalize().into();
        let mut hash = [0; 16];
        hash.iter_mut().zip(full).for_each(|(to, from)| *to = from);
        Self(hash)
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The hash in 32 hex digits.
impl fmt::Display for CompatibilityHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A hasher with the same result in every process, unlike the standard ones.
struct DigestHasher(Sha256);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Callers use only the digest.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_of_the_same_settings_share_compiled_code_whatever_their_pools() {
        let one = build(&Options::default()).unwrap();
        let other = build(&Options { hooks_in_flight: 2, ..Options::default() }).unwrap();
        assert_eq!(CompatibilityHash::of(&one), CompatibilityHash::of(&other));
        assert_eq!(CompatibilityHash::of(&one).to_string().len(), 32);
    }

    #[test]
    fn the_version_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        let (_, after) = lock.split_once("name = \"wasmtime\"\nversion = \"").unwrap();
        let (version, _) = after.split_once('"').unwrap();
        assert_eq!(engine_version(), format!("wasmtime {version}"));
    }

    #[test]
    fn a_typed_indirect_call_is_refused_and_ends_nothing() {
        let engine = build(&Options::default()).unwrap();
        let module = r#"(module
            (type $t (sub (func (result i32))))
            (table 1 funcref)
            (func (export "run") (result i32) (call_indirect (type $t) (i32.const 0))))"#;
        let component = format!("(component (core module {}", module.trim_start_matches("(module"));
        let error = engine.precompile_component(format!("{component})").as_bytes()).unwrap_err();
        assert!(format!("{error:?}").contains("gc"), "{error:?}");
    }
}
