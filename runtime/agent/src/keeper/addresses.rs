//! The addresses of the controllers, as the agent was told last. They are on its disk, so that an agent which starts while
//! the controllers of its command line are away finds the others.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use periapt_client::Addresses;
use periapt_transport::{Readers, read_file, write_file};

/// The file, with one URL in each line.
const FILE: &str = "controllers";

/// The addresses on the disk. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct KeptAddresses(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// The content that was written or read last.
    last: Mutex<String>,
}

impl KeptAddresses {
    /// The addresses beside the files of an agent's identity.
    pub(crate) fn in_directory(directory: PathBuf) -> Self {
        Self(Arc::new(Kept { path: directory.join(FILE), last: Mutex::default() }))
    }

    /// Reads the addresses; none if there are no other controllers to go on with. A file that cannot be read is none: the
    /// command line has an address as well.
    pub(crate) fn read(&self) -> Option<Addresses> {
        let content = match read_file(&self.0.path, Readers::All) {
            Ok(content) => content?,
            Err(error) => {
                tracing::warn!(%error, "the addresses of other controllers are not known");
                return None;
            }
        };
        let addresses = Addresses::learned(content.lines());
        *self.0.last.lock() = content;
        addresses
    }

    /// Writes the addresses that a trusted controller names, if they differ from the last.
    pub(crate) fn write(&self, urls: &[String]) {
        let Some(addresses) = Addresses::learned(urls) else { return };
        let mut urls: Vec<_> = addresses.urls().collect();
        urls.sort();
        let content = urls.join("\n") + "\n";
        let mut last = self.0.last.lock();
        if *last == content {
            return;
        }
        match write_file(&self.0.path, &content, Readers::All) {
            Ok(()) => *last = content,
            Err(error) => tracing::warn!(%error, "the addresses of other controllers are not kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn urls(kept: &KeptAddresses) -> Option<Vec<String>> {
        kept.read().map(|addresses| addresses.urls().collect())
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else_is_an_address() {
        let directory = TempDir::new().unwrap();
        let kept = KeptAddresses::in_directory(directory.path().to_owned());
        assert_eq!(urls(&kept), None, "there is no file");
        kept.write(&["https://b:1".into(), "https://a:1".into(), "http://c:1".into()]);
        let again = KeptAddresses::in_directory(directory.path().to_owned());
        assert_eq!(urls(&again).unwrap(), ["https://a:1", "https://b:1"]);
        kept.write(&["https://a:1".into()]);
        assert_eq!(urls(&again).unwrap().len(), 2, "one that stands alone tells nothing");
        std::fs::write(directory.path().join(FILE), [0xff, 0, b'\n'].repeat(100)).unwrap();
        assert_eq!(urls(&again), None);
        std::fs::write(directory.path().join(FILE), "https://a:1\nnot a URL\nhttps://b:1\n").unwrap();
        assert_eq!(urls(&again).unwrap(), ["https://a:1", "https://b:1"]);
    }
}
