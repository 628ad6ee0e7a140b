//! The digest of a file.

use std::{fs::File, io::Read as _, path::Path};

use periapt_host_api::Digest;
use ring::digest::{Context, SHA256};

/// The bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Returns the SHA-256 of a file, which is never whole in memory.
///
/// # Errors
/// The file cannot be read.
pub fn digest_of(path: &Path) -> std::io::Result<Digest> {
    let (mut file, mut context, mut piece) = (File::open(path)?, Context::new(&SHA256), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => context.update(piece.get(..read).unwrap_or_default()),
        }
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    Ok(Digest::from_bytes(bytes))
}
