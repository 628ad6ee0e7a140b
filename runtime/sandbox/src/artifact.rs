//! Compiled components and shared modules, stored with a MAC. Compiled code is native, so the sandbox maps none of
//! unknown origin. A file holds the compressed code and a MAC over it and its inputs. A process with the key checks the
//! MAC, decompresses the code into sealed memory ([`open`]), and passes that memory to runners. Nothing can change
//! sealed memory, so runners need no key, and a compromised runner can forge nothing.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use periapt_host_api::Digest;
use ring::{digest, hmac};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use wasmtime::{Engine, Module, component::Component};

use crate::CompatibilityHash;

/// The end of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"PERIAPT2";

/// The compression level. A compiled Python charm of 25 MB takes 0.2 s to compress and 40 ms to decompress. Higher
/// levels take much longer and gain little.
const LEVEL: i32 = 3;

/// The length of an HMAC-SHA256 tag, in bytes.
const TAG: usize = 32;

/// The length of the trailer behind the compiled code, in bytes.
const TRAILER: usize = TAG + MAGIC.len();

/// The keeper's key for the MACs of its compiled components.
#[derive(Clone)]
pub struct ArtifactKey(hmac::Key);

impl ArtifactKey {
    /// Creates the key from 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Derives a key for another purpose. A MAC of one key is invalid under the other.
    #[must_use]
    pub fn derived(&self, purpose: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.0, purpose.as_bytes()).as_ref()))
    }
}

impl fmt::Debug for ArtifactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArtifactKey(..)")
    }
}

/// The identity of a compiled component or module: its source and its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactId {
    /// The digest of the source, a component or a module.
    pub component: Digest,
    /// The engine's compatibility hash.
    pub engine: CompatibilityHash,
}

impl ArtifactId {
    /// Returns the name of the artifact's file.
    pub fn file_name(&self) -> String {
        format!("{}-{}.cwasm", self.component, self.engine)
    }

    fn path_in(&self, directory: &Path) -> PathBuf {
        directory.join(self.file_name())
    }

    /// Returns the data under the MAC. They include the name, so a renamed file fails its check.
    fn authenticated(&self, content: &digest::Digest) -> Vec<u8> {
        [MAGIC, self.file_name().as_bytes(), &[0], content.as_ref()].concat()
    }
}

/// An error of a compiled component.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The artifact does not exist: compile the component.
    #[error("not compiled yet")]
    Missing,
    /// The file is truncated, changed or of another origin: compile the component again.
    #[error("its authentication failed")]
    Forged,
    /// The memory is not sealed, so its content may have changed since its check.
    #[error("it is not in sealed memory")]
    NotSealed,
    /// A file operation failed.
    #[error("its file cannot be used")]
    Io(#[from] io::Error),
    /// The engine refused the code.
    #[error("the engine cannot load it: {0:#}")]
    Engine(wasmtime::Error),
}

/// Writes an artifact to a temporary file and renames it, so that readers see all of it or none.
pub fn write(
    directory: &Path,
    id: &ArtifactId,
    key: &ArtifactKey,
    compiled: &[u8],
) -> Result<PathBuf, ArtifactError> {
    let path = id.path_in(directory);
    let temporary = directory.join(format!(".{}.{}", id.file_name(), std::process::id()));
    let compressed = zstd::encode_all(compiled, LEVEL)?;
    let content = digest::digest(&digest::SHA256, &compressed);
    let tag = hmac::sign(&key.0, &id.authenticated(&content));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(&compressed)?;
        file.write_all(tag.as_ref())?;
        file.write_all(MAGIC)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, &path)) {
        // The write's error describes the failure. The next write replaces the leftover.
        let _ = std::fs::remove_file(&temporary);
        return Err(error.into());
    }
    Ok(path)
}

/// The seals of checked memory: nothing may write to it, resize it or unseal it.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// A checked artifact in sealed memory. Clones and other processes that get the descriptor share the memory.
#[derive(Debug, Clone)]
pub struct SealedArtifact(Arc<OwnedFd>);

