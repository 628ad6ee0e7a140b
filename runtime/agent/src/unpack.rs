//! The unpack helper: a process that reads an image of strangers, and writes its layers below the agent's own directory.
//! Its fence lets it open nothing else.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use periapt_helper::{Fault, Fence, HelperInput, run_helper_behind};
use periapt_host_api::Digest;
use periapt_image::{ImageChoice, ImageError, ImageLimits, ImageSource, LayerCache};
use serde::{Deserialize, Serialize};

/// The directory of layers, in that of images.
pub(crate) const LAYERS: &str = "layers";

/// The directory of the files of owners, in that of images.
pub(crate) const OWNERS: &str = "owners";

/// The work of an unpack helper below a directory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct UnpackOrder {
    /// The directory of images.
    pub(crate) directory: PathBuf,
    /// The work.
    pub(crate) work: UnpackWork,
}

/// The kinds of work of an unpack helper.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UnpackWork {
    /// Unpacks the image of an archive with this digest, and answers with an [`Unpacked`].
    Unpack(Digest),
    /// Removes what is not in a [`Needed`], which is the input.
    Retain,
}

/// An image whose layers are unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Unpacked {
    /// The digest of the image.
    pub(crate) image: Digest,
    /// The digests of its layers' tars, the lowest first.
    pub(crate) layers: Vec<Digest>,
    /// Its environment, as `NAME=VALUE`.
    pub(crate) environment: Vec<String>,
}

/// The parts of the directory of images that stay.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Needed {
    /// The layers, by the digests of their tars.
    pub(crate) layers: BTreeSet<Digest>,
    /// The archives whose images are used.
    pub(crate) archives: BTreeSet<Digest>,
}

/// Runs the unpack helper in this process. `order` is the last argument of its command line.
///
/// On success, standard output has what was unpacked. On failure, standard error has one line with the reason.
pub fn run_unpack_helper(order: &str) -> ExitCode {
    run_helper_behind(order, |order: &UnpackOrder| Fence::Unpacker(&order.directory), work)
}

fn work(UnpackOrder { directory, work }: UnpackOrder, input: HelperInput) -> Result<Vec<u8>, Fault> {
    match work {
        UnpackWork::Unpack(archive) => {
            let content = input.file()?;
            let unpacked =
                unpack(&directory, archive, content).map_err(|error| match error.is_of_host() {
                    true => Fault::Host(error.to_string()),
                    false => Fault::Refused(error.to_string()),
                })?;
            serde_json::to_vec(&unpacked).map_err(|error| Fault::Host(error.to_string()))
        }
        UnpackWork::Retain => {
            let needed: Needed = serde_json::from_slice(&input.bytes()?)
                .map_err(|error| Fault::Host(format!("the list of what is needed: {error}")))?;
            retain(&directory, &needed).map_err(|error| Fault::Host(error.to_string()))?;
            Ok(Vec::new())
        }
    }
}

fn unpack(directory: &Path, archive: Digest, content: File) -> Result<Unpacked, ImageError> {
    let source = ImageSource::of_file(content, &ImageLimits::default())?;
    let image = source.choose(&ImageChoice::default())?;
    let cache = LayerCache::open(&directory.join(LAYERS))?;
    let unpacked = cache.unpack(&source, &image)?;
    let owners = directory.join(OWNERS).join(archive.to_string());
    write_new(&owners, &unpacked.owners())
        .map_err(|source| ImageError::Write { path: owners.clone(), source })?;
    let layers = unpacked.layers.iter().map(|layer| layer.diff_id).collect();
    Ok(Unpacked { image: image.digest, layers, environment: image.settings.environment })
}

/// Writes a file under another name first, so that no half of it has the name.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&new, path)
}

