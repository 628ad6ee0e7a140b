//! Compiled components, and modules that these share. One is native code, so nothing is mapped whose origin is not proven: on the disk each file
//! is compressed, and ends with a MAC over that and over what it was made from. Whoever holds the key checks it, and only then
//! decompresses the code into sealed memory ([`open`]); that memory, which nobody can change any more, is what is handed to the
//! processes that run it, and what they map. They need no key, so one that was taken over can forge nothing.

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
use wasmtime::{Module, component::Component};

use crate::{CompatibilityHash, Sandbox};

/// Marks the end of a file, and the version of its form.
const MAGIC: &[u8; 8] = b"PERIAPT2";

/// How hard the compiler's output is compressed: what a Python charm is compiled to has 25 MB, which take 0.2 s once and
/// 40 ms each time that they are read. The next levels take much longer for little.
const LEVEL: i32 = 3;

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

    /// Another key, for something that is no compiled component: what has its MAC under one is nothing under the other.
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

/// What a compiled component was made from and for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactId {
    /// The digest of the component, or of the module.
    pub component: Digest,
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
    /// It can still be changed, so that it proves nothing that it was checked.
    #[error("it is not in sealed memory")]
    NotSealed,
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
        // The write's error is the one to tell; a leftover is overwritten next time.
        let _ = std::fs::remove_file(&temporary);
        return Err(error.into());
    }
    Ok(path)
}

/// What keeps sealed memory as it is: nothing may write to it, cut it, extend it, or unseal it.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);

/// A compiled component that was checked, in memory that nobody can change any more: what is mapped is what was
/// checked. Cloning is cheap, and so is handing the descriptor to another process; all share the memory.
#[derive(Debug, Clone)]
pub struct SealedArtifact(Arc<OwnedFd>);

impl SealedArtifact {
    /// From the descriptor that another process got from [`open`]. An error if its memory is not sealed.
    ///
    /// # Safety
    ///
    /// The bytes become code of this process: the descriptor must come from a process that is trusted as this one
    /// is, and that has checked the MAC.
    #[expect(unsafe_code, reason = "who sent the descriptor is for the caller to know")]
    pub unsafe fn received(descriptor: OwnedFd) -> Result<Self, ArtifactError> {
        match fcntl_get_seals(&descriptor) {
            Ok(seals) if seals.contains(SEALS) => Ok(Self(Arc::new(descriptor))),
            _ => Err(ArtifactError::NotSealed),
        }
    }

    /// The same memory, without keeping it.
    pub fn downgrade(&self) -> WeakArtifact {
        WeakArtifact(Arc::downgrade(&self.0))
    }

    /// Where this process finds it: the engine takes code by path only.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}

impl AsFd for SealedArtifact {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sealed memory that others hold: it is there for as long as they do.
#[derive(Debug, Clone)]
pub struct WeakArtifact(Weak<OwnedFd>);

impl WeakArtifact {
    /// The memory, if somebody still holds it.
    pub fn upgrade(&self) -> Option<SealedArtifact> {
        self.0.upgrade().map(SealedArtifact)
    }
}

/// Two are equal if they are the same memory.
impl PartialEq for SealedArtifact {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SealedArtifact {}

/// Reads a compiled component into sealed memory, and checks its MAC over what stands there.
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
pub(crate) fn load_component(
    sandbox: &Sandbox,
    artifact: &SealedArtifact,
) -> Result<Component, ArtifactError> {
    #[expect(
        unsafe_code,
        reason = "the MAC has proven that the bytes are what `Sandbox::compile` made for this engine, and the \
                  seals that they have been the same ever since"
    )]
    let component = unsafe { Component::deserialize_file(sandbox.engine(), artifact.path()) };
    component.map_err(ArtifactError::Engine)
}

/// Maps a checked module.
pub(crate) fn load_module(sandbox: &Sandbox, artifact: &SealedArtifact) -> Result<Module, ArtifactError> {
    #[expect(unsafe_code, reason = "as of a component; `Sandbox::compile_module` made it")]
    let module = unsafe { Module::deserialize_file(sandbox.engine(), artifact.path()) };
    module.map_err(ArtifactError::Engine)
}

/// A file's content, whose MAC was verified.
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
