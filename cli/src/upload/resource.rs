//! The upload of a resource's file or image to a controller.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _, Seek as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::stream;
use periapt_client::Client;
use periapt_host_api::{
    Digest, ResourceName,
    api::ResourceDetails,
    charm::{ResourceKind, ResourceMeta},
    resource::{ContentKind, MAX_RESOURCE_BYTES, RegistryName, ResourceUpload},
};
use sha2::{Digest as _, Sha256};

use super::image::ImageArchive;
use crate::{
    error::{Explain as _, Failure, Result},
    input,
    output::Progress,
    parse::ParseError,
};

/// The bytes that are handed to the connection at a time.
const PIECE: usize = 64 * 1024;

/// A file for a resource's content. It is read twice, and never held in memory.
#[derive(Debug)]
pub(crate) struct ResourceFile {
    path: PathBuf,
    file: File,
    digest: Digest,
    size: u64,
    kind: ContentKind,
    /// The name by which an image was fetched from a registry.
    reference: Option<RegistryName>,
}

impl ResourceFile {
    /// Obtains the content of a resource of a kind from the place that an operator names. An image is checked.
    pub(crate) async fn obtain(kind: &ResourceKind, place: &Path) -> Result<Self> {
        match kind {
            ResourceKind::File { .. } => Self::read(place),
            ResourceKind::OciImage => {
                let ImageArchive { file, reference } = ImageArchive::obtain(place).await?;
                let content = Self::of(place, file)?;
                Ok(Self { kind: ContentKind::OciImage, reference, ..content })
            }
        }
    }

    /// Reads a file once, for its digest.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = input::regular(path).map_err(|failure| {
            match path.to_str().is_some_and(|text| text.parse::<u64>().is_ok()) {
                true => failure.with_hint("revisions of a store are not supported; name a file"),
                false => failure,
            }
        })?;
        Self::of(path, file)
    }

    fn of(path: &Path, mut file: File) -> Result<Self> {
        let at = || format!("cannot read {}", path.display());
        file.rewind().explain(at)?;
        let (mut hasher, mut size, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
        loop {
            let read = file.read(&mut piece).explain(at)?;
            if read == 0 {
                break;
            }
            size += read as u64;
            if size > MAX_RESOURCE_BYTES {
                return Err(Failure::new(format!(
                    "{} is larger than {MAX_RESOURCE_BYTES} bytes, which is the most that a resource may have",
                    path.display()
                )));
            }
            hasher.update(piece.get(..read).unwrap_or_default());
        }
        let digest = Digest::from_bytes(hasher.finalize().into());
        Ok(Self { path: path.to_owned(), file, digest, size, kind: ContentKind::File, reference: None })
    }

    /// Returns the reference to the uploaded content for a command.
    pub(crate) fn upload_of(&self) -> ResourceUpload {
        let filename = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        ResourceUpload { digest: self.digest, filename, reference: self.reference.clone() }
    }

    /// Uploads it, unless the controller has it. Shows the progress on a terminal.
    pub(crate) async fn upload(&self, client: &Client) -> Result<()> {
        if client.has_content(&self.digest, self.kind).await? {
            tracing::info!(digest = %self.digest, "the controller has this content");
            return Ok(());
        }
        let shown = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = Progress::of_upload(self.size, &shown);
        let bar = progress.clone();
        let pieces = move || {
            bar.restart();
            let (bar, mut file) = (bar.clone(), self.rewound());
            stream::iter(std::iter::from_fn(move || {
                let mut piece = vec![0; PIECE];
                match file
                    .as_mut()
                    .map_err(|error| error.kind().into())
                    .and_then(|file| file.read(&mut piece))
                {
                    Ok(0) => None,
                    Ok(read) => {
                        bar.advance(read as u64);
                        piece.truncate(read);
                        Some(Ok(Bytes::from(piece)))
                    }
                    Err(error) => Some(Err(error)),
                }
            }))
        };
        let uploaded = client.upload_content(&self.digest, self.kind, pieces).await;
        progress.finish();
        uploaded.explain(|| format!("{}", self.path.display()))?;
        Ok(())
    }
}

