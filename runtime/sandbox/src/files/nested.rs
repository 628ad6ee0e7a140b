//! Nested storage: one storage at `/srv` and another at `/srv/data`, like nested mounts. The innermost one applies to a
//! path, whatever directory the path starts from.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    Files, StorageMount,
    disk::Directory,
    path::{MAX_PATH, beneath},
};

impl Files {
    /// Returns the directory of storage for a handle and a path, with the rest of the path; none if the handle is
    /// outside of storage. A path into or through nested storage continues in that one.
    pub(super) fn stored_at<'p>(
        &self,
        number: u32,
        path: &'p str,
    ) -> Result<Option<(Arc<Directory>, &'p str)>, ErrorCode> {
        let Some(directory) = self.stored(number)? else { return Ok(None) };
        match crossed(self.storage(), directory.place(), path) {
            Some((mount, rest)) => Ok(Some((Arc::new(Directory::root(mount)?), rest))),
            None => Ok(Some((directory, path))),
        }
    }

    /// Creates the mount points of nested storage, so that listings show them. A mount point that cannot be created,
    /// because the disk is full or a file has its name, is not listed but still works.
    pub(super) fn make_mount_points(&self) {
        for inner in self.storage() {
            let outer = self
                .storage()
                .iter()
                .filter_map(|outer| Some((outer, beneath(&outer.location, &inner.location)?)));
            let Some((outer, way)) = outer.min_by_key(|(_, way)| way.len()) else { continue };
            // Read-only mounts get mount points, too.
            let outer = StorageMount { read_only: false, ..outer.clone() };
            let Ok(root) = Directory::root(&outer) else { continue };
            let ends = way.match_indices('/').map(|(end, _)| end).chain([way.len()]);
            for part in ends.filter_map(|end| way.get(..end)) {
                let _ = root.create_directory(part, self.now());
            }
        }
    }
}