impl SealedArtifact {
    /// Accepts a descriptor of another process's [`open`]. An error if its memory is not sealed.
    ///
    /// # Safety
    ///
    /// The bytes become code of this process. The descriptor must come from a trusted process that has checked the MAC.
    #[expect(unsafe_code, reason = "who sent the descriptor is for the caller to know")]
    pub unsafe fn received(descriptor: OwnedFd) -> Result<Self, ArtifactError> {
        match fcntl_get_seals(&descriptor) {
            Ok(seals) if seals.contains(SEALS) => Ok(Self(Arc::new(descriptor))),
            _ => Err(ArtifactError::NotSealed),
        }
    }

    /// Returns a weak reference to the same memory.
    pub fn downgrade(&self) -> WeakArtifact {
        WeakArtifact(Arc::downgrade(&self.0))
    }

    /// Returns a path of the memory, because the engine loads code from paths only.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

impl AsFd for SealedArtifact {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A weak reference to sealed memory.
#[derive(Debug, Clone)]
pub struct WeakArtifact(Weak<OwnedFd>);

impl WeakArtifact {
    /// Returns the memory if a strong reference exists.
    pub fn upgrade(&self) -> Option<SealedArtifact> {
        self.0.upgrade().map(SealedArtifact)
    }
}

/// Equality means the same memory.
impl PartialEq for SealedArtifact {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SealedArtifact {}

/// Decompresses an artifact's file into sealed memory, after checking its MAC.
pub fn open(directory: &Path, id: &ArtifactId, key: &ArtifactKey) -> Result<SealedArtifact, ArtifactError> {
    let mut file = File::open(id.path_in(directory)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ArtifactError::Missing,
        _ => ArtifactError::Io(error),
    })?;
    let memory = memfd_create("periapt-artefact", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let mut memory = File::from(memory.map_err(io::Error::from)?);
    let compressed = checked(&mut file, id, key)?;
    zstd::stream::copy_decode(compressed.as_slice(), &mut memory)?;
    fcntl_add_seals(&memory, SEALS).map_err(io::Error::from)?;
    Ok(SealedArtifact(Arc::new(memory.into())))
}

/// Maps a checked component.
pub(crate) fn load_component(engine: &Engine, artifact: &SealedArtifact) -> Result<Component, ArtifactError> {
    #[expect(
        unsafe_code,
        reason = "the MAC has proven that the bytes are what `Sandbox::compile` made for this engine, and the \
                  seals that they have been the same ever since"
    )]
    let component = unsafe { Component::deserialize_file(engine, artifact.path()) };
    component.map_err(ArtifactError::Engine)
}

/// Maps a checked module.
pub(crate) fn load_module(engine: &Engine, artifact: &SealedArtifact) -> Result<Module, ArtifactError> {
    #[expect(unsafe_code, reason = "as of a component; `Sandbox::compile_module` made it")]
    let module = unsafe { Module::deserialize_file(engine, artifact.path()) };
    module.map_err(ArtifactError::Engine)
}

/// Reads a file's compressed content and verifies its MAC.
fn checked(file: &mut File, id: &ArtifactId, key: &ArtifactKey) -> Result<Vec<u8>, ArtifactError> {
    let bytes = file.metadata()?.len().checked_sub(TRAILER as u64).ok_or(ArtifactError::Forged)?;
    let mut content = vec![0; usize::try_from(bytes).map_err(|_| ArtifactError::Forged)?];
    let mut trailer = [0; TRAILER];
    file.read_exact(&mut content)?;
    file.read_exact(&mut trailer)?;
    let (tag, magic) = trailer.split_at(TAG);
    if magic != MAGIC {
        return Err(ArtifactError::Forged);
    }
    let digest = digest::digest(&digest::SHA256, &content);
    hmac::verify(&key.0, &id.authenticated(&digest), tag).map_err(|_| ArtifactError::Forged)?;
    Ok(content)
}