impl ResourceFile {
    /// Returns the file from its start, up to its end when its digest was taken.
    fn rewound(&self) -> io::Result<io::Take<File>> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        Ok(file.take(self.size))
    }
}

/// Parses `NAME=FILE`. For an image, the file may be a directory or a name in a registry.
pub(crate) fn argument(text: &str) -> Result<(ResourceName, PathBuf), ParseError> {
    let expected = || ParseError::Form(format!("invalid resource {text:?}: write NAME=FILE"));
    let (name, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or_else(expected)?;
    Ok((ResourceName::new(name)?, path.into()))
}

/// Obtains the content of all given resources. Content that the controller would refuse is refused before the upload.
pub(crate) async fn given<'a>(
    declared: &BTreeMap<ResourceName, ResourceMeta>,
    arguments: impl IntoIterator<Item = &'a (ResourceName, PathBuf)>,
) -> Result<BTreeMap<ResourceName, ResourceFile>> {
    let mut files = BTreeMap::new();
    for (name, path) in arguments {
        let declared = declared.get(name);
        let declared = declared.ok_or_else(|| Failure::new(format!("unrecognized resource \"{name}\"")))?;
        let file = ResourceFile::obtain(&declared.kind, path).await;
        let file = file.explain(|| format!("resource \"{name}\""))?;
        declared
            .admits(name, file.upload_of().filename.as_deref())
            .map_err(|broken| Failure::new(broken.to_string()))?;
        if files.insert(name.clone(), file).is_some() {
            return Err(Failure::new(format!("resource \"{name}\" is given twice")));
        }
    }
    Ok(files)
}

/// Returns the revision that an operator names in place of a file.
pub(crate) fn revision(place: &Path) -> Option<u64> {
    place.to_str()?.parse().ok()
}

/// Finds a content that a resource of an application has, or had and the controller keeps.
pub(crate) fn kept(
    resources: &[ResourceDetails],
    name: &ResourceName,
    revision: u64,
) -> Result<ResourceUpload> {
    let resource = resources.iter().find(|resource| resource.name == *name);
    let resource = resource.ok_or_else(|| Failure::new(format!("unrecognized resource \"{name}\"")))?;
    let all = resource.former.iter().chain(&resource.attached);
    if let Some(found) = all.clone().find(|content| content.revision == revision) {
        return Ok(ResourceUpload {
            digest: found.digest,
            filename: None,
            reference: found.reference.clone(),
        });
    }
    let known: Vec<String> = all.map(|content| content.revision.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Failure::new(format!("resource \"{name}\" has no revision {revision} that is kept; kept: {known}"))
        .with_hint(format!("name a file by a path, such as ./{revision}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_a_name_and_a_path() {
        let (name, path) = argument("data=./a=b.csv").unwrap();
        assert_eq!((name.as_str(), path), ("data", "./a=b.csv".into()));
        for bad in ["data", "data=", "=x", "../data=x"] {
            assert!(argument(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_file_is_told_and_a_number_with_a_hint() {
        let refused = |path: &Path| ResourceFile::read(path).unwrap_err().to_string();
        let directory = tempfile::tempdir().unwrap();
        assert!(refused(directory.path()).ends_with("is not a regular file"));
        assert!(refused(Path::new("/nonexistent/rows")).starts_with("cannot read /nonexistent/rows: "));
        let path = directory.path().join("rows.csv");
        std::fs::write(&path, "a,b").unwrap();
        let file = ResourceFile::read(&path).unwrap();
        let upload = file.upload_of();
        assert_eq!((upload.digest, upload.filename.as_deref()), (Digest::of(b"a,b"), Some("rows.csv")));
    }
}
