//! Pulling an image into an OCI layout.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hyper::header::HeaderValue;
use oci_spec::image::{Descriptor, ImageIndex, MediaType};
use periapt_host_api::Digest;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::{
    ImageReference, ImageRegistry, PullError,
    access::{authorize, refused},
    http::Answer,
};
use crate::{
    error::ImageError,
    image::{
        DocumentKind, Image, ImageChoice, ImageSource, digest_of, document_kind, layer_form, parsed,
        platform_of, read_configuration, read_manifest,
    },
    limits::{MAX_DOCUMENT, MAX_INDEXES, MAX_LAYERS},
};

/// The media types that a registry may answer with.
const ACCEPT: &[&str] = &[
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];

/// The largest answer with an error, in bytes.
const MAX_ERROR: u64 = 64 << 10;

/// The times that a blob is asked for, if connections break.
const TRIES: usize = 3;

/// An image that was pulled, as an OCI layout.
#[derive(Debug)]
pub struct PulledImage {
    /// The name with the digest that the registry had for it. With several platforms, it is that of their list.
    pub pinned: ImageReference,
    /// The image of the platform.
    pub image: Image,
    /// The bytes that were pulled.
    pub bytes: u64,
}

/// The progress of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullProgress {
    /// The number of the layer that comes now, from 1.
    pub layer: usize,
    /// The number of layers.
    pub layers: usize,
    /// The bytes of layers that have come.
    pub bytes: u64,
    /// The bytes of all layers.
    pub total: u64,
}

/// A document of a registry.
struct Document {
    media_type: MediaType,
    digest: Digest,
    content: Vec<u8>,
}

/// A pull that is under way.
struct Pull<'a> {
    registry: &'a ImageRegistry,
    reference: &'a ImageReference,
    authorization: Option<HeaderValue>,
    blobs: PathBuf,
    bytes: u64,
}

/// The errors in the answer of a registry.
#[derive(Deserialize)]
struct Errors {
    errors: Vec<OneError>,
}

#[derive(Deserialize)]
struct OneError {
    code: String,
    #[serde(default)]
    message: String,
}

impl ImageRegistry {
    /// Pulls an image for the platform into a directory that does not exist, as an OCI layout of that image alone. Layers
    /// are checked against their digests while they come, and not unpacked.
    ///
    /// # Errors
    /// [`PullError`]. Nothing stays then.
    pub async fn pull(
        &self,
        reference: &ImageReference,
        target: &Path,
        progress: impl FnMut(PullProgress) + Send,
    ) -> Result<PulledImage, PullError> {
        let time = self.options.limits.time;
        tokio::time::timeout(time, self.pull_into(reference, target, progress))
            .await
            .map_err(|_| PullError::Late(time))?
    }

    async fn pull_into(
        &self,
        reference: &ImageReference,
        target: &Path,
        mut progress: impl FnMut(PullProgress) + Send,
    ) -> Result<PulledImage, PullError> {
        let failed = || ImageError::write(target);
        if target.symlink_metadata().is_ok() {
            return Err(failed()(std::io::Error::other("it exists already")).into());
        }
        let above = target.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(above).map_err(failed())?;
        let layout = staging.path().join("layout");
        let blobs = layout.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(failed())?;
        let mut pull = Pull { registry: self, reference, authorization: None, blobs, bytes: 0 };

        let first = pull.named().await?;
        let pinned = reference.pinned(first.digest);
        let manifest = pull.manifest(first).await?;
        pull.keep(manifest.digest, &manifest.content)?;
        pull.parts(&manifest, &mut progress).await?;

        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": manifest.media_type.to_string(),
                "digest": format!("sha256:{}", manifest.digest),
                "size": manifest.content.len(),
                "annotations": { "org.opencontainers.image.ref.name": pinned.to_string() },
            }],
        });
        fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).map_err(failed())?;
        fs::write(layout.join("index.json"), index.to_string()).map_err(failed())?;
        let file = ImageSource::open(&layout, &self.options.limits)?;
        let image = file.choose(&ImageChoice { reference: None, platform: self.options.platform.clone() })?;
        fs::rename(&layout, target).map_err(failed())?;
        Ok(PulledImage { pinned, image, bytes: pull.bytes })
    }
}

