//! The resource files of a hook, which appear on request at `/resources/NAME/FILENAME`, read-only. The host passes them
//! open, so later changes on the disk do not matter.

use std::{fs::File, sync::Arc, time::Duration};

use periapt_hook::CallError;

use super::{
    Files,
    tree::{Entry, OpenFile, ROOT},
};

/// A mark in the identities of these files, which keeps them apart from those of the charm's files.
const HELD: u64 = 1 << 63;

impl Files {
    /// Adds a file for the hook, unless it is there.
    pub(crate) fn show_resource(&mut self, name: &str, filename: &str, file: File) -> Result<(), CallError> {
        let full = |_| CallError::LimitExceeded("the hook holds too many files open".to_owned());
        let counted = self.descriptor().map_err(full)?;
        // A fixed time, as for the charm's files.
        let time = Duration::ZERO;
        let odd = |_| CallError::Failed(format!("resource {name:?} cannot be put in its place"));
        let present = self.resources.directory(ROOT).map_err(odd)?.entries.get(name).cloned();
        let directory = match present {
            Some(Entry::Directory(id)) => id,
            _ => self.resources.make_directory(ROOT, name, time).map_err(odd)?,
        };
        if self.resources.directory(directory).map_err(odd)?.entries.contains_key(filename) {
            return Ok(());
        }
        let open = Arc::new(OpenFile { file, _counted: counted });
        self.resources.insert(directory, filename, Entry::Held(open, HELD | directory), time).map_err(odd)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use periapt_host_api::Timestamp;
    use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

    use super::*;
    use crate::{
        clock::HookClock,
        files::{CharmFiles, ResourcesMount},
    };

    fn files() -> (Files, u32) {
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let mut files =
            Files::new(CharmFiles::none(), 100, 10, clock).with_resources(ResourcesMount::Present);
        let preopened = files.preopened().unwrap();
        let paths: Vec<_> = preopened.iter().map(|(_, place)| place.as_str()).collect();
        assert_eq!(paths, ["/charm", "/tmp", "/resources"]);
        let root = preopened[2].0;
        (files, root)
    }

    fn file(content: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    fn read(files: &mut Files, root: u32, path: &str) -> Result<Vec<u8>, ErrorCode> {
        let opened = files.open_at(root, path, OpenFlags::empty(), DescriptorFlags::READ)?;
        let content = files.readable(opened)?.read(0, 100);
        files.close(opened);
        content
    }

    #[test]
    fn a_resource_is_read_where_it_was_put_and_cannot_be_changed() {
        let (mut files, root) = files();
        assert_eq!(read(&mut files, root, "data/rows.csv"), Err(ErrorCode::NoEntry));
        files.show_resource("data", "rows.csv", file("a,b")).unwrap();
        files.show_resource("data", "rows.csv", file("again")).unwrap();
        files.show_resource("other", "rows.csv", file("c")).unwrap();
        assert_eq!(read(&mut files, root, "data/rows.csv").unwrap(), b"a,b");
        assert_eq!(read(&mut files, root, "other/rows.csv").unwrap(), b"c");
        // Two handles share the descriptor, but not their positions.
        let opened: Vec<u32> = (0..2)
            .map(|_| files.open_at(root, "data/rows.csv", OpenFlags::empty(), DescriptorFlags::READ).unwrap())
            .collect();
        assert_eq!(files.readable(opened[0]).unwrap().read(2, 9).unwrap(), b"b");
        assert_eq!(files.readable(opened[1]).unwrap().read(0, 1).unwrap(), b"a");
        assert_eq!(files.stat_handle(opened[0]).unwrap().size, 3);

        for (how, access) in [
            (OpenFlags::empty(), DescriptorFlags::WRITE),
            (OpenFlags::TRUNCATE, DescriptorFlags::READ),
            (OpenFlags::CREATE, DescriptorFlags::READ),
        ] {
            assert_eq!(files.open_at(root, "data/rows.csv", how, access), Err(ErrorCode::ReadOnly));
        }
        assert_eq!(files.create_directory(root, "new"), Err(ErrorCode::ReadOnly));
        assert_eq!(files.unlink(root, "data/rows.csv"), Err(ErrorCode::ReadOnly));
        let tmp = files.preopened().unwrap()[1].0;
        assert_eq!(files.rename((root, "data/rows.csv"), (tmp, "mine")), Err(ErrorCode::ReadOnly));
        for out in ["..", "../charm", "data/../..", "/etc/passwd"] {
            let opened = files.open_at(root, out, OpenFlags::empty(), DescriptorFlags::READ);
            assert_eq!(opened, Err(ErrorCode::NotPermitted), "{out}");
        }
    }

    #[test]
    fn files_that_are_held_count_among_those_that_a_hook_has_open() {
        let (mut files, _) = files();
        let mut show = |number: u32| files.show_resource(&format!("r{number}"), "f", file("x"));
        let refused = (0..1_000).find_map(|number| show(number).err().map(|error| (number, error)));
        let (number, error) = refused.unwrap();
        assert!(matches!(error, CallError::LimitExceeded(_)), "{error}");
        assert_eq!(number, 64);
    }
}
