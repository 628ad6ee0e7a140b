//! Output that cannot be written, and output that is redirected.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt as _, symlink},
    process::{Command, Stdio},
};

use periapt_tests::{Installation, packed};

#[test]
fn output_that_cannot_be_written_is_an_error_of_every_command() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    packed("mysql", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    for arguments in [
        &["help"][..],
        &["--help"],
        &["help", "deploy"],
        &["status", "--help"],
        &["help", "hook-tool", "relation-get"],
        &["--version"],
        &["version"],
        &["completion", "bash"],
        &["documentation"],
        &["status"],
        &["status", "--format", "json"],
        &["config", "mysql"],
        &["config", "mysql", "max-connections"],
        &["controllers", "--format", "yaml"],
        &["switch"],
        &["remove-application", "mysql", "--dry-run"],
        &["models"],
        &["export-bundle"],
    ] {
        let full = File::options().write(true).open("/dev/full")?;
        let done = periapt.command(arguments).stdout(full).stderr(Stdio::piped()).output()?;
        let error = String::from_utf8(done.stderr)?;
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(
            error.ends_with("ERROR cannot write the output: No space left on device (os error 28)\n"),
            "{error}"
        );

        let (reader, closed) = io::pipe()?;
        drop(reader);
        let done = periapt.command(arguments).stdout(closed).stderr(Stdio::piped()).output()?;
        let error = String::from_utf8(done.stderr)?;
        assert_eq!((done.status.code(), error.contains("ERROR")), (Some(0), false), "{arguments:?}: {error}");
    }
    let full = File::options().write(true).open("/dev/full")?;
    let mut asked = periapt.command(["--", "periapt", "sta"]);
    asked.env("PERIAPT_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "1");
    assert_eq!(asked.stdout(full).status()?.code(), Some(1), "a shell that asks is told");
    Ok(())
}

#[test]
fn what_is_no_ordinary_file_is_written_to_and_not_replaced() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let here = periapt.path();
    let archive = fs::read(packed("mysql", here)?)?;
    let charm = concat!(env!("CARGO_MANIFEST_DIR"), "/../charms/mysql");
    let wasm = periapt_tests::module("mysql")?;
    let pack = |output: &str| {
        let mut command = periapt.command(["pack", charm, "-o", output, "--wasm"]);
        command.arg(&wasm);
        command
    };
    // Links: to a device, to a file, to a missing file, to standard output.
    symlink("/dev/null", here.join("null"))?;
    symlink("/proc/self/fd/1", here.join("out"))?;
    symlink("real.charm", here.join("link.charm"))?;
    for target in ["null", "link.charm", "link.charm"] {
        assert!(pack(target).status()?.success(), "{target}");
        assert!(fs::symlink_metadata(here.join(target))?.is_symlink(), "{target} was replaced");
    }
    assert_eq!(fs::read(here.join("real.charm"))?, archive);
    assert!(fs::metadata("/dev/null")?.file_type().is_char_device());
    // Standard output as a pipe, and as a file that gets further output.
    assert_eq!(pack("out").output()?.stdout, archive);
    let taken = here.join("taken");
    assert!(pack("out").args(["--format", "json"]).stdout(File::create(&taken)?).status()?.success());
    let taken = fs::read(taken)?;
    assert!(taken.starts_with(&archive), "the archive comes first");
    assert!(taken[archive.len()..].starts_with(b"{\"charms\":"), "what was packed comes after it");
    // A FIFO, for archives and for listings.
    assert!(Command::new("mkfifo").arg(here.join("fifo")).status()?.success());
    for (command, expected) in [
        (pack("fifo"), archive.clone()),
        (periapt.command(["version", "-o", "fifo"]), periapt.ok(["version"])?.into()),
    ] {
        let mut command = command;
        let reader = std::thread::spawn({
            let fifo = here.join("fifo");
            move || fs::read(fifo)
        });
        assert!(command.status()?.success());
        assert!(reader.join().unwrap()? == expected, "{command:?}");
        assert!(fs::metadata(here.join("fifo"))?.file_type().is_fifo());
    }
    // No partial file remains.
    let left: Vec<_> = fs::read_dir(here)?.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains(".part")), "{left:?}");
    Ok(())
}

#[test]
fn a_client_file_that_is_a_link_stays_one() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let data = periapt.path().join("data");
    fs::create_dir(&data)?;
    fs::create_dir(periapt.path().join("elsewhere"))?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    fs::rename(data.join("client.json"), periapt.path().join("elsewhere/client.json"))?;
    symlink("../elsewhere/client.json", data.join("client.json"))?;
    periapt.ok(["add-model", "test"])?;
    assert!(fs::symlink_metadata(data.join("client.json"))?.is_symlink());
    assert_eq!(periapt.ok(["switch"])?, "local:admin/test\n");
    Ok(())
}
