//! Seeds as files, where libFuzzer looks for them.

use std::{fs, path::PathBuf};

/// Writes seeds to the directory that PERIAPT_FUZZ_SEEDS names, if it is set.
pub(crate) fn write(seeds: &[Vec<u8>]) {
    let Some(directory) = std::env::var_os("PERIAPT_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(directory.join(format!("made-{number}")), seed).unwrap();
    }
}
