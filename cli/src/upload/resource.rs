//! The upload of a resource's file or image to a controller.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::{self, Read as _, Seek as _},
    ops::Range,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use periapt_client::{Client, ClientError};
use periapt_host_api::{
    Digest, ErrorCode, ResourceName,
    api::ResourceDetails,
    charm::{ResourceKind, ResourceMeta},
    resource::{ArchiveLayer, ContentKind, MAX_RESOURCE_BYTES, RegistryName, ResourceUpload, frame_ranges},
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
    /// The places of an image's layers in the file; none of a file of another kind.
    layers: Vec<ArchiveLayer>,
}

impl ResourceFile {
    /// Obtains the content of a resource of a kind from the place that an operator names. An image is checked.
    pub(crate) async fn obtain(kind: &ResourceKind, place: &Path) -> Result<Self> {
        match kind {
            ResourceKind::File { .. } => Self::read(place),
            ResourceKind::OciImage => {
                let ImageArchive { file, reference, layers } = ImageArchive::obtain(place).await?;
                let content = Self::of(place, file)?;
                Ok(Self { kind: ContentKind::OciImage, reference, layers, ..content })
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
        let (path, kind) = (path.to_owned(), ContentKind::File);
        Ok(Self { path, file, digest, size, kind, reference: None, layers: Vec::new() })
    }

    /// Returns the reference to the uploaded content for a command.
    pub(crate) fn upload_of(&self) -> ResourceUpload {
        let filename = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        ResourceUpload { digest: self.digest, filename, reference: self.reference.clone() }
    }

    /// Uploads it, unless the controller has it. Layers of an image that the controller has are left out. Shows the progress
    /// on a terminal.
    pub(crate) async fn upload(&self, client: &Client) -> Result<()> {
        if client.has_content(&self.digest, self.kind).await? {
            tracing::info!(digest = %self.digest, "the controller has this content");
            return Ok(());
        }
        let left_out = self.known_layers(client).await?;
        if !left_out.is_empty() {
            let ranges = frame_ranges(&left_out, self.size);
            tracing::info!(layers = left_out.len(), "the controller has these layers of the image");
            let progress = self.progress(&ranges);
            let rest = self.pieces(ranges, &progress);
            let uploaded = client.upload_partial_image(&self.digest, left_out, rest).await;
            progress.finish();
            match uploaded {
                // The controller has lost a layer meanwhile.
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => {
                    tracing::info!(%refusal, "the whole image is uploaded");
                }
                uploaded => return uploaded.map(drop).explain(|| format!("{}", self.path.display())),
            }
        }
        let whole: Vec<_> = std::iter::once(0..self.size).collect();
        let progress = self.progress(&whole);
        let content = self.pieces(whole, &progress);
        let uploaded = client.upload_content(&self.digest, self.kind, content).await;
        progress.finish();
        uploaded.map(drop).explain(|| format!("{}", self.path.display()))
    }

    /// Returns the layers of an image that the controller has.
    async fn known_layers(&self, client: &Client) -> Result<Vec<ArchiveLayer>> {
        let mut known = Vec::new();
        for layer in &self.layers {
            if client.has_content(&layer.digest, ContentKind::File).await? {
                known.push(*layer);
            }
        }
        Ok(known)
    }

    fn progress(&self, ranges: &[Range<u64>]) -> Progress {
        let shown = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Progress::of_upload(ranges.iter().map(|range| range.end - range.start).sum(), &shown)
    }

    /// Returns ranges of the file, piece by piece and from the beginning at each call, up to its end when its digest was
    /// taken.
    fn pieces(
        &self,
        ranges: Vec<Range<u64>>,
        progress: &Progress,
    ) -> impl Fn() -> BoxStream<'static, io::Result<Bytes>> + Send + Sync {
        let bar = progress.clone();
        move || {
            bar.restart();
            let (bar, file) = (bar.clone(), self.file.try_clone());
            let mut rest: VecDeque<Range<u64>> = ranges.clone().into();
            let pieces = std::iter::from_fn(move || match &file {
                Ok(file) => next_piece(file, &mut rest).transpose(),
                Err(error) => Some(Err(error.kind().into())),
            });
            stream::iter(pieces.inspect(move |piece| {
                bar.advance(piece.as_ref().map_or(0, |piece| piece.len() as u64));
            }))
            .boxed()
        }
    }
}

/// Reads the next piece of ranges of a file, and takes it off them. None means that nothing is left.
fn next_piece(file: &File, rest: &mut VecDeque<Range<u64>>) -> io::Result<Option<Bytes>> {
    let Some(range) = rest.front_mut() else { return Ok(None) };
    let most = usize::try_from(range.end - range.start).unwrap_or(PIECE).min(PIECE);
    let mut piece = vec![0; most];
    let read = file.read_at(&mut piece, range.start)?;
    if read == 0 {
        // The file was truncated meanwhile, which the controller tells by the digest.
        return Ok(None);
    }
    range.start += read as u64;
    if range.start >= range.end {
        rest.pop_front();
    }
    piece.truncate(read);
    Ok(Some(piece.into()))
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
    fn ranges_of_a_file_are_read_piece_by_piece() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let content: Vec<u8> = (0..3 * PIECE).map(|index| (index % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        let (first, last) = (10..PIECE as u64 + 30, 3 * PIECE as u64 - 5..3 * PIECE as u64);
        let mut rest: VecDeque<_> = [first, last].into();
        let mut read = Vec::new();
        while let Some(piece) = next_piece(&file, &mut rest).unwrap() {
            assert!(!piece.is_empty() && piece.len() <= PIECE);
            read.extend_from_slice(&piece);
        }
        assert!(read == [&content[10..PIECE + 30], &content[3 * PIECE - 5..]].concat());
        let mut behind: VecDeque<_> = std::iter::once(3 * PIECE as u64..4 * PIECE as u64).collect();
        assert!(next_piece(&file, &mut behind).unwrap().is_none(), "the file was truncated");
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
