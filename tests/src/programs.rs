//! Programs that controllers and agents are upgraded to: copies of the binary under test, and stand-ins for bad ones.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use periapt_host_api::LEVEL;

use crate::binary;

/// Returns a copy of the binary under test without what only debuggers read: it is a fourth as large.
pub fn stripped(directory: &Path) -> anyhow::Result<PathBuf> {
    let path = directory.join("periapt");
    let mut strip = Command::new("strip");
    let stripped = strip.arg("-o").arg(&path).arg(binary()?).status().context("strip, of binutils")?;
    ensure!(stripped.success(), "strip: {stripped}");
    Ok(path)
}

/// Returns a copy of a program with more bytes at its end: another digest, and the same behaviour.
pub fn varied(program: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = program.with_file_name(name);
    fs::copy(program, &path)?;
    fs::OpenOptions::new().append(true).open(&path)?.write_all(name.as_bytes())?;
    Ok(path)
}

/// Returns a copy of a program in which a text is replaced by another one of the same length.
pub fn patched(program: &Path, name: &str, text: &str, by: &str) -> anyhow::Result<PathBuf> {
    ensure!(text.len() == by.len(), "{text} and {by} have the same length");
    let (path, mut bytes) = (program.with_file_name(name), fs::read(program)?);
    let places: Vec<_> =
        bytes.windows(text.len()).enumerate().filter(|(_, part)| *part == text.as_bytes()).collect();
    let places: Vec<_> = places.into_iter().map(|(at, _)| at).collect();
    ensure!(!places.is_empty(), "{} does not have {text:?}", program.display());
    for at in places {
        bytes.get_mut(at..at + by.len()).context("a place")?.copy_from_slice(by.as_bytes());
    }
    fs::copy(program, &path)?;
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Returns a program that tells the version of the one under test, and ends with 7 whatever else it is asked.
pub fn ends_at_once(directory: &Path) -> anyhow::Result<PathBuf> {
    let (source, path) = (directory.join("stand-in.c"), directory.join("stand-in"));
    let told = format!(r#"{{\"periapt-version\":\"{}\",\"level\":{}}}"#, env!("CARGO_PKG_VERSION"), LEVEL.0);
    fs::write(
        &source,
        format!(
            "#include <stdio.h>\n#include <string.h>\nint main(int count, char **words) {{\n  \
             if (count > 1 && strcmp(words[1], \"version\") == 0) {{ puts(\"{told}\"); return 0; }}\n  return 7;\n}}\n"
        ),
    )?;
    let made = Command::new("cc").arg("-o").arg(&path).arg(&source).status().context("cc")?;
    ensure!(made.success(), "cc: {made}");
    Ok(path)
}
