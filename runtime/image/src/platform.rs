//! Platforms: the system and the processor that programs of an image need.

use std::fmt;

use crate::shown::shown;

/// A platform in the words of OCI, which are Go's: `linux/amd64`, `linux/arm64/v8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlatform {
    /// The operating system.
    pub os: String,
    /// The architecture of the processor.
    pub architecture: String,
    /// The variant of the architecture, if it is known.
    pub variant: Option<String>,
}

impl ImagePlatform {
    /// Returns the platform of this host.
    pub fn of_this_host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self { os: "linux".into(), architecture: architecture.into(), variant: None }
    }

    /// Returns true if programs for `self` run on a host of the platform `host`. An unknown variant is no hindrance.
    pub(crate) fn runs_on(&self, host: &Self) -> bool {
        let variant = |of: &Self| match (of.architecture.as_str(), of.variant.as_deref()) {
            // Each processor of these architectures has the first variant.
            ("arm64", None | Some("v8")) | ("amd64", None | Some("v1")) => None,
            (_, other) => other.map(ToOwned::to_owned),
        };
        let (own, wanted) = (variant(self), variant(host));
        let is_same = self.os == host.os && self.architecture == host.architecture;
        is_same && (own.is_none() || wanted.is_none() || own == wanted)
    }
}

impl fmt::Display for ImagePlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |text: &str| if text.is_empty() { "unknown".to_owned() } else { shown(text) };
        write!(f, "{}/{}", name(&self.os), name(&self.architecture))?;
        match &self.variant {
            Some(variant) => write!(f, "/{}", shown(variant)),
            None => Ok(()),
        }
    }
}