impl Pull<'_> {
    /// Asks for the document that the name stands for.
    async fn named(&mut self) -> Result<Document, PullError> {
        let wanted = self.reference.wanted();
        self.document(&wanted, self.reference.digest()).await
    }

    /// Follows lists of platforms to the manifest of the wanted one.
    async fn manifest(&mut self, first: Document) -> Result<Document, PullError> {
        let mut document = first;
        for _ in 0..=MAX_INDEXES {
            match document_kind(&document.media_type) {
                Some(DocumentKind::Manifest) => return Ok(document),
                Some(DocumentKind::Index) => {
                    let index: ImageIndex = parsed("index", &document.content)?;
                    let chosen = digest_of(self.choose(&index)?)?;
                    document = self.document(&format!("sha256:{chosen}"), Some(chosen)).await?;
                }
                None => {
                    return Err(PullError::Image(ImageError::MediaType {
                        part: "the image".into(),
                        found: document.media_type.to_string(),
                        reason: "manifests and indexes of OCI and Docker are read",
                    }));
                }
            }
        }
        Err(ImageError::document("index", "it is the fourth index within another").into())
    }

    /// Chooses the manifest of the platform.
    fn choose<'i>(&self, index: &'i ImageIndex) -> Result<&'i Descriptor, PullError> {
        let wanted = &self.registry.options.platform;
        let images = index.manifests().iter().filter(|one| document_kind(one.media_type()).is_some());
        let mut found = Vec::new();
        for descriptor in images {
            match platform_of(descriptor) {
                Some(platform) if platform.runs_on(wanted) => return Ok(descriptor),
                // A list of one needs to name no platform: the configuration does.
                None if index.manifests().len() == 1 => return Ok(descriptor),
                Some(platform) if platform.os != "unknown" => found.push(platform.to_string()),
                _ => {}
            }
        }
        found.sort();
        found.dedup();
        found.truncate(16);
        let found = if found.is_empty() { "no platform".to_owned() } else { found.join(", ") };
        Err(ImageError::Platform { found, wanted: wanted.clone() }.into())
    }

    /// Fetches the configuration and, if the image can be used here, its layers.
    async fn parts(
        &mut self,
        manifest: &Document,
        progress: &mut (impl FnMut(PullProgress) + Send),
    ) -> Result<(), PullError> {
        let name = format!("manifest sha256:{}", manifest.digest.short());
        let read = read_manifest(&name, &manifest.content)?;
        let limits = &self.registry.options.limits;
        let layers = read.layers();
        if layers.len() > MAX_LAYERS {
            return Err(
                ImageError::Layers(format!("there are {}, and may be {MAX_LAYERS}", layers.len())).into()
            );
        }
        let mut total = 0_u64;
        for (index, layer) in layers.iter().enumerate() {
            layer_form(index + 1, layer.media_type())?;
            total = total.saturating_add(layer.size());
            if layer.size() > limits.layer || total > limits.stored {
                let reason = format!(
                    "they have more bytes than one may have ({}), or all ({})",
                    limits.layer, limits.stored
                );
                return Err(ImageError::Layers(reason).into());
            }
        }
        let configuration = read.config();
        if configuration.size() > MAX_DOCUMENT {
            return Err(ImageError::document("configuration", "it is larger than 4 MiB").into());
        }
        self.blob("configuration", configuration, &mut |_| {}).await?;
        let content = fs::read(self.blobs.join(digest_of(configuration)?.to_string()));
        let content = content.map_err(ImageError::read(&self.blobs))?;
        let (platform, _, _) = read_configuration("configuration", &content)?;
        if !platform.runs_on(&self.registry.options.platform) {
            let wanted = self.registry.options.platform.clone();
            return Err(ImageError::Platform { found: platform.to_string(), wanted }.into());
        }
        let count = layers.len();
        let mut before = 0;
        for (index, layer) in layers.iter().enumerate() {
            let mut tell = |bytes: u64| {
                progress(PullProgress { layer: index + 1, layers: count, bytes: before + bytes, total });
            };
            self.blob("layer", layer, &mut tell).await?;
            before = before.saturating_add(layer.size());
        }
        Ok(())
    }

    /// Fetches a manifest or index. Its digest is checked if it is known.
    async fn document(&mut self, wanted: &str, expected: Option<Digest>) -> Result<Document, PullError> {
        let path = format!("/v2/{}/manifests/{wanted}", self.reference.repository());
        let answer = self.get(&path, ACCEPT, wanted).await?;
        let host = answer.host().to_owned();
        let typed =
            answer.head.headers.get(hyper::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let typed = typed.map(|typed| typed.split(';').next().unwrap_or_default().trim().to_owned());
        let content = answer.body(MAX_DOCUMENT).await?;
        self.bytes = self.bytes.saturating_add(content.len() as u64);
        let digest = Digest::of(&content);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            let reason = format!("sha256:{expected} is wanted, its bytes have sha256:{digest}");
            return Err(PullError::DigestMismatch { host, part: "manifest".into(), reason });
        }
        let media_type = typed.filter(|typed| !typed.is_empty()).unwrap_or_default();
        Ok(Document { media_type: MediaType::from(media_type.as_str()), digest, content })
    }

    /// Fetches a blob into its file.
    async fn blob(
        &mut self,
        part: &str,
        descriptor: &Descriptor,
        tell: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), PullError> {
        let digest = digest_of(descriptor)?;
        let target = self.blobs.join(digest.to_string());
        // An image may have the same layer twice.
        if target.exists() {
            tell(descriptor.size());
            return Ok(());
        }
        let path = format!("/v2/{}/blobs/sha256:{digest}", self.reference.repository());
        let mut tries = 1;
        loop {
            let answer = self.get(&path, &[], &format!("{part} sha256:{digest}")).await?;
            match download(answer, part, (digest, descriptor.size()), &target, tell).await {
                Err(PullError::Unreachable { .. }) if tries < TRIES => tries += 1,
                other => {
                    self.bytes = self.bytes.saturating_add(descriptor.size());
                    return other;
                }
            }
        }
    }

    fn keep(&self, digest: Digest, content: &[u8]) -> Result<(), PullError> {
        let path = self.blobs.join(digest.to_string());
        Ok(fs::write(&path, content).map_err(ImageError::write(&path))?)
    }

    /// Sends a request, and answers the registry's challenge, once. A token that expired is replaced so.
    async fn get(&mut self, path: &str, accept: &[&str], wanted: &str) -> Result<Answer, PullError> {
        let ImageRegistry { client, options } = self.registry;
        let url = client.url(self.reference.host(), path)?;
        let mut answer = client.get(&url, accept, self.authorization.as_ref()).await?;
        if answer.status() == 401 {
            let credentials = options.credentials.as_ref();
            self.authorization = Some(authorize(client, self.reference, credentials, &answer).await?);
            answer = client.get(&url, accept, self.authorization.as_ref()).await?;
        }
        let host = answer.host().to_owned();
        let repository = self.reference.repository().to_owned();
        match answer.status() {
            200 => Ok(answer),
            401 | 403 => Err(match &options.credentials {
                None => PullError::CredentialsNeeded { host, repository },
                Some(credentials) => refused(self.reference, credentials),
            }),
            404 => {
                let errors = errors(answer).await;
                Err(match errors.iter().any(|error| error.code == "NAME_UNKNOWN") {
                    true => PullError::NoRepository { host, repository },
                    false => PullError::NoImage { host, repository, wanted: wanted.to_owned() },
                })
            }
            429 => Err(PullError::TooManyRequests(host)),
            status => {
                let errors = errors(answer).await;
                let told = errors.first().map(|error| format!(": {} {}", error.code, error.message));
                let reason = format!("it answers with status {status}{}", told.unwrap_or_default());
                Err(PullError::Answer { host, reason })
            }
        }
    }
}

