//! Requests of clients, and deeds of processes; see `../target.rs`.

#![no_main]

#[allow(dead_code, reason = "each program has one of the targets")]
#[path = "../target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    target::pod::requests(bytes);
});
