//! Images from directories, deterministically: the same files and settings give the same bytes.

mod walk;
mod write;

use std::{
    fs::{File, Permissions},
    io::{self, BufWriter, Seek as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;
use tempfile::NamedTempFile;

use crate::{
    error::ImageError,
    image::{ImageChoice, ImageSettings, ImageSource},
    limits::ImageLimits,
    platform::ImagePlatform,
};

/// The contents of an image that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecipe {
    /// The directory whose content is the image's root.
    pub directory: PathBuf,
    /// The settings for processes in it.
    pub settings: ImageSettings,
    /// The platform that its programs are for.
    pub platform: ImagePlatform,
    /// The name of the image in the file, such as `latest`.
    pub reference: Option<String>,
}

/// An image that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedImage {
    /// The digest of its manifest.
    pub digest: Digest,
    /// The number of files, directories and links.
    pub entries: u64,
    /// The bytes of the file.
    pub bytes: u64,
    /// The devices, pipes and sockets of the directory. They are in no image.
    pub skipped: Vec<String>,
}

/// An image that was not made.
#[derive(Debug, thiserror::Error)]
pub enum ImagePackError {
    /// A file of the directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The image cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file of the directory is one that no image can have.
    #[error("{}: {reason}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// A setting is none.
    #[error("{0}")]
    Setting(String),
    /// The image would be refused where it is read.
    #[error("the image would be refused: {0}")]
    Refused(#[source] ImageError),
}

/// Makes an archive of an image with one layer. All files belong to root and are of the beginning of 1970. The archive is
/// read back before it has its name.
///
/// # Errors
/// [`ImagePackError`]. No file stays then, and one that was there stays as it was.
pub fn pack_image(
    recipe: &ImageRecipe,
    output: &Path,
    limits: &ImageLimits,
) -> Result<PackedImage, ImagePackError> {
    check(recipe)?;
    let failed = |source| ImagePackError::Write { path: output.to_owned(), source };
    if output.symlink_metadata().is_ok_and(|there| !there.is_file()) {
        return Err(failed(io::Error::other("it exists and is no file")));
    }
    let above = output.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let inside = || Ok::<_, io::Error>(above.canonicalize()?.starts_with(recipe.directory.canonicalize()?));
    if inside().map_err(|source| ImagePackError::Read { path: recipe.directory.clone(), source })? {
        let reason = "the image would contain itself: write it outside of the directory".to_owned();
        return Err(ImagePackError::File { path: output.to_owned(), reason });
    }
    let walked = walk::walk(&recipe.directory, limits)?;
    let mut layer = tempfile::tempfile_in(above).map_err(failed)?;
    let described = write::layer(&recipe.directory, &walked, &mut layer, output)?;
    layer.rewind().map_err(failed)?;
    let mut archive = NamedTempFile::new_in(above).map_err(failed)?;
    let digest = archived(recipe, &described, layer, archive.as_file_mut()).map_err(failed)?;
    let bytes = archive.as_file().metadata().map_err(failed)?.len();
    read_back(archive.path(), recipe, limits).map_err(ImagePackError::Refused)?;
    // A temporary file is its user's alone.
    archive.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(failed)?;
    archive.persist(output).map_err(|error| failed(error.error))?;
    Ok(PackedImage { digest, entries: walked.entries.len() as u64, bytes, skipped: walked.skipped })
}

fn archived(
    recipe: &ImageRecipe,
    described: &write::DescribedLayer,
    layer: File,
    archive: &mut File,
) -> io::Result<Digest> {
    let mut writer = BufWriter::new(archive);
    let digest = write::archive(recipe, described, layer, &mut writer)?;
    writer.flush()?;
    Ok(digest)
}

fn check(recipe: &ImageRecipe) -> Result<(), ImagePackError> {
    recipe.settings.check().map_err(|reason| ImagePackError::Setting(format!("the image: {reason}")))?;
    let ImagePlatform { os, architecture, variant } = &recipe.platform;
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if os != "linux" || !is_word(architecture) || variant.as_deref().is_some_and(|variant| !is_word(variant))
    {
        let reason = format!("the platform {} is none of linux, such as linux/amd64", recipe.platform);
        return Err(ImagePackError::Setting(reason));
    }
    Ok(())
}

fn read_back(path: &Path, recipe: &ImageRecipe, limits: &ImageLimits) -> Result<(), ImageError> {
    let file = ImageSource::open(path, limits)?;
    let choice = ImageChoice { reference: recipe.reference.clone(), platform: recipe.platform.clone() };
    file.inspect(&file.choose(&choice)?).map(drop)
}
