//! The deeds of hostile workloads but their connections, and what comes of each.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};

use super::{super::row::StoppedBy, AttackedAgent};
use crate::{EVIL, ImageFate, hostile_images};

/// The processes of a container at most, as the agent bounds them.
const MAX_PROCESSES: usize = 1_024;

/// The unit beside the hostile one, and the name of its files.
const NEIGHBOUR: &str = "hostile/1";
const KEPT: &str = "a-neighbours-file";

/// The orphans of each of two kinds.
const ORPHANS: usize = 50;

impl AttackedAgent {
    pub(super) fn fork_bomb(&self) -> anyhow::Result<StoppedBy> {
        // Each turn starts a sleeper; what cannot be started ends the shell.
        let script = "i=0; while test $i -lt 3000; do sleep 5 & i=$((i+1)); done; echo $i";
        let (begun, counted) = std::thread::scope(|scope| {
            let bomb = scope.spawn(|| self.sh(script));
            let mut most = 0;
            while !bomb.is_finished() {
                most = self.marked()?.max(most);
                std::thread::sleep(Duration::from_millis(100));
            }
            let begun = bomb.join().map_err(|_| anyhow::anyhow!("the bomb panicked"))??;
            anyhow::Ok((begun, most))
        })?;
        let refused = begun.text.contains("fork") || begun.code != 0;
        self.until("the container has room again", || {
            Ok(self.sh("true").is_ok_and(|shell| shell.code == 0))
        })?;
        Ok(match refused && counted <= MAX_PROCESSES {
            true => StoppedBy::Bound(format!("{counted} processes, and no more can be started")),
            false => StoppedBy::Nobody(format!("{counted} processes: {}", begun.text)),
        })
    }

    pub(super) fn take_memory(&self) -> anyhow::Result<StoppedBy> {
        // A buffer of 2 GiB, all of which is written.
        let taken = self.sh("dd if=/dev/zero of=/dev/null bs=2G count=1")?;
        Ok(match taken.code {
            0 => StoppedBy::Nobody("it had 2 GiB".to_owned()),
            code => StoppedBy::Bound(format!("memory: return code {code}")),
        })
    }

    pub(super) fn new_files(&self) -> anyhow::Result<StoppedBy> {
        let filled = self.sh("dd if=/dev/zero of=/fill bs=1M count=4096; code=$?; rm /fill; exit $code")?;
        Ok(match filled.code != 0 && filled.text.contains("No space left") {
            true => StoppedBy::Bound("files: no space left".to_owned()),
            false => StoppedBy::Nobody(filled.text),
        })
    }

    pub(super) fn orphans(&self) -> anyhow::Result<StoppedBy> {
        let before = self.marked()?;
        // Half of them by a second fork, half in sessions of their own, too.
        let one = "(sleep 600 >/dev/null 2>&1 &); (setsid sh -c '(sleep 600 &)' >/dev/null 2>&1 &)";
        let script = format!("i=0; while test $i -lt {ORPHANS}; do {one}; i=$((i+1)); done");
        self.sh(&script)?;
        self.until("the orphans run", || Ok(self.marked()? >= before + 2 * ORPHANS))?;
        let left = self.marked()?.saturating_sub(before);
        // They end with the container, at the latest: `storage` and `end_container` look for them.
        Ok(match before + left <= MAX_PROCESSES {
            true => StoppedBy::Bound(format!("{left} left, which count as the container's")),
            false => StoppedBy::Nobody(format!("{left} processes")),
        })
    }

