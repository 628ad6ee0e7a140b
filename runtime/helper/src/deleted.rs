//! The deleted files that a pod's processes still hold: they take space of the disk, and no walk of a directory finds them.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet, VecDeque},
    ffi::{CStr, OsStr},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, readlinkat, statat},
    io::Errno,
};

use crate::descendants::{children, threads};

/// The most processes, threads, descriptors and mappings that one count looks at: the descriptors of sixteen processes of a
/// container that have as many as they can. Such a count takes seconds.
const MAX_LOOKS: usize = 1 << 20;

/// The disk space of a file beside its content, in bytes, as storage counts it.
const BLOCK: u64 = 4_096;

/// The deleted files that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedFiles {
    /// The devices that they are on, as `stat` numbers them.
    pub devices: BTreeSet<u64>,
    /// The directories that they were below, as absolute paths without links. None for processes that have no other files of
    /// these devices: then a program that runs counts, too, and a file that is only mapped if the kernel shows it; it does
    /// to root alone.
    pub below: Option<Vec<PathBuf>>,
}

/// An error of a count: the processes of the pod hold more files than one count looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its processes hold more than {} files open, too many to count the deleted ones", MAX_LOOKS)]
pub struct TooManyFiles;

impl DeletedFiles {
    /// Returns the bytes of disk that these files take on each device, held by the descendants of a pod's process. A file
    /// counts once, however many processes hold it. One that the pod's process itself holds is the agent's, such as its log
    /// or its program, and does not count. This opens none of the files. It reads files of the kernel, and takes time by the
    /// number of open files.
    ///
    /// Processes that this one may not look into are passed over, as are those that end meanwhile.
    ///
    /// # Errors
    /// [`TooManyFiles`].
    pub fn held_by(&self, pod: u32) -> Result<BTreeMap<u64, u64>, TooManyFiles> {
        self.count(pod, MAX_LOOKS)
    }

    fn count(&self, pod: u32, most: usize) -> Result<BTreeMap<u64, u64>, TooManyFiles> {
        let mut count = Count { wanted: self, left: most, seen: HashSet::new(), bytes: BTreeMap::new() };
        count.look_at_processes(pod)?;
        Ok(count.bytes)
    }
}

/// A process whose files are looked at.
#[derive(Clone, Copy)]
enum Holder {
    /// The pod's own process.
    Pod,
    /// A descendant of it.
    Descendant,
}

/// A count that is under way.
struct Count<'a> {
    wanted: &'a DeletedFiles,
    /// The number of looks that are left.
    left: usize,
    /// The deleted files that were seen, by device and inode.
    seen: HashSet<(u64, u64)>,
    bytes: BTreeMap<u64, u64>,
}

impl Count<'_> {
    fn spend(&mut self) -> Result<(), TooManyFiles> {
        self.left = self.left.checked_sub(1).ok_or(TooManyFiles)?;
        Ok(())
    }

    /// Looks at a pod's process, and then at its descendants.
    fn look_at_processes(&mut self, pod: u32) -> Result<(), TooManyFiles> {
        let (mut waiting, mut holder) = (VecDeque::from([pod]), Holder::Pod);
        while let Some(process) = waiting.pop_front() {
            self.spend()?;
            // Nearly always all threads have the same descriptors. A thread may have others, and that of the process's own id
            // has none once it has ended.
            let mut last = None;
            for thread in threads(process) {
                self.spend()?;
                waiting.extend(children(process, thread));
                if last.is_some_and(|last| share_descriptors(last, thread)) {
                    continue;
                }
                if self.look_at_thread(thread, holder)? {
                    last = Some(thread);
                }
            }
            holder = Holder::Descendant;
        }
        Ok(())
    }

    /// Looks at the files of a thread. Returns true if it has descriptors.
    fn look_at_thread(&mut self, thread: u32, holder: Holder) -> Result<bool, TooManyFiles> {
        let has_descriptors = self.look_at_links(&format!("/proc/{thread}/fd"), holder)?;
        if self.wanted.below.is_none() {
            self.look_at_links(&format!("/proc/{thread}/map_files"), holder)?;
            self.look_at_program(thread, holder)?;
        }
        Ok(has_descriptors)
    }

    /// Looks at the program of a process, which the kernel keeps even if no part of it is mapped any more.
    fn look_at_program(&mut self, thread: u32, holder: Holder) -> Result<(), TooManyFiles> {
        self.spend()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(process) = openat(CWD, format!("/proc/{thread}").as_str(), flags, Mode::empty()) {
            self.look_at_file(&process, c"exe", holder);
        }
        Ok(())
    }

    /// Looks at the files that the links in a directory of the kernel lead to. Returns true if there are some.
    fn look_at_links(&mut self, directory: &str, holder: Holder) -> Result<bool, TooManyFiles> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The process may have ended, or be one that this one may not look into.
        let Ok(directory) = openat(CWD, directory, flags, Mode::empty()) else { return Ok(false) };
        let Ok(links) = Dir::read_from(&directory) else { return Ok(false) };
        let mut has_links = false;
        for link in links {
            let Ok(link) = link else { break };
            if matches!(link.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            self.spend()?;
            has_links = true;
            self.look_at_file(&directory, link.file_name(), holder);
        }
        Ok(has_links)
    }

    fn look_at_file(&mut self, directory: &OwnedFd, link: &CStr, holder: Holder) {
        // This follows the link, and opens nothing. The descriptor may be closed already.
        let Ok(stat) = statat(directory, link, AtFlags::empty()) else { return };
        let is_deleted = stat.st_nlink == 0 && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_deleted
            || !self.wanted.devices.contains(&stat.st_dev)
            || !self.seen.insert((stat.st_dev, stat.st_ino))
        {
            return;
        }
        match holder {
            Holder::Pod => {}
            Holder::Descendant if !self.was_below(directory, link) => {}
            Holder::Descendant => {
                // The kernel counts in units of 512.
                let disk = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
                let bytes = self.bytes.entry(stat.st_dev).or_default();
                *bytes = bytes.saturating_add(disk.saturating_add(BLOCK));
            }
        }
    }

    /// Returns true if the file of a link was in a place that counts.
    fn was_below(&self, directory: &OwnedFd, link: &CStr) -> bool {
        let Some(below) = &self.wanted.below else { return true };
        match readlinkat(directory, link, Vec::<u8>::new()) {
            // The kernel appends " (deleted)" to the last name.
            Ok(path) => {
                let path = Path::new(OsStr::from_bytes(path.as_bytes()));
                below.iter().any(|directory| path.starts_with(directory))
            }
            // Only a tree of a guest's making is so deep.
            Err(error) => error == Errno::NAMETOOLONG,
        }
    }
}

/// Returns true if two threads have the same descriptors. Where the system does not tell, they count as if they had.
fn share_descriptors(one: u32, other: u32) -> bool {
    /// The part of the threads that is compared, `KCMP_FILES` of the kernel.
    const DESCRIPTORS: libc::c_long = 2;
    let (one, other) = (libc::c_long::from(one), libc::c_long::from(other));
    let none: libc::c_long = 0;
    #[expect(unsafe_code, reason = "it compares two threads by their numbers, and takes no pointer")]
    let compared = unsafe { libc::syscall(libc::SYS_kcmp, one, other, DESCRIPTORS, none, none) };
    match compared {
        0 => true,
        -1 => {
            matches!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
