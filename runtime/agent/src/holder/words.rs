//! The words between a keeper and the holder: one JSON text a line, some beside a descriptor.

use std::{
    io::{self, Write as _},
    os::{fd::BorrowedFd, unix::net::UnixStream},
    path::PathBuf,
};

use periapt_helper::send_beside;
use serde::{Deserialize, Serialize};

/// The most bytes of a word, as JSON.
pub(crate) const MAX_WORD: usize = 8 << 10;

/// The version of these words.
pub(crate) const HOLDER_VERSION: u32 = 1;

/// The last argument of a holder's command line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HolderJob {
    /// The path of the socket on which it listens.
    pub(crate) socket: PathBuf,
    /// The seconds for which it holds descriptors without a keeper.
    pub(crate) seconds: u64,
}

/// An order of a keeper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum HolderOrder {
    /// Hold the descriptor beside the order, in the place of the one with the same name.
    Hold {
        /// Its name.
        name: String,
        /// A note, which the next keeper gets with it.
        note: String,
    },
    /// Close a descriptor.
    Release {
        /// Its name.
        name: String,
    },
    /// Close all, and end.
    End,
}

/// A word to a keeper that has connected.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum HolderWord {
    /// A descriptor that is held, beside the word.
    Holds {
        /// Its name.
        name: String,
        /// The note that came with it.
        note: String,
    },
    /// No more are held.
    Listed {
        /// The version of the holder's words.
        version: u32,
        /// The holder's process.
        process: u32,
    },
}

/// Sends a word as a line, with a descriptor beside its first byte.
pub(crate) fn send(
    socket: &UnixStream,
    word: &impl Serialize,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    let sent = match descriptor {
        None => 0,
        Some(descriptor) => loop {
            match send_beside(socket, &line, descriptor) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => break sent?,
            }
        },
    };
    { socket }.write_all(line.get(sent..).unwrap_or_default())
}
