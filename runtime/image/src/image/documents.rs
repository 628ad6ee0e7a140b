//! Documents of OCI: the layout, indexes, manifests and configurations.

use std::collections::HashMap;

use oci_spec::image::{Arch, Descriptor, ImageConfiguration, ImageIndex, ImageManifest, MediaType, Os};
use periapt_host_api::Digest;
use serde::{Deserialize, de::DeserializeOwned};

use super::{Candidate, Image, ImageLayer, ImageSettings, Place};
use crate::{
    error::ImageError,
    limits::{MAX_DOCUMENT, MAX_INDEXES},
    platform::ImagePlatform,
    scan::LayerForm,
    shown::shown,
    source::Source,
};

/// The most images of a file, and the most indexes that name them: a list of platforms has some 20. An index can name another
/// one thousands of times, and each time it would be read again.
const MAX_IMAGES: usize = 256;

/// The annotations that name an image in a layout.
const NAMES: &[&str] = &["org.opencontainers.image.ref.name", "io.containerd.image.name"];

/// Docker's own media types, which mean the same as OCI's.
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const DOCKER_TAR: &str = "application/vnd.docker.image.rootfs.diff.tar";
const DOCKER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
const DOCKER_ZSTD: &str = "application/vnd.docker.image.rootfs.diff.tar.zstd";
const DOCKER_FOREIGN: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar";

/// A document that a descriptor names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    /// A list of documents.
    Index,
    /// An image.
    Manifest,
}

/// The file `oci-layout`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layout {
    image_layout_version: String,
}

/// Returns the kind of a document by its media type.
pub(crate) fn document_kind(media_type: &MediaType) -> Option<DocumentKind> {
    match media_type {
        MediaType::ImageIndex => Some(DocumentKind::Index),
        MediaType::ImageManifest => Some(DocumentKind::Manifest),
        MediaType::Other(other) if other == DOCKER_INDEX => Some(DocumentKind::Index),
        MediaType::Other(other) if other == DOCKER_MANIFEST => Some(DocumentKind::Manifest),
        _ => None,
    }
}

/// Reads a document of JSON.
pub(crate) fn parsed<T: DeserializeOwned>(document: &str, content: &[u8]) -> Result<T, ImageError> {
    serde_json::from_slice(content).map_err(|error| ImageError::document(document, error))
}

/// Returns the digest of a descriptor.
pub(crate) fn digest_of(descriptor: &Descriptor) -> Result<Digest, ImageError> {
    digest(descriptor.digest().as_ref())
}

/// Returns a digest in OCI's form, `sha256:…`.
pub(crate) fn digest(text: &str) -> Result<Digest, ImageError> {
    let hex = text.strip_prefix("sha256:");
    hex.and_then(|hex| hex.parse().ok())
        .ok_or_else(|| ImageError::document("digest", format!("only sha256 is read, and this is {text}")))
}

/// Returns the images of a layout.
pub(super) fn candidates(source: &Source, layout: &[u8]) -> Result<Vec<Candidate>, ImageError> {
    let layout: Layout = parsed("oci-layout", layout)?;
    if layout.image_layout_version != "1.0.0" {
        let reason = format!("version {} is not read here, 1.0.0 is", layout.image_layout_version);
        return Err(ImageError::document("oci-layout", reason));
    }
    let missing = || ImageError::NotAnImage("it has oci-layout and no index.json".into());
    let index: ImageIndex = parsed("index.json", &source.document("index.json")?.ok_or_else(missing)?)?;
    let mut found = Found::default();
    collect(source, &index, (&[], 1), &mut found)?;
    match (found.candidates.is_empty(), found.others.into_iter().next()) {
        (true, Some(found)) => Err(ImageError::MediaType {
            part: "all that the index names".into(),
            found,
            reason: "manifests and indexes of OCI and Docker are read",
        }),
        _ => Ok(found.candidates),
    }
}

/// The documents that the indexes of a layout name.
#[derive(Default)]
struct Found {
    candidates: Vec<Candidate>,
    /// The media types of documents of other kinds.
    others: Vec<String>,
    /// The number of indexes that were read within others.
    indexes: usize,
}

fn collect(
    source: &Source,
    index: &ImageIndex,
    (inherited, depth): (&[String], usize),
    found: &mut Found,
) -> Result<(), ImageError> {
    if depth > MAX_INDEXES {
        return Err(ImageError::document("index", "it is the fourth index within another"));
    }
    for descriptor in index.manifests() {
        let references = match names(descriptor.annotations().as_ref()) {
            own if own.is_empty() => inherited.to_vec(),
            own => own,
        };
        match document_kind(descriptor.media_type()) {
            Some(DocumentKind::Index) => {
                found.indexes += 1;
                if found.indexes > MAX_IMAGES {
                    return Err(ImageError::Choice(format!("the file has more than {MAX_IMAGES} indexes")));
                }
                let content = source.verified("index", digest_of(descriptor)?, descriptor.size())?;
                let inner: ImageIndex = parsed("index", &content)?;
                collect(source, &inner, (&references, depth + 1), found)?;
            }
            Some(DocumentKind::Manifest) => {
                let platform = platform_of(descriptor);
                // Attestations stand beside images in their form.
                if platform.as_ref().is_some_and(|platform| platform.os == "unknown") {
                    continue;
                }
                let place = Place::Manifest { digest: digest_of(descriptor)?, size: descriptor.size() };
                found.candidates.push(Candidate { references, platform, place });
            }
            None => found.others.push(descriptor.media_type().to_string()),
        }
        if found.candidates.len() > MAX_IMAGES || found.others.len() > MAX_IMAGES {
            return Err(ImageError::Choice(format!("the file has more than {MAX_IMAGES} images")));
        }
    }
    Ok(())
}

