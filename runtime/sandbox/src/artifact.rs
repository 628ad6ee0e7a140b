//! Compiled components on disk. One is native code, so nothing is mapped whose origin is not proven: each file
//! ends with a MAC over its content and over what it was made from, checked before the engine sees a byte.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use periapt_host_api::CharmDigest;
use ring::{digest, hmac};
use wasmtime::component::Component;

use crate::{CompatibilityHash, Sandbox};

/// Marks the end of a file, and the version of its form.
const MAGIC: &[u8; 8] = b"PERIAPT1";

/// Length of HMAC-SHA256's tag.
const TAG: usize = 32;

/// What follows the compiled code.
const TRAILER: usize = TAG + MAGIC.len();

/// The key that ties compiled components to the keeper that had them made.
#[derive(Clone)]
pub struct ArtifactKey(hmac::Key);

impl ArtifactKey {
    /// From 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }
}

impl fmt::Debug for ArtifactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArtifactKey(..)")
    }
}

/// What a compiled component was made from and for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactId {
    /// The component's digest.
    pub component: CharmDigest,
    /// The engine's.
    pub engine: CompatibilityHash,
}

impl ArtifactId {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}-{}.cwasm", self.component, self.engine)
    }

    fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(self.file_name())
    }

    /// What the MAC is over. The name is part of it: a file that was renamed to another component's is not
    /// that one's.
    fn authenticated(&self, content: &digest::Digest) -> Vec<u8> {
        [MAGIC, self.file_name().as_bytes(), &[0], content.as_ref()].concat()
    }
}

/// Why a compiled component could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// There is none of that name: have it compiled.
    #[error("not compiled yet")]
    Missing,
    /// It is cut short, changed, or somebody else's: have it compiled anew.
    #[error("its authentication failed")]
    Forged,
    /// The file cannot be read or written.
    #[error("its file cannot be used")]
    Io(#[from] io::Error),
    /// The engine refused it.
    #[error("the engine cannot load it: {0:#}")]
    Engine(wasmtime::Error),
}

/// Writes a compiled component beside its place and moves it there, so that no reader sees half of one.
pub fn write(
    directory: &Path,
    id: &ArtifactId,
    key: &ArtifactKey,
    compiled: &[u8],
) -> Result<PathBuf, ArtifactError> {
    let path = id.path_in(directory);
    let temporary = directory.join(format!(".{}.{}", id.file_name(), std::process::id()));
    let content = digest::digest(&digest::SHA256, compiled);
    let tag = hmac::sign(&key.0, &id.authenticated(&content));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(compiled)?;
        file.write_all(tag.as_ref())?;
        file.write_all(MAGIC)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, &path)) {
        // The write's error is the one to tell; a leftover is overwritten next time.
        let _ = std::fs::remove_file(&temporary);
        return Err(error.into());
    }
    Ok(path)
}

/// Checks a compiled component without mapping it, for whoever decides whether to have it made anew.
pub fn verify(directory: &Path, id: &ArtifactId, key: &ArtifactKey) -> Result<(), ArtifactError> {
    check(&mut open(directory, id)?, id, key)
}

fn open(directory: &Path, id: &ArtifactId) -> Result<File, ArtifactError> {
    File::open(id.path_in(directory)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ArtifactError::Missing,
        _ => ArtifactError::Io(error),
    })
}

/// Checks a compiled component and maps it.
pub(crate) fn load(
    sandbox: &Sandbox,
    directory: &Path,
    id: &ArtifactId,
    key: &ArtifactKey,
) -> Result<Component, ArtifactError> {
    let mut file = open(directory, id)?;
    check(&mut file, id, key)?;
    // Through the descriptor: the file that is mapped is the one that was checked, whatever was renamed since.
    let checked = format!("/proc/self/fd/{}", file.as_raw_fd());
    #[expect(
        unsafe_code,
        reason = "the MAC proves that the bytes are what `Sandbox::compile` made, unchanged, for this engine; \
                  the directory is written by the keeper alone, which replaces files and never changes them"
    )]
    let component = unsafe { Component::deserialize_file(sandbox.engine(), checked) };
    component.map_err(ArtifactError::Engine)
}

/// Reads the file once, in pieces, and verifies its MAC.
fn check(file: &mut File, id: &ArtifactId, key: &ArtifactKey) -> Result<(), ArtifactError> {
    let mut rest = file.metadata()?.len().checked_sub(TRAILER as u64).ok_or(ArtifactError::Forged)?;
    let mut content = digest::Context::new(&digest::SHA256);
    let mut piece = vec![0; 64 << 10];
    while rest > 0 {
        let wanted = usize::try_from(rest).map_or(piece.len(), |rest| rest.min(piece.len()));
        let read = file.read(piece.get_mut(..wanted).unwrap_or_default())?;
        if read == 0 {
            return Err(ArtifactError::Forged);
        }
        content.update(piece.get(..read).unwrap_or_default());
        rest = rest.saturating_sub(read as u64);
    }
    let mut trailer = [0; TRAILER];
    file.read_exact(&mut trailer)?;
    let (tag, magic) = trailer.split_at(TAG);
    if magic != MAGIC {
        return Err(ArtifactError::Forged);
    }
    hmac::verify(&key.0, &id.authenticated(&content.finish()), tag).map_err(|_| ArtifactError::Forged)
}