    pub(super) fn host_files(&self) -> anyhow::Result<StoppedBy> {
        let own = self.periapt.path().display();
        let seen = [
            format!("cat {own}/image.tar"),
            format!("ls {own}"),
            "cat /proc/1/root/../../etc/hostname /data/../../../etc/hostname".to_owned(),
            "cat /proc/kcore".to_owned(),
            "ls /sys/kernel | grep -c .".to_owned(),
            format!("kill -9 {}", self.agent.id()),
        ];
        let mut others = Vec::new();
        for attempt in &seen {
            let shell = self.sh(attempt)?;
            if shell.code == 0 && !shell.text.trim().is_empty() && shell.text.trim() != "0" {
                others.push(format!("{attempt}: {:?}", shell.text));
            }
        }
        Ok(match others.is_empty() {
            true => StoppedBy::Refusals(seen.len()),
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    pub(super) fn neighbours_files(&self) -> anyhow::Result<StoppedBy> {
        self.periapt.ok(["add-unit", "-m", "hostile", "hostile"])?;
        let neighbour = |script: &str| self.sh_of(NEIGHBOUR, script);
        self.until("the neighbour's container runs", || {
            Ok(neighbour("true").is_ok_and(|shell| shell.code == 0))
        })?;
        let made = neighbour(&format!("echo kept > /data/{KEPT}; echo kept > /{KEPT}"))?;
        ensure!(made.code == 0, "{}", made.text);
        let kept = found(&self.periapt.path().join("worker"), KEPT).context("the neighbour's storage")?;
        let directory = kept.parent().context("its directory")?;
        let storage = directory.file_name().context("its name")?.to_string_lossy();
        let (file, directory) = (kept.display(), directory.display());
        let attempts = [
            format!("echo evil > {file}"),
            format!("mkdir -p {directory}; echo evil > {file}"),
            format!("echo evil > /data/../{storage}/{KEPT}; echo evil > /data/../../../..{file}"),
            format!("for at in /proc/[0-9]*/root /proc/[0-9]*/cwd; do echo evil > $at{file}; done"),
            format!(
                "for at in /proc/[0-9]*/root; do echo evil > $at/data/{KEPT}; echo evil > $at/{KEPT}; done"
            ),
            format!("ln -s {file} /data/link; echo evil > /data/link"),
            format!("ln -s ../{storage}/{KEPT} /data/up; echo evil > /data/up"),
            format!("ln {file} /data/hard; echo evil > /data/hard"),
            format!("ln -s {directory} /data/directory; echo evil > /data/directory/{KEPT}"),
        ];
        let mut others = Vec::new();
        for attempt in &attempts {
            self.sh(attempt)?;
            let inside = neighbour(&format!("cat /data/{KEPT} /{KEPT}"))?.text;
            let on_host = fs::read_to_string(&kept)?;
            if (inside.as_str(), on_host.as_str()) != ("kept\nkept\n", "kept\n") {
                others.push(format!("{attempt}: {inside:?}, {on_host:?}"));
            }
        }
        self.sh(&format!("rm -f /data/* /{KEPT}"))?;
        let remove = ["remove-unit", "-m", "hostile", NEIGHBOUR, "--no-prompt", "--destroy-storage"];
        self.periapt.ok(remove)?;
        self.until("the neighbour is gone", || {
            Ok(!self.periapt.ok(["status", "-m", "hostile"])?.contains(NEIGHBOUR))
        })?;
        Ok(match others.is_empty() {
            true => StoppedBy::Refusals(attempts.len()),
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    pub(super) fn rights(&self) -> anyhow::Result<StoppedBy> {
        let wanted = [
            "mount -t tmpfs none /srv",
            "mknod /null c 1 3",
            "hostname other",
            "date -s 2000-01-01; test $(date +%Y) = 2000",
            "echo 1 >/proc/sys/kernel/panic",
            "chroot / mount -t proc none /srv",
            "unshare -m mount -t tmpfs none /srv",
        ];
        let mut others = Vec::new();
        for attempt in wanted {
            if self.sh(attempt)?.code == 0 {
                others.push(attempt);
            }
        }
        Ok(match others.is_empty() {
            true => StoppedBy::Refusals(wanted.len()),
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    pub(super) fn images(&self) -> anyhow::Result<StoppedBy> {
        let program = fs::read(self.periapt.path().join("root/bin/busybox"))?;
        let (mut refused, mut taken, mut others) = (0, 0, Vec::new());
        for image in hostile_images(&program, &["sh", "test", "true"]) {
            let file = format!("{}.tar", image.name);
            fs::write(self.periapt.path().join(&file), &image.archive)?;
            let attach = ["attach-resource", "-m", "hostile", "hostile", &format!("image={file}")];
            let done = self.periapt.run(attach)?;
            match image.fate {
                ImageFate::Refused(reason) if done.one_error().is_ok_and(|error| error.contains(reason)) => {
                    refused += 1;
                }
                ImageFate::Harmless if done.code == Some(0) => {
                    let script = format!(
                        "test -d /etc/{} || exit 3; for f in /etc/{EVIL}-*; do \
                         if test -b $f || test -c $f || test -p $f || test -u $f || test -g $f; then exit 4; fi; done",
                        image.name
                    );
                    let ended = |code| self.sh(&script).is_ok_and(|shell| code == shell.code);
                    self.until("the container runs on a hostile image", || Ok(ended(0) || ended(4)))?;
                    match ended(0) {
                        true => taken += 1,
                        false => others.push(format!("{}: a device, or rights", image.name)),
                    }
                }
                _ => others.push(format!("{}: {done:?}", image.name)),
            }
        }
        // What an earlier image began has ended with its container.
        self.until("no orphan is left", || Ok(self.marked()? == 0))?;
        self.periapt.ok(["attach-resource", "-m", "hostile", "hostile", "image=image.tar"])?;
        self.until("the container runs again", || {
            Ok(self.sh("test -e /bin/dd").is_ok_and(|shell| shell.code == 0))
        })?;
        Ok(match others.is_empty() {
            true => StoppedBy::Bound(format!("{refused} images refused, {taken} harmless")),
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    pub(super) fn deleted_files(&self) -> anyhow::Result<StoppedBy> {
        let running = self.marked()?;
        // The pod is ended meanwhile, and the task with it. The file goes with the last process that holds it.
        let script = "exec 9>/data/gone; rm /data/gone; dd if=/dev/zero bs=1M count=64 >&9; sleep 60";
        let _ = self.sh(script);
        let log = ["debug-log", "-m", "hostile", "--replay", "--no-tail", "--include", "hostile/0"];
        let told = "its storage scratch/0 takes more than its 10 MiB";
        self.until("the container is ended", || Ok(self.periapt.ok(log)?.contains(told)))?;
        self.until("the container runs again, without the file", || {
            Ok(self.sh("test ! -e /data/gone").is_ok_and(|shell| shell.code == 0))
        })?;
        Ok(StoppedBy::Bound(format!("the container was ended with its {running} processes, and runs again")))
    }

    pub(super) fn storage(&self) -> anyhow::Result<StoppedBy> {
        let running = self.marked()?;
        // The pod is ended meanwhile, and the task with it.
        let _ = self.sh("dd if=/dev/zero of=/data/full bs=1M count=64; sleep 30");
        let log = ["debug-log", "-m", "hostile", "--replay", "--no-tail", "--include", "hostile/0"];
        let told = "its storage scratch/0 holds more than its 10 MiB";
        self.until("the container is ended", || Ok(self.periapt.ok(log)?.contains(told)))?;
        self.until("its processes have ended", || Ok(self.marked()? == 0))?;
        Ok(StoppedBy::Bound(format!("the container was ended with its {running} processes")))
    }
}

/// Returns the path of a file below a directory; none if there is none of this name.
fn found(directory: &Path, name: &str) -> Option<PathBuf> {
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        // A directory may be removed meanwhile.
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() && entry.file_name() == name => return Some(entry.path()),
                _ => {}
            }
        }
    }
    None
}