fn retain(directory: &Path, needed: &Needed) -> Result<(), ImageError> {
    LayerCache::open(&directory.join(LAYERS))?.retain(|layer| needed.layers.contains(&layer))?;
    let owners = directory.join(OWNERS);
    let failed = |source| ImageError::Write { path: owners.clone(), source };
    for entry in fs::read_dir(&owners).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let archive = entry.file_name().to_str().and_then(|name| name.parse::<Digest>().ok());
        if archive.is_none_or(|archive| !needed.archives.contains(&archive)) {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use periapt_image::{ImagePlatform, ImageRecipe, ImageSettings, layer_files, pack_image};

    use super::*;

    /// Packs a directory with one file as an image for this host, and returns its archive.
    fn image(directory: &Path, content: &str) -> PathBuf {
        image_for(ImagePlatform::of_this_host(), directory, content)
    }

    /// Packs a directory with one file as an image for a platform, and returns its archive.
    fn image_for(platform: ImagePlatform, directory: &Path, content: &str) -> PathBuf {
        let root = directory.join("root");
        fs::create_dir_all(root.join("etc/deep")).unwrap();
        fs::write(root.join("etc/deep/marker"), content).unwrap();
        fs::hard_link(root.join("etc/deep/marker"), root.join("etc/other")).unwrap();
        std::os::unix::fs::symlink("etc/other", root.join("link")).unwrap();
        let settings = ImageSettings { environment: vec!["A=1".to_owned()], ..ImageSettings::default() };
        let recipe = ImageRecipe { directory: root.clone(), settings, platform, reference: None };
        let archive = directory.join(format!("{content}.tar"));
        pack_image(&recipe, &archive, &ImageLimits::default()).unwrap();
        fs::remove_dir_all(root).unwrap();
        archive
    }

    /// Does work behind the unpacker's fence, on a thread of its own.
    fn behind<T: Send>(directory: &Path, work: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            assert_eq!(Fence::Unpacker(directory).raise(), [], "this kernel offers no whole fence");
            work()
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap()
    }

    #[test]
    fn images_are_unpacked_and_removed_behind_the_fence() {
        let outside = tempfile::tempdir().unwrap();
        let images = outside.path().join("images");
        for name in [LAYERS, OWNERS] {
            fs::create_dir_all(images.join(name)).unwrap();
        }
        let open = |content: &str| {
            let archive = image(outside.path(), content);
            let digest = Digest::of(&fs::read(&archive).unwrap());
            (digest, File::open(archive).unwrap())
        };
        let ((one, first), (two, second)) = (open("one"), open("two"));
        let (first, second) = behind(&images, || {
            let second = unpack(&images, two, second).unwrap();
            (unpack(&images, one, first).unwrap(), second)
        });
        let files = |of: &Unpacked| layer_files(&images.join(LAYERS), of.layers[0]);
        for (unpacked, content) in [(&first, "one"), (&second, "two")] {
            assert_eq!(
                (unpacked.layers.len(), unpacked.environment.as_slice()),
                (1, &["A=1".to_owned()][..])
            );
            let read = fs::read_to_string(files(unpacked).join("etc/other")).unwrap();
            assert_eq!(read, content);
        }
        assert!(images.join(OWNERS).join(one.to_string()).is_file());

        let needed = Needed { layers: first.layers.iter().copied().collect(), archives: [one].into() };
        behind(&images, || retain(&images, &needed).unwrap());
        assert!(files(&first).is_dir() && !files(&second).exists());
        assert!(!images.join(OWNERS).join(two.to_string()).exists());
    }

    #[test]
    fn an_image_that_is_refused_leaves_nothing() {
        let outside = tempfile::tempdir().unwrap();
        let images = outside.path().join("images");
        for name in [LAYERS, OWNERS] {
            fs::create_dir_all(images.join(name)).unwrap();
        }
        let archive = image(outside.path(), "one");
        let mut bytes = fs::read(&archive).unwrap();
        bytes.truncate(bytes.len() / 2);
        fs::write(&archive, &bytes).unwrap();
        let error = behind(&images, || {
            // The archive is outside of the fence, and was opened by the keeper.
            File::open(&archive).unwrap_err()
        });
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let file = File::open(&archive).unwrap();
        let refused = behind(&images, || unpack(&images, Digest::of(b"one"), file).unwrap_err());
        assert!(!refused.is_of_host(), "{refused}");
        assert_eq!(fs::read_dir(images.join(OWNERS)).unwrap().count(), 0);
    }

    #[test]
    fn an_image_for_another_architecture_is_refused_and_leaves_nothing() {
        let outside = tempfile::tempdir().unwrap();
        let images = outside.path().join("images");
        for name in [LAYERS, OWNERS] {
            fs::create_dir_all(images.join(name)).unwrap();
        }
        let own = ImagePlatform::of_this_host();
        let other = ImagePlatform { architecture: "riscv64".to_owned(), ..own.clone() };
        let archive = File::open(image_for(other, outside.path(), "one")).unwrap();
        let refused = behind(&images, || unpack(&images, Digest::of(b"one"), archive).unwrap_err());
        assert!(!refused.is_of_host(), "{refused}");
        let reason = format!("the image is for linux/riscv64, and {own} is wanted");
        assert_eq!(refused.to_string(), reason);
        for name in [LAYERS, OWNERS] {
            assert_eq!(fs::read_dir(images.join(name)).unwrap().count(), 0, "{name}");
        }
    }
}
