//! Resources: files and images that an operator attaches to an application, as its charm declares them
//! (`docs/hook-model.md` 1.10, 5.2, 6.1). The content is a blob; the model maps revisions to blobs.

mod parts;

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use parts::{
    ArchiveLayer, ArchiveParts, ArchiveSegment, ContentLayers, MAX_ARCHIVE_LAYERS, MAX_PARTIAL_HEAD,
    MIN_ARCHIVE_LAYER, PartialUpload, check_layers, frame_ranges,
};

use crate::{Digest, ResourceName, Timestamp, UserName, excerpt::shortened, rule::BrokenRule};

/// The largest content of a resource, in bytes. A machine-learning model or a disk image fits, and one resource does
/// not fill an agent's disk.
pub const MAX_RESOURCE_BYTES: u64 = 1 << 30;

/// The directory of resources in the sandbox.
pub const RESOURCES: &str = "/resources";

/// Returns the path of a resource's file in the sandbox.
pub fn resource_path(name: &ResourceName, filename: &str) -> String {
    format!("{RESOURCES}/{name}/{filename}")
}

/// The longest reference to an image in a registry, in bytes: a host, a repository, a tag and a digest.
const MAX_REFERENCE: usize = 768;

/// The kinds of content that an upload is checked to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContentKind {
    /// Bytes of any kind.
    #[default]
    File,
    /// An archive with one image for the controller's architecture.
    OciImage,
}

impl ContentKind {
    /// Returns the kind's name in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::OciImage => "oci-image",
        }
    }
}

impl FromStr for ContentKind {
    type Err = BrokenRule;

    fn from_str(text: &str) -> Result<Self, BrokenRule> {
        let known = [Self::File, Self::OciImage].into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| "file or oci-image expected".into())
    }
}

/// The image in an archive, as the controller has checked it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheckedImage {
    /// The digest of its manifest; of an archive of `docker save`, that of its configuration.
    pub digest: Digest,
    /// The platform of its programs, such as `linux/amd64`.
    pub platform: String,
}

/// The name by which a client fetched an image from a registry, with its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct RegistryName(String);

impl RegistryName {
    /// Checks a name. Its registry and its digest are the client's words: the controller asks no registry.
    ///
    /// # Errors
    /// It is empty, too long, or has characters that no reference has.
    pub fn new(text: &str) -> Result<Self, BrokenRule> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/:@[]+".contains(&byte);
        match !text.is_empty() && text.len() <= MAX_REFERENCE && text.bytes().all(is_part) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!("invalid reference of an image {:?}", shortened(text)).into()),
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RegistryName {
    type Error = BrokenRule;

    fn try_from(text: String) -> Result<Self, BrokenRule> {
        Self::new(&text)
    }
}

impl From<RegistryName> for String {
    fn from(name: RegistryName) -> Self {
        name.0
    }
}

/// Uploaded content for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUpload {
    /// The digest of the content.
    pub digest: Digest,
    /// The name of the operator's file, whose extension must be that of the declared file. `None` means unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The name of an image that the client fetched from a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<RegistryName>,
}

/// One revision of a resource of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceRevision {
    /// The revision's number; rises by one with each new content, from 1.
    pub revision: u64,
    /// The digest of the content.
    pub digest: Digest,
    /// The size of the content, in bytes.
    pub size: u64,
    /// The time of the attachment.
    pub attached_at: Timestamp,
    /// The user who attached the content.
    pub attached_by: UserName,
    /// The image in it; none of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<CheckedImage>,
    /// The name by which its image was fetched from a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<RegistryName>,
}

/// The key of the content that an agent fetches for a hook, from the hook's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceKey {
    /// The resource.
    pub name: ResourceName,
    /// The digest of the content.
    pub digest: Digest,
}