/// Reads the errors of an answer, if it has some in the form of the specification.
async fn errors(answer: Answer) -> Vec<OneError> {
    let content = answer.body(MAX_ERROR).await.unwrap_or_default();
    serde_json::from_slice::<Errors>(&content).map(|errors| errors.errors).unwrap_or_default()
}

async fn download(
    mut answer: Answer,
    part: &str,
    (digest, size): (Digest, u64),
    target: &Path,
    tell: &mut (dyn FnMut(u64) + Send),
) -> Result<(), PullError> {
    let host = answer.host().to_owned();
    let mismatch = |reason: String| PullError::DigestMismatch {
        host: host.clone(),
        part: format!("{part} (sha256:{})", digest.short()),
        reason,
    };
    let failed = || ImageError::write(target);
    let mut file = tokio::fs::File::create(target).await.map_err(failed())?;
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    while let Some(piece) = answer.piece().await? {
        bytes = bytes.saturating_add(piece.len() as u64);
        if bytes > size {
            return Err(mismatch(format!("it has more than the {size} bytes that it is to have")));
        }
        hash.update(&piece);
        file.write_all(&piece).await.map_err(failed())?;
        tell(bytes);
    }
    file.flush().await.map_err(failed())?;
    if bytes != size {
        return Err(mismatch(format!("it has {bytes} bytes, and is to have {size}")));
    }
    let found = Digest::from_bytes(hash.finalize().into());
    match found == digest {
        true => Ok(()),
        false => Err(mismatch(format!("its bytes have the digest sha256:{found}"))),
    }
}
