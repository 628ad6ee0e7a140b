//! The unpacked images of all models on this host: each layer once, while a container uses it.
//!
//! No byte of an image is read here: the unpack helper does that, behind its fence.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_helper::{Failure, Limits, Program};
use periapt_host_api::{Digest, resource::MAX_RESOURCE_BYTES};
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::task::spawn_blocking;

use super::{directories::private_directory, temporary::Temporary};
use crate::unpack::{LAYERS, Needed, OWNERS, UnpackOrder, UnpackWork, Unpacked};

/// The limits of an unpack helper.
const LIMITS: Limits = Limits {
    // The tables of 500,000 entries.
    memory: 2 << 30,
    cpu_seconds: 600,
    deadline: Duration::from_secs(660),
    input: MAX_RESOURCE_BYTES,
    // The largest file of an image.
    output: 4 << 30,
};

/// The most bytes of an unpack helper's answer: an environment, and 127 digests.
const MAX_ANSWER: u64 = 1 << 20;

/// The time after an agent's start at which unused layers of an earlier one are removed.
const AFTER_START: Duration = Duration::from_secs(600);

/// The time between the end of an image's last container and the removal of its layers.
const AFTER_END: Duration = Duration::from_secs(5);

/// The number of the next answer in the directory of unfinished work.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// The unpacked images of an agent.
#[derive(Debug)]
pub(crate) struct Images {
    directory: PathBuf,
    incoming: PathBuf,
    helper: Program,
    /// The images that containers use, by the digest of their archives.
    used: Mutex<BTreeMap<Digest, Weak<UsedImage>>>,
    /// The turn to run a helper: one at a time, because one process uses the directory of layers.
    turn: tokio::sync::Mutex<()>,
    /// True if an image has lost its last container since the last clean-up.
    is_unsettled: AtomicBool,
    /// True while containers of an earlier keeper may run on images that none of this one's uses.
    keeps_unused: AtomicBool,
}

/// An unpacked image. Its layers stay while it exists.
#[derive(Debug)]
pub(crate) struct UsedImage {
    /// The digest of the image.
    pub(crate) digest: Digest,
    /// The directories of its layers, the lowest first.
    pub(crate) layers: Vec<PathBuf>,
    /// The file with the owners and modes of its files.
    pub(crate) owners: PathBuf,
    /// Its environment, as `NAME=VALUE`.
    pub(crate) environment: Vec<String>,
    layer_digests: Vec<Digest>,
}

/// An image that cannot be used now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageFailure {
    /// The image is refused, and will be again.
    #[error("the image is refused: {0}")]
    Refused(String),
    /// This host failed.
    #[error("the image cannot be unpacked: {0}")]
    Host(String),
}

impl From<io::Error> for ImageFailure {
    fn from(error: io::Error) -> Self {
        Self::Host(error.to_string())
    }
}

impl From<Failure> for ImageFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(reason) => Self::Refused(reason),
            Failure::Host(reason) => Self::Host(reason),
            failure @ (Failure::Late(_) | Failure::Died(_)) => {
                Self::Refused(format!("unpacking it failed: {failure}"))
            }
        }
    }
}

