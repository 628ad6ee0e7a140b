//! The threads of a process, and the processes that they have started, by what the kernel tells of each.

use std::fs;

/// Returns the ids of a process's threads; none if it has ended.
pub(crate) fn threads(process: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

/// Returns the children of a thread: the processes that it started, and those that were left to it.
pub(crate) fn children(process: u32, thread: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{thread}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}
