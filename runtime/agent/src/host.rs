//! The resources of this host.

use std::{fs, path::Path};

/// Returns the most memory for this process and its children, in bytes: that of the machine, or a lower limit of a
/// control group. Returns 0 if unknown.
pub(crate) fn memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        group_limit(&text, |path| fs::read_to_string(Path::new("/sys/fs/cgroup").join(path)).ok())
    });
    machine.unwrap_or_default().min(group.unwrap_or(u64::MAX))
}

/// Parses a line such as `MemTotal:       16384 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the lowest limit of the process's control group (`0::/a/b`, of version 2) and its ancestors.
fn group_limit(cgroup: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut path = Some(own.trim_end_matches('/'));
    let mut least: Option<u64> = None;
    while let Some(group) = path {
        let file = if group.is_empty() { "memory.max".to_owned() } else { format!("{group}/memory.max") };
        // The value `max` means no limit.
        let limit = read(&file).and_then(|text| text.trim().parse::<u64>().ok());
        least = match (least, limit) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        path = match group.rsplit_once('/') {
            Some((above, _)) => Some(above),
            None if group.is_empty() => None,
            None => Some(""),
        };
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       16384 kB\n"), Some(16 << 20));
        assert_eq!(total("MemTotal: much"), None);
        assert!(memory() > 1 << 20, "this host has memory");
    }

    #[test]
    fn the_least_limit_of_the_groups_around_counts() {
        let read = |file: &str| match file {
            "a/b/memory.max" => Some("max\n".to_owned()),
            "a/memory.max" => Some("1000\n".to_owned()),
            "memory.max" => Some("2000\n".to_owned()),
            _ => None,
        };
        assert_eq!(group_limit("0::/a/b\n", read), Some(1000));
        assert_eq!(group_limit("1:name=x:/c\n0::/\n", read), Some(2000));
        assert_eq!(group_limit("0::/c\n", |_| None), None);
        assert_eq!(group_limit("", read), None);
    }
}
