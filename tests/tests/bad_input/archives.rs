//! Charms that are no charms, or are damaged.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::Path,
};

use periapt_tests::{module, packed};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::scene::{check_all, quiet};

/// Creates a directory with these files.
fn directory(path: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    fs::create_dir_all(path)?;
    for (name, content) in files {
        fs::write(path.join(name), content)?;
    }
    Ok(())
}

/// Returns a zip with files of zeros of these sizes, in MiB.
fn bomb(sizes: &[usize]) -> anyhow::Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let piece = vec![0; 1 << 20];
    for (number, size) in sizes.iter().enumerate() {
        zip.start_file(format!("templates/{number}"), SimpleFileOptions::default())?;
        for _ in 0..*size {
            zip.write_all(&piece)?;
        }
    }
    Ok(zip.finish()?.into_inner())
}

/// Returns a charm's archive with two more files of these names.
fn with_files(whole: &[u8], names: [&str; 2]) -> anyhow::Result<Vec<u8>> {
    // The library refuses some names: placeholders of equal length are replaced afterwards.
    let placeholders = names.map(|name| "#".repeat(name.len() - 1));
    let mut zip = ZipWriter::new_append(Cursor::new(whole.to_vec()))?;
    for (number, place) in placeholders.iter().enumerate() {
        zip.start_file(format!("{place}{number}"), SimpleFileOptions::default())?;
        zip.write_all(b"content")?;
    }
    let mut archive = zip.finish()?.into_inner();
    for (number, (place, name)) in placeholders.iter().zip(names).enumerate() {
        let place = format!("{place}{number}");
        while let Some(at) = archive.windows(place.len()).position(|window| window == place.as_bytes()) {
            archive[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
    }
    Ok(archive)
}

/// Returns archives that a zip library may accept, each with a name and the expected error.
fn lying(whole: &[u8]) -> anyhow::Result<Vec<(&'static str, Vec<u8>, &'static str)>> {
    let [long, longer] = ["n", "m"].map(|letter| letter.repeat(300));
    let mut trailing = whole.to_vec();
    trailing.extend_from_slice(b"more");
    Ok(vec![
        (
            "double.charm",
            with_files(whole, ["files/same", "files/same"])?,
            "entry \"files/same\": the archive has two entries of this name",
        ),
        (
            "below.charm",
            with_files(whole, ["charm.wasm/x", "charm.wasm/y"])?,
            "entry \"charm.wasm/x\": it lies below a file of the archive",
        ),
        ("long.charm", with_files(whole, [&long, &longer])?, "a part of its path is longer than 255 bytes"),
        ("trailing.charm", trailing, "data follows its end"),
        ("leading.charm", [b"more".as_slice(), whole].concat(), "4 bytes before its first entry"),
    ])
}

const BROKEN_YAML: &str = "name: broken\nsummary: s\ndescription: d\nprovides:\n  db: [mysql\n";

#[test]
fn a_charm_that_is_none_or_is_broken_is_told_before_anything_is_uploaded() -> anyhow::Result<()> {
    let periapt = quiet()?;
    let here = periapt.path();
    let whole = fs::read(packed("mysql", here)?)?;
    fs::write(here.join("half.charm"), &whole[..whole.len() / 2])?;
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x55;
    fs::write(here.join("flipped.charm"), flipped)?;
    fs::write(here.join("text.charm"), "no zip")?;
    fs::write(here.join("empty.charm"), "")?;
    fs::write(here.join("bomb.charm"), bomb(&[300, 300])?)?;
    directory(&here.join("empty"), &[])?;
    directory(&here.join("yaml"), &[("charmcraft.yaml", BROKEN_YAML), ("charm.wasm", "")])?;
    fs::copy(module("mysql")?, here.join("yaml/charm.wasm"))?;
    directory(&here.join("script"), &[("charmcraft.yaml", "name: script\n"), ("charm.wasm", "#!/bin/sh\n")])?;
    directory(&here.join("nameless"), &[("charmcraft.yaml", "summary: s\ndescription: d\n")])?;
    fs::copy(module("mysql")?, here.join("nameless/charm.wasm"))?;
    directory(&here.join("bare"), &[("charm.wasm", "")])?;
    check_all(
        &periapt,
        vec![
            (
                vec!["deploy", "./nowhere"],
                vec!["./nowhere: No such file or directory", "hint: name a charm's"],
            ),
            (vec!["deploy", "./empty"], vec!["./empty holds neither charm.wasm nor a .charm file", "hint: "]),
            (
                vec!["deploy", "./bare"],
                vec!["./bare is not a charm", "neither charmcraft.yaml nor metadata.yaml"],
            ),
            (vec!["deploy", "half.charm"], vec!["half.charm: not a charm archive: "]),
            (vec!["deploy", "flipped.charm"], vec!["flipped.charm: ", "charm.wasm", "is broken"]),
            (vec!["deploy", "text.charm"], vec!["text.charm: not a charm archive: "]),
            (vec!["deploy", "empty.charm"], vec!["empty.charm: not a charm archive: "]),
            (
                vec!["deploy", "bomb.charm"],
                vec!["bomb.charm: the archive has ", " bytes, and unpacks to 629149696; at most "],
            ),
            (vec!["deploy", "./yaml"], vec!["charmcraft.yaml: line 5 column "]),
            (vec!["pack", "./yaml"], vec!["charmcraft.yaml: line 5 column "]),
            (vec!["deploy", "./script"], vec!["./script/charm.wasm: ", "WebAssembly"]),
            (vec!["pack", "./script"], vec!["./script/charm.wasm: ", "WebAssembly"]),
            (vec!["deploy", "./nameless"], vec!["charmcraft.yaml: name is missing"]),
            (vec!["pack", "./nowhere"], vec!["./nowhere/charm.wasm does not exist", "hint: "]),
            (vec!["pack", "./yaml", "--wasm", "text.charm"], vec!["text.charm"]),
        ],
    )?;
    for (name, archive, says) in lying(&whole)? {
        fs::write(here.join(name), archive)?;
        check_all(&periapt, vec![(vec!["deploy", name], vec![name, says])])?;
    }
    // An application that exists refuses the same charms.
    periapt.ok(["deploy", "mysql.charm"])?;
    check_all(
        &periapt,
        vec![
            (vec!["refresh", "mysql", "--path", "./nowhere"], vec!["./nowhere"]),
            (vec!["refresh", "mysql", "--path", "half.charm"], vec!["half.charm: not a charm archive: "]),
            (vec!["refresh", "mysql", "--path", "./yaml"], vec!["charmcraft.yaml: line 5 column "]),
        ],
    )
}
