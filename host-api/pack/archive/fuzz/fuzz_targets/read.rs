//! Untrusted uploads; see `../target.rs`.

#![no_main]

#[path = "../target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    target::read(bytes);
});
