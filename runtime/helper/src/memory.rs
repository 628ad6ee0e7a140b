//! Memory that a process has freed, given back to the system.
//!
//! The C library keeps what is freed on any thread for that thread's next need, however much that is and however long it
//! waits: after unpacking archives on eight threads 5.5 GB stayed. Asked to, it gives all of it back
//! (`docs/decisions/0047-*`).

use std::{fs::File, io, os::unix::fs::FileExt as _, thread, time::Duration};

/// How often it is looked. What a burst of work took is gone soon after it.
const LOOK: Duration = Duration::from_secs(5);

/// Growth that is left alone, in bytes: giving a little back only to take it again costs more than keeping it.
const LEFT_ALONE: u64 = 32 << 20;

/// How much of this process is in memory. It is opened before a fence is raised, behind which nothing else of the kernel's
/// can be.
#[derive(Debug)]
pub struct Resident(File);

impl Resident {
    /// Opens the kernel's account of this process.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn open() -> io::Result<Self> {
        File::open("/proc/self/status").map(Self)
    }

    /// How much of it is in memory now, in bytes.
    fn bytes(&self) -> io::Result<u64> {
        // It has less than two.
        let mut status = [0; 8 << 10];
        let length = self.0.read_at(&mut status, 0)?;
        let status = String::from_utf8_lossy(status.get(..length).unwrap_or_default());
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("/proc/self/status does not say it"))?;
        Ok(kib.saturating_mul(1 << 10))
    }
}

/// Gives back what is freed, from now on until the process ends.
pub fn give_back_what_is_freed(resident: io::Result<Resident>) {
    let resident = match resident {
        Ok(resident) => resident,
        Err(error) => {
            return tracing::warn!(%error, "freed memory is not given back: its size cannot be read");
        }
    };
    let started = thread::Builder::new().name("memory".to_owned()).spawn(move || watch(&resident));
    if let Err(error) = started {
        tracing::warn!(%error, "freed memory is not given back");
    }
}

fn watch(resident: &Resident) {
    let mut after = resident.bytes().unwrap_or_default();
    loop {
        thread::sleep(LOOK);
        match resident.bytes() {
            Ok(now) if is_worth_it(now, after) => {
                give_back();
                after = resident.bytes().unwrap_or(now);
                tracing::debug!(
                    before = now >> 20,
                    after = after >> 20,
                    "freed memory was given back, in MiB"
                );
            }
            // What is in use may be less now than it was.
            Ok(now) => after = after.min(now),
            Err(error) => {
                tracing::warn!(%error, "freed memory is not given back: its size cannot be read");
                return;
            }
        }
    }
}

/// Whether a process of this size has grown so much since it gave memory back that it is worth the work again.
fn is_worth_it(now: u64, after_last: u64) -> bool {
    now > after_last.saturating_add(after_last / 4).saturating_add(LEFT_ALONE)
}

#[cfg(target_env = "gnu")]
fn give_back() {
    #[expect(
        unsafe_code,
        reason = "it takes no pointer, and looks at free memory under the allocator's own locks"
    )]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Another C library has its own ways.
#[cfg(not(target_env = "gnu"))]
fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, RunnerPlaces};

    #[test]
    fn a_little_growth_is_left_alone_and_much_is_not() {
        let size = 100 << 20;
        assert!(!is_worth_it(size, size) && !is_worth_it(size + LEFT_ALONE, size) && !is_worth_it(0, size));
        assert!(is_worth_it(2 * size, size) && is_worth_it(LEFT_ALONE + 1, 0));
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_other_threads_have_freed_is_given_back_behind_a_fence_too() {
        const PIECES: usize = 8_000;
        let resident = Resident::open().unwrap();
        let before = resident.bytes().unwrap();
        let (go, freed) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel());
        // A thread that goes on, as those do that serve requests: it keeps a little between all that it frees.
        let thread = thread::spawn(move || {
            let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; 24 << 10]).collect();
            let kept: Vec<Vec<u8>> = pieces.iter().step_by(40).cloned().collect();
            let some: Vec<Vec<u8>> = pieces.into_iter().step_by(100).collect();
            freed.0.send(()).unwrap();
            go.1.recv().unwrap();
            kept.len() + some.len()
        });
        freed.1.recv().unwrap();
        let root = tempfile::tempdir().unwrap();
        let places = RunnerPlaces { charms: root.path().into(), storage: root.path().into() };
        let (held, after) = thread::spawn(move || {
            assert_eq!(Fence::Runner(&places).raise(), [], "this kernel offers no whole fence");
            let held = resident.bytes().unwrap();
            give_back();
            (held, resident.bytes().unwrap())
        })
        .join()
        .unwrap();
        go.0.send(()).unwrap();
        thread.join().unwrap();
        let (taken, left) = (PIECES as u64 * (24 << 10), after.saturating_sub(before));
        assert!(held > before + taken / 2, "{} MiB are held: this test shows nothing", held >> 20);
        assert!(left < taken / 8, "{} MiB of {} stayed; {} before", left >> 20, taken >> 20, held >> 20);
    }
}
