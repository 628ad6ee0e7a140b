//! Files without an end, and FIFOs without a writer.

use std::{
    fs::{self, File},
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::ensure;
use periapt_tests::packed;

use crate::scene::{check_all, quiet};

/// A bundle that includes an endless file.
const INCLUDING: &str = "applications:\n  db:\n    charm: ./mysql.charm\n    options:\n      character-set: include-file:///dev/zero\n";

#[test]
fn what_never_ends_is_refused_and_what_nobody_writes_is_not_waited_for() -> anyhow::Result<()> {
    let periapt = quiet()?;
    packed("mysql", periapt.path())?;
    packed("probe", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    let here = periapt.path();
    for fifo in ["fifo", "fifo.yaml"] {
        ensure!(Command::new("mkfifo").arg(here.join(fifo)).status()?.success());
    }
    fs::write(here.join("including.yaml"), INCLUDING)?;
    fs::write(here.join("bundle.yaml"), "applications:\n  db: {charm: ./mysql.charm}\n")?;
    fs::create_dir(here.join("charm"))?;
    fs::write(here.join("charm/charmcraft.yaml"), "name: c\nsummary: s\ndescription: d\n")?;
    ensure!(Command::new("mkfifo").arg(here.join("charm/charm.wasm")).status()?.success());
    File::create(here.join("large.yaml"))?.set_len(16 << 30)?;
    let endless = || vec!["/dev/zero is larger than the limit of 16 MiB"];
    check_all(
        &periapt,
        vec![
            (vec!["config", "mysql", "character-set=@/dev/zero"], endless()),
            (vec!["config", "mysql", "--file", "/dev/zero"], endless()),
            (
                vec!["config", "mysql", "--file", "large.yaml"],
                vec!["large.yaml is larger than the limit of 16 MiB"],
            ),
            (vec!["deploy", "mysql.charm", "db", "--config", "/dev/zero"], endless()),
            (vec!["deploy", "mysql.charm", "db", "--config", "character-set=@/dev/zero"], endless()),
            (vec!["model-config", "--file", "/dev/zero"], endless()),
            (vec!["model-defaults", "--file", "/dev/zero"], endless()),
            (vec!["run", "mysql/0", "backup", "--params", "/dev/zero"], endless()),
            (vec!["deploy", "bundle.yaml", "--overlay", "/dev/zero"], endless()),
            (vec!["add-cloud", "mine", "-f", "/dev/zero"], endless()),
            (vec!["add-credential", "aws", "-f", "/dev/zero"], endless()),
            (vec!["add-secret", "s", "--file", "/dev/zero"], vec!["/dev/zero is larger than the limit of "]),
            (vec!["add-secret", "s", "key#file=/dev/zero"], vec!["/dev/zero is larger than the limit of "]),
            (
                vec!["try-hook", "mysql.charm", "/dev/zero"],
                vec!["/dev/zero is larger than the limit of 64 MiB"],
            ),
            (vec!["deploy", "/dev/zero"], vec!["/dev/zero is not a regular file"]),
            (vec!["deploy", "fifo"], vec!["fifo is not a regular file"]),
            (vec!["deploy", "fifo.yaml"], vec!["fifo.yaml is not a regular file"]),
            (vec!["deploy", "including.yaml"], vec!["/dev/zero is not a regular file"]),
            (vec!["deploy", "./charm"], vec!["charm.wasm is neither a file nor a directory"]),
            (vec!["pack", "./charm"], vec!["charm.wasm is not a regular file"]),
            (vec!["try-hook", "fifo"], vec!["fifo is not a regular file"]),
            (vec!["deploy", "probe.charm", "--resource", "data=fifo"], vec!["fifo is not a regular file"]),
            (vec!["attach-resource", "mysql", "data=/dev/zero"], vec!["/dev/zero is not a regular file"]),
        ],
    )?;
    for (arguments, says) in [
        (&["model-config", "--file", "-"][..], "standard input is larger than the limit of 16 MiB"),
        (&["run", "mysql/0", "backup", "--params", "-"], "standard input is larger than the limit of 16 MiB"),
        (&["try-hook", "mysql.charm"], "a line of standard input is larger than the limit of 64 MiB"),
    ] {
        let done = periapt.command(arguments).stdin(File::open("/dev/zero")?).output()?;
        let error = String::from_utf8(done.stderr)?;
        ensure!(done.status.code() == Some(1) && error.contains(says), "{arguments:?}: {error}");
    }
    Ok(())
}

#[test]
fn a_text_comes_from_a_process_or_from_standard_input_as_well() -> anyhow::Result<()> {
    let periapt = quiet()?;
    packed("mysql", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    let shown =
        || Ok::<_, anyhow::Error>(periapt.ok(["config", "mysql", "max-connections"])?.trim().to_owned());
    let binary = periapt_tests::binary()?;
    let mut bash = periapt.program("bash");
    bash.args(["-c", "\"$0\" config mysql --file <(echo 'max-connections: 7')"]).arg(&binary);
    ensure!(bash.status()?.success());
    ensure!(shown()? == "7");
    let mut piped =
        periapt.command(["config", "mysql", "--file", "/dev/stdin"]).stdin(Stdio::piped()).spawn()?;
    piped.stdin.take().unwrap().write_all(b"max-connections: 8\n")?;
    ensure!(piped.wait()?.success());
    ensure!(shown()? == "8");
    let mut piped = periapt.command(["model-config", "--file", "-"]).stdin(Stdio::piped()).spawn()?;
    piped.stdin.take().unwrap().write_all(b"hook-timeout: 90s\n")?;
    ensure!(piped.wait()?.success());
    ensure!(periapt.ok(["model-config", "hook-timeout"])?.trim() == "90s");
    Ok(())
}
