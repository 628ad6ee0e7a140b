//! Documents of images; see `../target.rs`.

#![no_main]

#[allow(dead_code, reason = "each program has one of the targets")]
#[path = "../seeds.rs"]
mod seeds;
#[allow(dead_code, reason = "each program has one of the targets")]
#[path = "../target.rs"]
mod target;
#[path = "../write.rs"]
mod write;

libfuzzer_sys::fuzz_target!(init: write::write(&seeds::documents()), |bytes: &[u8]| {
    target::documents(bytes);
});