impl Images {
    /// Creates the images below a directory, with a directory for unfinished work.
    pub(crate) fn new(directory: PathBuf, incoming: PathBuf, helper: Program) -> Self {
        let (used, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        let (is_unsettled, keeps_unused) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { directory, incoming, helper, used, turn, is_unsettled, keeps_unused }
    }

    /// Returns an image by the digest of its archive, and unpacks what of it is not there.
    pub(crate) async fn obtain(
        &self,
        archive: Digest,
        content: File,
    ) -> Result<Arc<UsedImage>, ImageFailure> {
        if let Some(used) = self.used(&archive) {
            return Ok(used);
        }
        let _turn = self.turn.lock().await;
        if let Some(used) = self.used(&archive) {
            return Ok(used);
        }
        self.make_directories().await?;
        tracing::info!(archive = %archive.short(), "unpacking an image");
        let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let answer = Temporary::new(self.incoming.join(format!("{number}.unpacked")));
        let output = File::options().read(true).write(true).create_new(true).open(answer.path())?;
        let written = output.try_clone()?;
        self.helper.run(self.order(UnpackWork::Unpack(archive)), LIMITS, content, written).await?;
        let unpacked = read_answer(output)?;
        let used = Arc::new(self.checked(archive, unpacked)?);
        self.used.lock().insert(archive, Arc::downgrade(&used));
        Ok(used)
    }

    fn used(&self, archive: &Digest) -> Option<Arc<UsedImage>> {
        self.used.lock().get(archive).and_then(Weak::upgrade)
    }

    fn order(&self, work: UnpackWork) -> UnpackOrder {
        UnpackOrder { directory: self.directory.clone(), work }
    }

    /// Makes what the helper can make no more behind its fence.
    async fn make_directories(&self) -> io::Result<()> {
        let directory = self.directory.clone();
        let made = spawn_blocking(move || {
            private_directory(&directory.join(LAYERS))?;
            private_directory(&directory.join(OWNERS))
        });
        made.await.map_err(io::Error::other)?
    }

    /// Returns what a helper has unpacked. A helper that an image has taken over can name nothing but directories of
    /// layers, and files of owners.
    fn checked(&self, archive: Digest, unpacked: Unpacked) -> Result<UsedImage, ImageFailure> {
        let Unpacked { image: digest, layers: layer_digests, environment } = unpacked;
        let directories = self.directory.join(LAYERS);
        let layers: Vec<_> =
            layer_digests.iter().map(|layer| periapt_image::layer_files(&directories, *layer)).collect();
        let owners = self.directory.join(OWNERS).join(archive.to_string());
        let above = layers.iter().filter_map(|layer| layer.parent());
        let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let are_there = above.chain(layers.iter().map(PathBuf::as_path)).all(is_directory)
            && fs::symlink_metadata(&owners).is_ok_and(|found| found.is_file());
        match are_there && !layers.is_empty() {
            true => Ok(UsedImage { digest, layers, owners, environment, layer_digests }),
            false => Err(ImageFailure::Host("the helper has not unpacked it".to_owned())),
        }
    }

    /// Notes that a container does not use its image any more. Returns true if no other one does.
    pub(crate) fn let_go(&self, image: Arc<UsedImage>) -> bool {
        let is_last = Arc::into_inner(image).is_some();
        self.is_unsettled.fetch_or(is_last, Ordering::Relaxed);
        is_last
    }

    /// Removes layers that no container uses, once a container that begins meanwhile has unpacked its own: it may share
    /// some.
    pub(crate) async fn clean_up_soon(&self) {
        tokio::time::sleep(AFTER_END).await;
        self.clean_up().await;
    }

    /// Removes nothing until [`Self::clean_up_once`]: containers of an earlier keeper run, and are taken over meanwhile.
    pub(crate) fn keep_unused(&self) {
        self.keeps_unused.store(true, Ordering::Relaxed);
    }

    /// Removes what an earlier agent has left and no container uses. Its containers have had the time to begin.
    pub(crate) async fn clean_up_once(&self) {
        tokio::time::sleep(AFTER_START).await;
        self.is_unsettled.store(true, Ordering::Relaxed);
        self.keeps_unused.store(false, Ordering::Relaxed);
        self.clean_up().await;
    }

    /// Removes layers that no container uses.
    pub(crate) async fn clean_up(&self) {
        if !self.is_unsettled.load(Ordering::Relaxed) || self.keeps_unused.load(Ordering::Relaxed) {
            return;
        }
        let _turn = self.turn.lock().await;
        // Another caller may have cleaned up meanwhile.
        if !self.is_unsettled.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut needed = Needed::default();
        self.used.lock().retain(|archive, used| {
            let Some(used) = used.upgrade() else { return false };
            needed.archives.insert(*archive);
            needed.layers.extend(&used.layer_digests);
            true
        });
        if let Err(error) = self.keep_only(needed).await {
            tracing::warn!(%error, "unused layers of images could not be deleted");
        }
    }

    async fn keep_only(&self, needed: Needed) -> Result<(), ImageFailure> {
        let there = there(&self.directory)?;
        if there.layers.is_subset(&needed.layers) && there.archives.is_subset(&needed.archives) {
            return Ok(());
        }
        let mut input = File::from(memfd_create("needed", MemfdFlags::CLOEXEC).map_err(io::Error::from)?);
        input.write_all(&serde_json::to_vec(&needed).map_err(io::Error::from)?)?;
        input.rewind()?;
        let output = File::options().write(true).open("/dev/null")?;
        Ok(self.helper.run(self.order(UnpackWork::Retain), LIMITS, input, output).await?)
    }
}

fn read_answer(mut output: File) -> Result<Unpacked, ImageFailure> {
    let mut text = Vec::new();
    output.rewind()?;
    output.take(MAX_ANSWER).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|error| ImageFailure::Host(format!("the helper's answer: {error}")))
}

/// Returns what is in the directory of images.
fn there(directory: &Path) -> io::Result<Needed> {
    let names = |of: &str| -> io::Result<BTreeSet<Digest>> {
        let entries = match fs::read_dir(directory.join(of)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let digest = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        Ok(entries.flatten().filter_map(digest).collect())
    };
    Ok(Needed { layers: names(LAYERS)?, archives: names(OWNERS)? })
}

#[cfg(test)]
mod tests;
