//! Return of freed memory to the system.
//!
//! The C library keeps memory that a thread freed for that thread's next need, without a bound in size or time: after
//! unpacking archives on eight threads 5.5 GB stayed. `malloc_trim` returns all of it (`docs/decisions/0041-*`).

use std::{fs::File, io, os::unix::fs::FileExt as _, thread, time::Duration};

/// The time between two looks, which bounds how long a burst's memory stays.
const LOOK: Duration = Duration::from_secs(5);

/// Growth in bytes that is left alone: to return a little and take it again costs more than to keep it.
const LEFT_ALONE: u64 = 32 << 20;

/// CPU time in the kernel's ticks of 10 ms, after which a resting process may have freed much without growth: after the
/// removal of a model a process is as large as before.
const WORKED: u64 = 100;

/// The most CPU time between two looks of a process that counts as resting, in ticks.
const RESTS: u64 = 25;

/// The size in bytes up to which a process has nothing to return that would matter.
const SMALL: u64 = 48 << 20;

/// The memory and CPU time of this process. Both files are opened before a fence is raised, behind which no file of the
/// kernel can be opened.
#[derive(Debug)]
pub struct Resident {
    status: File,
    times: File,
}

impl Resident {
    /// Opens the kernel's files about this process.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn open() -> io::Result<Self> {
        Ok(Self { status: File::open("/proc/self/status")?, times: File::open("/proc/self/stat")? })
    }

    /// Reads the CPU time of all threads so far, in ticks.
    fn worked(&self) -> io::Result<u64> {
        let mut times = [0; 2 << 10];
        let length = self.times.read_at(&mut times, 0)?;
        let times = String::from_utf8_lossy(times.get(..length).unwrap_or_default());
        // The process's name may hold any character. Eleven other fields follow it.
        let fields = times.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(11));
        let mut fields = fields.into_iter().flatten().map(|field| field.parse::<u64>().ok());
        let ticks = fields.next().flatten().zip(fields.next().flatten());
        let (user, system) = ticks.ok_or_else(|| io::Error::other("/proc/self/stat does not say it"))?;
        Ok(user.saturating_add(system))
    }

    /// Reads the resident memory, in bytes.
    fn bytes(&self) -> io::Result<u64> {
        // The file has less than two KiB.
        let mut status = [0; 8 << 10];
        let length = self.status.read_at(&mut status, 0)?;
        let status = String::from_utf8_lossy(status.get(..length).unwrap_or_default());
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        let kib = kib.ok_or_else(|| io::Error::other("/proc/self/status does not say it"))?;
        Ok(kib.saturating_mul(1 << 10))
    }
}

/// Returns freed memory to the system until the process ends.
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
    let mut last = ProcessUsage::now(resident).unwrap_or_default();
    let mut given_back = last;
    loop {
        thread::sleep(LOOK);
        let now = match ProcessUsage::now(resident) {
            Ok(now) => now,
            Err(error) => {
                tracing::warn!(%error, "freed memory is not given back: its size cannot be read");
                return;
            }
        };
        if now.is_worth_it(&last, &given_back) {
            give_back();
            given_back = ProcessUsage::now(resident).unwrap_or(now);
            tracing::debug!(
                before = now.bytes >> 20,
                after = given_back.bytes >> 20,
                "freed memory was given back, in MiB"
            );
        } else {
            // The process may have shrunk by itself.
            given_back.bytes = given_back.bytes.min(now.bytes);
        }
        last = now;
    }
}

/// The memory and CPU time of a process at one moment.
#[derive(Debug, Default, Clone, Copy)]
struct ProcessUsage {
    bytes: u64,
    worked: u64,
}

impl ProcessUsage {
    fn now(resident: &Resident) -> io::Result<Self> {
        Ok(Self { bytes: resident.bytes()?, worked: resident.worked()? })
    }

    /// Returns true if the process has grown enough since the last return, or has worked enough and rests now.
    fn is_worth_it(&self, last: &Self, given_back: &Self) -> bool {
        let grown = given_back.bytes.saturating_add(given_back.bytes / 4).saturating_add(LEFT_ALONE);
        let worked = self.worked.saturating_sub(given_back.worked) >= WORKED;
        let rests = self.worked.saturating_sub(last.worked) <= RESTS;
        self.bytes > grown || (worked && rests && self.bytes > SMALL)
    }
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

/// Does nothing: other C libraries have their own ways.
#[cfg(not(target_env = "gnu"))]
fn give_back() {}

/// Makes the C library map allocations of at least so many bytes alone, and return them to the system at once. By default it
/// raises this threshold with each freed allocation, up to 32 MiB, and then keeps several such allocations of freed memory in
/// each thread's arena.
#[cfg(target_env = "gnu")]
pub fn give_large_allocations_back(from: usize) {
    let from = libc::c_int::try_from(from).unwrap_or(libc::c_int::MAX);
    #[expect(
        unsafe_code,
        reason = "it takes no pointer, and sets a number that the allocator reads under its lock"
    )]
    let set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, from) };
    if set == 0 {
        tracing::debug!("large allocations are given back late");
    }
}

/// Does nothing: other C libraries have no such threshold.
#[cfg(not(target_env = "gnu"))]
pub fn give_large_allocations_back(_from: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, RunnerPaths};

    #[test]
    fn a_little_growth_is_left_alone_and_much_is_not() {
        let look = |bytes| ProcessUsage { bytes, worked: 0 };
        let is_worth_it = |now, before| look(now).is_worth_it(&look(now), &look(before));
        let size = 100 << 20;
        assert!(!is_worth_it(size, size) && !is_worth_it(size + LEFT_ALONE, size) && !is_worth_it(0, size));
        assert!(is_worth_it(2 * size, size) && is_worth_it(LEFT_ALONE + 1, 0));
    }

    #[test]
    fn after_much_work_what_was_freed_is_given_back_once_it_rests() {
        let bytes = 2 * SMALL;
        let (before, after) = (ProcessUsage { bytes, worked: 7 }, ProcessUsage { bytes, worked: 7 + WORKED });
        assert!(after.is_worth_it(&after, &before));
        assert!(!after.is_worth_it(&before, &before), "it is at work");
        assert!(!after.is_worth_it(&after, &after), "it has rested since");
        let small = ProcessUsage { bytes: SMALL, ..after };
        assert!(!small.is_worth_it(&small, &before));
    }

    #[test]
    fn what_this_process_worked_is_read() {
        let resident = Resident::open().unwrap();
        let before = resident.worked().unwrap();
        let mut sum = 0_u64;
        while resident.worked().unwrap() < before + 3 {
            sum = (0..100_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_other_threads_have_freed_is_given_back_behind_a_fence_too() {
        const PIECES: usize = 8_000;
        let resident = Resident::open().unwrap();
        let before = resident.bytes().unwrap();
        let (go, freed) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel());
        // A thread that goes on, as request threads do: it keeps a small block among all that it frees.
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
        let paths = RunnerPaths { charms: root.path().into(), storage: root.path().into() };
        let (held, after) = thread::spawn(move || {
            assert_eq!(Fence::Runner(&paths).raise(), [], "this kernel offers no whole fence");
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
