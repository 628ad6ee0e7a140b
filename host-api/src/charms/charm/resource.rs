//! Resources that a charm declares (`docs/hook-model.md` 6.1).

use std::{collections::BTreeMap, path::Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ResourceName, rule::BrokenRule};

/// The most resources that a charm may declare. A hook that reads all of them has as many open files, half of its
/// limit.
pub const MAX_RESOURCES: usize = 32;

/// The longest file name, in bytes: the limit of file systems.
const MAX_FILENAME: usize = 255;

/// A resource as the charm declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceMeta {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// The description of the resource.
    pub description: String,
}

/// The kinds of resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceKind {
    /// A file.
    File {
        /// The file's name in the sandbox.
        filename: String,
    },
    /// The image of a container. Hooks cannot read it.
    OciImage,
}

impl ResourceKind {
    /// Returns the kind's name in metadata and messages.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::OciImage => "oci-image",
        }
    }
}

impl ResourceMeta {
    /// Returns the file's name in the sandbox, or `None` if the resource is no file.
    pub fn filename(&self) -> Option<&str> {
        match &self.kind {
            ResourceKind::File { filename } => Some(filename),
            ResourceKind::OciImage => None,
        }
    }

    /// Checks that an operator may attach a file: its extension must be that of the declared file. An image may have any
    /// name; what it contains is checked when it is uploaded.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn admits(&self, name: &ResourceName, given: Option<&str>) -> Result<(), BrokenRule> {
        let ResourceKind::File { filename } = &self.kind else { return Ok(()) };
        let extension = |name: &str| Path::new(name).extension().map(ToOwned::to_owned);
        match given.filter(|given| extension(given) != extension(filename)) {
            None => Ok(()),
            Some(given) => {
                let shown: String = given.chars().take(MAX_FILENAME).collect();
                Err(format!("resource {name:?}: {shown:?} does not have the extension of {filename:?}")
                    .into())
            }
        }
    }
}

/// A resource as the metadata file writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawResource {
    r#type: Option<String>,
    filename: Option<String>,
    description: Option<String>,
}

/// Parses and checks the section `resources`. The error names the resource and the mistake.
pub(super) fn declared(
    raw: BTreeMap<String, RawResource>,
) -> Result<BTreeMap<ResourceName, ResourceMeta>, BrokenRule> {
    if raw.len() > MAX_RESOURCES {
        return Err(
            format!("{} resources are declared; at most {MAX_RESOURCES} are allowed", raw.len()).into()
        );
    }
    let read = |(text, raw): (String, RawResource)| {
        let name = ResourceName::new(&text).map_err(BrokenRule::of)?;
        let meta = raw.check().map_err(|broken| broken.at(format_args!("resource {name:?}")))?;
        Ok((name, meta))
    };
    raw.into_iter().map(read).collect()
}

impl RawResource {
    fn check(self) -> Result<ResourceMeta, BrokenRule> {
        let kind = match self.r#type.as_deref() {
            Some("file") => {
                let filename = self.filename.filter(|filename| !filename.is_empty());
                let filename = filename.ok_or("a file needs a filename")?;
                check_filename(&filename)?;
                ResourceKind::File { filename }
            }
            Some("oci-image") => ResourceKind::OciImage,
            Some(other) => {
                return Err(format!("unsupported resource type {other:?}: file or oci-image").into());
            }
            None => return Err("a type is required: file or oci-image".into()),
        };
        Ok(ResourceMeta { kind, description: self.description.unwrap_or_default() })
    }
}

/// Checks that a file name has no directories: each file is in a directory of its own.
fn check_filename(filename: &str) -> Result<(), BrokenRule> {
    let wrong = |reason: &str| Err(format!("invalid filename {filename:?}: {reason}").into());
    if filename.len() > MAX_FILENAME {
        return Err(format!("the filename is longer than {MAX_FILENAME} bytes").into());
    }
    if filename.contains(['/', '\\']) {
        return wrong("it must be a plain name, without directories");
    }
    if matches!(filename, "." | ".." | "~") {
        return wrong("it names no file");
    }
    match filename.chars().any(char::is_control) {
        true => wrong("it holds control characters"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charm::{CharmFiles, CharmMeta};

    fn check(resources: &str) -> Result<BTreeMap<ResourceName, ResourceMeta>, String> {
        let text = format!("name: c\nsummary: s\ndescription: d\n{resources}");
        let files = CharmFiles { charmcraft: Some(text), ..CharmFiles::default() };
        CharmMeta::parse(&files).map(|meta| meta.resources).map_err(|error| error.to_string())
    }

    #[test]
    fn files_and_images_are_read() {
        let resources = check(
            "resources:\n  data: {type: file, filename: data.tar.gz, description: Rows.}\n  \
             app_image: {type: oci-image, upstream-source: some/image}\n",
        );
        let resources = resources.unwrap();
        let data = resources.get(&ResourceName::new("data").unwrap()).unwrap();
        assert_eq!((data.filename(), data.description.as_str()), (Some("data.tar.gz"), "Rows."));
        let image = resources.get(&ResourceName::new("app_image").unwrap()).unwrap();
        assert_eq!((image.filename(), image.kind.as_str()), (None, "oci-image"));
    }

    #[test]
    fn what_is_no_plain_file_is_refused() {
        for (declared, reason) in [
            ("../data: {type: file, filename: x}", "invalid resource name \"../data\""),
            ("data: {type: file}", "a file needs a filename"),
            ("data: {type: file, filename: ../x}", "without directories"),
            ("data: {type: file, filename: /etc/passwd}", "without directories"),
            ("data: {type: file, filename: '..'}", "it names no file"),
            ("data: {type: file, filename: \"a\\nb\"}", "control characters"),
            ("data: {filename: x}", "a type is required"),
            ("data: {type: tar, filename: x}", "unsupported resource type \"tar\""),
        ] {
            let error = check(&format!("resources:\n  {declared}\n")).unwrap_err();
            assert!(error.contains(reason), "{declared}: {error}");
        }
        let many: String = (0..=MAX_RESOURCES).map(|n| format!("  r{n}: {{type: oci-image}}\n")).collect();
        assert!(check(&format!("resources:\n{many}")).unwrap_err().contains("33 resources are declared"));
    }

    #[test]
    fn storage_cannot_lie_where_resources_are() {
        let storage = "storage: {s: {type: filesystem, location: /resources/s}}\n";
        assert!(check(storage).is_ok());
        let both = format!("{storage}resources: {{data: {{type: file, filename: x}}}}\n");
        assert!(check(&both).unwrap_err().contains("collides with /resources"));
    }

    #[test]
    fn an_operators_file_has_the_declared_extension() {
        let name = ResourceName::new("data").unwrap();
        let file = |filename: &str| ResourceMeta {
            kind: ResourceKind::File { filename: filename.to_owned() },
            description: String::new(),
        };
        assert_eq!(file("data.zip").admits(&name, Some("rows.zip")), Ok(()));
        assert_eq!(file("data.zip").admits(&name, None), Ok(()));
        assert_eq!(file("data").admits(&name, Some("rows")), Ok(()));
        let error = file("data.zip").admits(&name, Some("rows.tar")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "resource \"data\": \"rows.tar\" does not have the extension of \"data.zip\""
        );
        let image = ResourceMeta { kind: ResourceKind::OciImage, description: String::new() };
        assert_eq!(image.admits(&name, Some("web.tar")), Ok(()));
    }
}
