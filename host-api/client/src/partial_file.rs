//! A file with the beginning of a content, for downloads that break.

use std::io::{self, SeekFrom};

use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};
use tokio::{
    fs::File,
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
};

/// A file that a content arrives in. A fetch that ends early leaves the beginning in it, and the next fetch of the same
/// content asks for the rest.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    /// The hash of the bytes that count.
    hasher: Sha256,
    /// The number of bytes that count. A fetch that was cancelled may have written more.
    length: u64,
}

impl PartialFile {
    /// Creates the value for an empty file, which is open for writing.
    pub fn empty(file: File) -> Self {
        Self { file, hasher: Sha256::new(), length: 0 }
    }

    /// Returns the number of bytes that have arrived.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the SHA-256 of the bytes that have arrived.
    pub fn digest(&self) -> Digest {
        Digest::from_bytes(self.hasher.clone().finalize().into())
    }

    /// Adds bytes to the end.
    ///
    /// # Errors
    /// The file cannot be written; no byte counts any more.
    pub async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(bytes).await;
        if written.is_ok() {
            self.hasher.update(bytes);
            self.length += bytes.len() as u64;
        } else {
            self.forget();
        }
        written
    }

    /// Removes all bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub async fn clear(&mut self) -> io::Result<()> {
        self.forget();
        self.settle().await
    }

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// The file cannot be written; no byte counts any more.
    pub async fn sync(&mut self) -> io::Result<()> {
        let synced = match self.file.flush().await {
            Ok(()) => self.file.sync_all().await,
            failed => failed,
        };
        if synced.is_err() {
            self.forget();
        }
        synced
    }

    /// Counts no byte any more. They stay in the file until the next fetch.
    pub(crate) fn forget(&mut self) {
        (self.hasher, self.length) = (Sha256::new(), 0);
    }

    /// Removes bytes that do not count, so that the next ones come behind those that do.
    pub(crate) async fn settle(&mut self) -> io::Result<()> {
        let length = self.length;
        let settled = async {
            // A fetch that was cancelled may still be writing.
            self.file.flush().await?;
            self.file.set_len(length).await?;
            self.file.seek(SeekFrom::Start(length)).await.map(drop)
        };
        let settled = settled.await;
        if settled.is_err() {
            self.forget();
        }
        settled
    }
}