/// Returns the platform of a descriptor, if it has one.
pub(crate) fn platform_of(descriptor: &Descriptor) -> Option<ImagePlatform> {
    let platform = descriptor.platform().as_ref()?;
    Some(platform_from(platform.os(), platform.architecture(), platform.variant().as_ref()))
}

fn platform_from(os: &Os, architecture: &Arch, variant: Option<&String>) -> ImagePlatform {
    let variant = variant.filter(|variant| !variant.is_empty()).cloned();
    ImagePlatform { os: os.to_string(), architecture: architecture.to_string(), variant }
}

fn names(annotations: Option<&HashMap<String, String>>) -> Vec<String> {
    let of = |name: &&str| annotations?.get(*name).filter(|name| !name.is_empty()).cloned();
    let mut names: Vec<String> = NAMES.iter().filter_map(of).collect();
    names.sort();
    names.dedup();
    names
}

/// Reads an image by its manifest.
pub(super) fn image(source: &Source, digest: Digest, size: u64) -> Result<Image, ImageError> {
    let document = format!("manifest sha256:{}", digest.short());
    let manifest = read_manifest(&document, &source.verified("manifest", digest, size)?)?;
    let configuration = manifest.config();
    let content = source.verified("configuration", digest_of(configuration)?, configuration.size())?;
    let (platform, settings, diff_ids) = read_configuration("configuration", &content)?;
    if diff_ids.len() != manifest.layers().len() {
        let (layers, ids) = (manifest.layers().len(), diff_ids.len());
        return Err(ImageError::document(
            &document,
            format!("it has {layers} layers, and its configuration {ids}"),
        ));
    }
    let layers = manifest.layers().iter().zip(diff_ids).enumerate().map(|(index, (layer, diff_id))| {
        let digest = digest_of(layer)?;
        let form = layer_form(index + 1, layer.media_type())?;
        let member = format!("blobs/sha256/{digest}");
        Ok(ImageLayer { diff_id, digest: Some(digest), size: layer.size(), form, member })
    });
    let layers = layers.collect::<Result<Vec<_>, ImageError>>()?;
    Ok(Image { digest, platform, references: Vec::new(), settings, layers })
}

/// Reads a manifest and checks what it names, except for layers' own types.
pub(crate) fn read_manifest(document: &str, content: &[u8]) -> Result<ImageManifest, ImageError> {
    let manifest: ImageManifest = parsed(document, content)?;
    if manifest.schema_version() != 2 {
        return Err(ImageError::document(
            document,
            format!("its schema is {}, not 2", manifest.schema_version()),
        ));
    }
    // Its index has called it a manifest. What is written of it names it by its own word.
    if let Some(own) = manifest.media_type()
        && document_kind(own) != Some(DocumentKind::Manifest)
    {
        let reason = format!("it calls itself {own}, and is a manifest");
        return Err(ImageError::document(document, reason));
    }
    match manifest.config().media_type() {
        MediaType::ImageConfig => {}
        MediaType::Other(other) if other == DOCKER_CONFIG => {}
        other => {
            return Err(ImageError::MediaType {
                part: "the configuration".into(),
                found: other.to_string(),
                reason: "the image has no configuration of OCI or Docker: it is something else in an image's form",
            });
        }
    }
    Ok(manifest)
}

/// Returns the compression of a layer by its media type.
pub(crate) fn layer_form(number: usize, media_type: &MediaType) -> Result<LayerForm, ImageError> {
    let refused = |reason| {
        let found = media_type.to_string();
        Err(ImageError::MediaType { part: format!("layer {number}"), found, reason })
    };
    match media_type {
        MediaType::ImageLayer => Ok(LayerForm::Tar),
        MediaType::ImageLayerGzip => Ok(LayerForm::Gzip),
        MediaType::ImageLayerZstd => Ok(LayerForm::Zstd),
        MediaType::Other(other) if other == DOCKER_TAR => Ok(LayerForm::Tar),
        MediaType::Other(other) if other == DOCKER_GZIP => Ok(LayerForm::Gzip),
        MediaType::Other(other) if other == DOCKER_ZSTD => Ok(LayerForm::Zstd),
        MediaType::ImageLayerNonDistributable
        | MediaType::ImageLayerNonDistributableGzip
        | MediaType::ImageLayerNonDistributableZstd => {
            refused("such layers are fetched from elsewhere, which is not done here")
        }
        MediaType::Other(other) if other.starts_with(DOCKER_FOREIGN) => {
            refused("such layers are fetched from elsewhere, which is not done here")
        }
        _ => refused("layers of tar, tar+gzip and tar+zstd are read"),
    }
}

/// Reads a configuration: the platform, the settings and the digests of the unpacked layers.
pub(crate) fn read_configuration(
    document: &str,
    content: &[u8],
) -> Result<(ImagePlatform, ImageSettings, Vec<Digest>), ImageError> {
    if content.len() as u64 > MAX_DOCUMENT {
        return Err(ImageError::document(document, "it is larger than 4 MiB"));
    }
    let configuration: ImageConfiguration = parsed(document, content)?;
    let rootfs = configuration.rootfs();
    if rootfs.typ() != "layers" {
        let reason = format!("its root is of the kind {}, not layers", shown(rootfs.typ()));
        return Err(ImageError::document(document, reason));
    }
    let diff_ids = rootfs.diff_ids().iter().map(|id| digest(id)).collect::<Result<Vec<_>, _>>()?;
    let platform =
        platform_from(configuration.os(), configuration.architecture(), configuration.variant().as_ref());
    let settings = ImageSettings::of(configuration.config().as_ref())
        .map_err(|reason| ImageError::document(document, reason))?;
    Ok((platform, settings, diff_ids))
}
