//! Dialogues whose reader takes nothing: the command is held up, and nothing else is, for as long as the client lives. Logs
//! whose reader takes nothing go on later.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, POLL_INTERVAL, signal};

use super::{
    Scene, processes,
    sessions::{EXEC, begun},
    until,
};

/// The time for which a reader takes nothing. Elsewhere, a pod gives a peer up that reads nothing for 60 seconds; and a client
/// that does not answer in 20 seconds is given up.
const PAUSE: Duration = Duration::from_secs(65);

/// A dialogue with a command that counts, to a number that no other test has.
struct Counting {
    last: u32,
    client: Child,
}

impl Drop for Counting {
    fn drop(&mut self) {
        // One that a failed test has stopped would stay for ever.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

/// A follower of a log whose service writes numbered lines of 4 KB, at most thirty of them a second.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Following {
    /// Starts the service and its follower, whose output nobody reads.
    fn begin(scene: &Scene) -> anyhow::Result<Self> {
        let script = "pad=$(seq -s , 1 900); i=0; while true; do i=$((i+1)); echo $i $pad; sleep 0.03; done";
        scene.serve_script("web", script)?;
        scene.periapt.ok_until(&["logs", "probe/0", "-n", "1"], |shown| shown.contains(",899,900"))?;
        let mut command = scene.periapt.command(["logs", "probe/0", "-n", "all", "--follow"]);
        Ok(Self(command.stdout(Stdio::piped()).spawn()?))
    }

    /// Reads on until the service's present line. Each line is whole, and comes once and in order; those that the pod does
    /// not keep any more are left out.
    fn catches_up(&mut self, scene: &Scene) -> anyhow::Result<()> {
        let present = number(&scene.periapt.ok(["logs", "probe/0", "-n", "1"])?)?;
        let mut last = 0;
        for line in BufReader::new(self.0.stdout.take().context("an output")?).lines() {
            let number = number(&line?)?;
            ensure!(number > last, "line {number} comes after {last}");
            last = number;
            if last >= present {
                return Ok(());
            }
        }
        anyhow::bail!("the log has ended after line {last} of {present}: {:?}", self.0.wait()?)
    }
}

/// Returns the number of a shown line, which must be whole.
fn number(line: &str) -> anyhow::Result<u64> {
    let (_, text) = line.split_once(" [say] ").with_context(|| line.to_owned())?;
    let (number, pad) = text.split_once(' ').with_context(|| line.to_owned())?;
    ensure!(pad.starts_with("1,2,") && pad.trim_end().ends_with(",899,900"), "not whole: {line}");
    Ok(number.parse()?)
}

impl Counting {
    /// Begins to count, and returns once the command runs. Nothing is read.
    fn begin(periapt: &Installation, last: u32) -> anyhow::Result<Self> {
        // The command alone has the number in its command line.
        let script = format!("seq 1 $(({}+1)); exit 6", last - 1);
        let client = begun(periapt, &["-i", "--", "sh", "-c", &script])?;
        let counting = Self { last, client };
        until("the command runs", || counting.runs())?;
        Ok(counting)
    }

    fn runs(&self) -> anyhow::Result<bool> {
        Ok(!processes(&[&format!("seq 1 {}", self.last)])?.is_empty())
    }
}

#[test]
fn a_reader_of_a_dialogue_may_pause_and_gets_every_byte_and_the_exit_code_later() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let mut following = Following::begin(&scene)?;
    let last = 1_000_037;
    let mut counting = Counting::begin(periapt, last)?;
    let mut silent = Counting::begin(periapt, 1_000_041)?;
    signal(silent.client.id(), "STOP")?;
    let began = Instant::now();

    // Neither another dialogue with the same agent nor a hook waits.
    let mut other = periapt.command(EXEC);
    other.args(["-i", "--", "echo", "other"]).stdin(Stdio::null());
    let other = Installation::finished(other)?;
    assert_eq!((other.code, &*other.stdout), (Some(0), "other\n"), "{other:?}");
    scene.boot_id()?;

    until("the command has ended with its silent client", || Ok(!silent.runs()?))?;
    silent.client.kill()?;
    silent.client.wait()?;
    while began.elapsed() < PAUSE {
        ensure!(counting.runs()?, "the command has ended: {:?}", counting.client.try_wait()?);
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut told = String::new();
    counting.client.stdout.take().context("an output")?.read_to_string(&mut told)?;
    let expected: String = (1..=last).map(|number| format!("{number}\n")).collect();
    ensure!(told == expected, "{} of {} bytes have come", told.len(), expected.len());
    assert_eq!(counting.client.wait()?.code(), Some(6));
    following.catches_up(&scene)
}

#[test]
fn a_dialogue_whose_reader_pauses_ends_with_a_client_that_dies() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let mut counting = Counting::begin(periapt, 1_000_039)?;
    counting.client.kill()?;
    counting.client.wait()?;
    until("the command has ended with its client", || Ok(!counting.runs()?))
}