/// Returns the innermost nested storage that a path enters, with the rest of the path; none if it enters none.
fn crossed<'m, 'p>(
    mounts: &'m [StorageMount],
    place: &str,
    path: &'p str,
) -> Option<(&'m StorageMount, &'p str)> {
    let nested: Vec<(&StorageMount, Vec<&str>)> = mounts
        .iter()
        .filter_map(|mount| Some((mount, beneath(place, &mount.location)?.split('/').collect())))
        .collect();
    // The look-up refuses these paths later.
    if nested.is_empty() || path.starts_with('/') || path.contains('\0') || path.len() > MAX_PATH {
        return None;
    }
    let mut here: Vec<&str> = Vec::new();
    // Each entered mount: its depth, the mount, and the start of its part in the path.
    let mut entered: Vec<(usize, &StorageMount, usize)> = Vec::new();
    let mut end = 0;
    for name in path.split('/') {
        end += name.len() + 1;
        match name {
            "" | "." => {}
            ".." => {
                here.pop()?;
                entered.retain(|(depth, _, _)| *depth <= here.len());
            }
            name => {
                here.push(name);
                let found = nested.iter().find(|(_, names)| *names == here);
                entered.extend(found.map(|(mount, _)| (here.len(), *mount, end)));
            }
        }
    }
    let (_, mount, end) = entered.pop()?;
    let rest = path.get(end..).unwrap_or_default().trim_start_matches('/');
    Some((mount, if rest.is_empty() { "." } else { rest }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use periapt_host_api::Timestamp;
    use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, OpenFlags};

    use super::{
        super::{Bounds, CharmFiles, Filesystem, listing::Gathering},
        *,
    };
    use crate::{clock::HookClock, meter::Meter};

    /// Creates storage at some locations, each in its own directory with its name in a file.
    fn files(mounts_given: &[(&str, &str, bool)]) -> (tempfile::TempDir, Files) {
        let outside = tempfile::tempdir().unwrap();
        let mount = |(name, location, read_only): &(&str, &str, bool)| {
            let directory = outside.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("name"), name).unwrap();
            let filesystem = Filesystem::open(&directory, Bounds { bytes: 1 << 20, files: 10 }).unwrap();
            let filesystem = Arc::new(filesystem);
            StorageMount { filesystem, location: (*location).to_owned(), read_only: *read_only }
        };
        let mounts = mounts_given.iter().map(mount).collect();
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let files = Files::new(CharmFiles::none(), 100, 10, clock).with_storage(mounts);
        (outside, files)
    }

    const NESTED: [(&str, &str, bool); 4] = [
        ("outer", "/srv", false),
        ("letter", "/srv/d", false),
        ("deep", "/srv/d/a/b", true),
        ("beside", "/srv/da", false),
    ];

    /// Returns the preopened handle of a location.
    fn handle(files: &mut Files, place: &str) -> u32 {
        files.preopened().unwrap().into_iter().find(|(_, location)| location == place).unwrap().0
    }

    fn read(files: &mut Files, from: u32, path: &str) -> Result<String, ErrorCode> {
        let opened = files.open_at(from, path, OpenFlags::empty(), DescriptorFlags::READ)?;
        let content = files.readable(opened)?.read(0, 100)?;
        files.close(opened);
        Ok(String::from_utf8(content).unwrap())
    }

    #[test]
    fn the_innermost_storage_counts_whatever_the_order_and_the_way() {
        for turned in 0..NESTED.len() {
            let mut mounts_given = NESTED;
            mounts_given.rotate_left(turned);
            let (_outside, mut files) = files(&mounts_given);
            let outer = handle(&mut files, "/srv");
            for (path, name) in [
                ("name", "outer"),
                ("d/name", "letter"),
                ("./d//name", "letter"),
                ("da/../d/./name", "letter"),
                ("da/name", "beside"),
                ("d/a/b/name", "deep"),
                ("d/a/../a/b/name", "deep"),
                ("d/../name", "outer"),
                ("d/a/b/../../name", "letter"),
            ] {
                assert_eq!(read(&mut files, outer, path).as_deref(), Ok(name), "{path}");
            }
            for path in ["d/none", "d/a/name", "dx/name"] {
                assert_eq!(read(&mut files, outer, path), Err(ErrorCode::NoEntry), "{path}");
            }
            for path in ["..", "../srv/name", "d/../../srv/name", "/srv/d/name"] {
                assert_eq!(read(&mut files, outer, path), Err(ErrorCode::NotPermitted), "{path}");
            }
        }
    }

    #[test]
    fn a_directory_that_is_held_open_leads_into_storage_beneath_it() {
        let (_outside, mut files) = files(&NESTED);
        let letter = handle(&mut files, "/srv/d");
        let a = files.open_at(letter, "./a", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
        assert_eq!(read(&mut files, a, "b/name").as_deref(), Ok("deep"));
        let b = files.open_at(a, "b", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
        assert_eq!(read(&mut files, b, "name").as_deref(), Ok("deep"));
        assert_eq!(read(&mut files, b, "../b/name"), Err(ErrorCode::NotPermitted), "it is no way back");
    }

    #[test]
    fn each_change_is_made_in_the_storage_that_the_path_leads_to() {
        let (outside, mut files) = files(&NESTED);
        let outer = handle(&mut files, "/srv");
        files.create_directory(outer, "d/new").unwrap();
        assert!(outside.path().join("letter/new").is_dir() && !outside.path().join("outer/d/new").exists());
        files.rename((outer, "d/name"), (outer, "d/new/name")).unwrap();
        assert!(outside.path().join("letter/new/name").is_file());
        assert_eq!(files.rename((outer, "name"), (outer, "d/new/other")), Err(ErrorCode::CrossDevice));
        files.unlink(outer, "d/new/name").unwrap();
        files.remove_directory(outer, "d/new").unwrap();
        assert!(!outside.path().join("letter/new").exists());
        for change in [
            files.unlink(outer, "d/a/b/name"),
            files.create_directory(outer, "d/a/b/new"),
            files.rename((outer, "d/a/b/name"), (outer, "d/a/b/other")),
        ] {
            assert_eq!(change, Err(ErrorCode::ReadOnly));
        }
        assert_eq!(files.remove_directory(outer, "d"), Err(ErrorCode::Invalid), "a mount stays");
        assert_eq!(files.rename((outer, "d"), (outer, "e")), Err(ErrorCode::CrossDevice));
        files.unlink(outer, "name").unwrap();
        assert!(!outside.path().join("outer/name").exists() && outside.path().join("deep/name").exists());
    }

    #[test]
    fn storage_is_listed_in_the_storage_that_it_lies_in_and_counts_there() {
        let (outside, mut files) = files(&NESTED);
        let names = |files: &mut Files, place: &str| {
            let number = handle(files, place);
            let gathering = Gathering::new(&Arc::new(Meter::new(0)), u64::MAX);
            let listing = files.stored(number).unwrap().unwrap().list(gathering).unwrap();
            listing.map(|(_, name)| name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&mut files, "/srv"), ["d", "da", "name"]);
        assert_eq!(names(&mut files, "/srv/d"), ["a", "name"]);
        assert_eq!(names(&mut files, "/srv/d/a/b"), ["name"]);
        let used = files.storage()[0].filesystem.used();
        // The file with its content, and two directories.
        assert_eq!((used.files, used.bytes), (3, 4 * 4_096));
        drop(files);
        let again = Filesystem::open(&outside.path().join("outer"), Bounds { bytes: 1 << 20, files: 10 });
        assert_eq!(again.unwrap().used(), used);
    }

    #[test]
    fn what_has_no_room_for_a_mount_point_is_found_all_the_same() {
        let outside = tempfile::tempdir().unwrap();
        let mount = |name: &str, location: &str, files| {
            let directory = outside.path().join(name);
            fs::create_dir(&directory).unwrap();
            let filesystem = Filesystem::open(&directory, Bounds { bytes: 1 << 20, files }).unwrap();
            StorageMount { filesystem: Arc::new(filesystem), location: location.to_owned(), read_only: false }
        };
        let mounts = vec![mount("full", "/srv", 0), mount("inner", "/srv/data", 1)];
        fs::write(outside.path().join("inner/name"), "inner").unwrap();
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let mut files = Files::new(CharmFiles::none(), 0, 0, clock).with_storage(mounts);
        let outer = handle(&mut files, "/srv");
        assert_eq!(read(&mut files, outer, "data/name").as_deref(), Ok("inner"));
        assert_eq!(files.storage()[0].filesystem.used().files, 0);
    }
}
