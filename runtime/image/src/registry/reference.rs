//! Names of images in registries.

use std::{fmt, str::FromStr};

use periapt_host_api::Digest;

/// The registry of names without one, and the host that answers for it.
const DEFAULT: &str = "docker.io";
const DEFAULT_HOST: &str = "registry-1.docker.io";

/// The longest name of a repository, and of a tag: those of the specification.
const MAX_REPOSITORY: usize = 255;
const MAX_TAG: usize = 128;

/// The name of an image in a registry: `[HOST[:PORT]/]REPOSITORY[:TAG][@sha256:DIGEST]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    /// The registry as it is named, with its port.
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A text that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid image reference: {0}; expected [HOST[:PORT]/]REPOSITORY[:TAG][@sha256:DIGEST]")]
pub struct ImageReferenceError(&'static str);

impl ImageReference {
    /// Returns the host and port that answer for the registry.
    pub fn host(&self) -> &str {
        match self.registry.as_str() {
            DEFAULT => DEFAULT_HOST,
            other => other,
        }
    }

    /// Returns the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the digest, if the image is named by one.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Returns what the registry is asked for: a digest, or else a tag.
    pub(super) fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => format!("sha256:{digest}"),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// Returns the same name with a digest, which names one image for ever.
    pub fn pinned(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }
}

impl FromStr for ImageReference {
    type Err = ImageReferenceError;

    fn from_str(text: &str) -> Result<Self, ImageReferenceError> {
        let (name, digest) = match text.split_once('@') {
            None => (text, None),
            Some((name, digest)) => {
                let hex = digest.strip_prefix("sha256:").and_then(|hex| hex.parse().ok());
                (name, Some(hex.ok_or(ImageReferenceError("the digest is not sha256: and 64 hex digits"))?))
            }
        };
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let (registry, rest) = match name.split_once('/').filter(|(first, _)| is_host(first)) {
            Some((first, rest)) => (first, rest),
            None => (DEFAULT, name),
        };
        check_host(registry)?;
        let (repository, tag) = match rest.split_once(':') {
            None => (rest, None),
            Some((repository, tag)) => (repository, Some(tag)),
        };
        let repository = match registry == DEFAULT && !repository.contains('/') {
            true => format!("library/{repository}"),
            false => repository.to_owned(),
        };
        check_repository(&repository)?;
        if let Some(tag) = tag {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
            if tag.is_empty()
                || tag.len() > MAX_TAG
                || tag.starts_with(['.', '-'])
                || !tag.bytes().all(is_word)
            {
                return Err(ImageReferenceError("the tag has other letters than A-Z, a-z, 0-9, _, . and -"));
            }
        }
        Ok(Self { registry: registry.to_owned(), repository, tag: tag.map(ToOwned::to_owned), digest })
    }
}

/// Checks a host with its port: a name, an address of IPv4, or one of IPv6 in brackets.
fn check_host(host: &str) -> Result<(), ImageReferenceError> {
    let invalid = ImageReferenceError("the registry is not HOST or HOST:PORT");
    let authority: hyper::http::uri::Authority = host.parse().map_err(|_| invalid.clone())?;
    let is_plain = !host.contains('@') && !authority.host().is_empty();
    let has_port =
        host.ends_with(']') || !host.contains(':') || authority.port_u16().is_some_and(|port| port > 0);
    match is_plain && has_port {
        true => Ok(()),
        false => Err(invalid),
    }
}

fn check_repository(repository: &str) -> Result<(), ImageReferenceError> {
    if repository.is_empty() || repository.len() > MAX_REPOSITORY {
        return Err(ImageReferenceError("the repository is empty or longer than 255 letters"));
    }
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    for part in repository.split('/') {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        if !ends.iter().all(|end| end.is_some_and(is_alphanumeric)) {
            return Err(ImageReferenceError(
                "a part of the repository does not begin and end with a-z or 0-9",
            ));
        }
        if !part.bytes().all(|byte| is_alphanumeric(byte) || matches!(byte, b'.' | b'_' | b'-')) {
            return Err(ImageReferenceError("the repository has other letters than a-z, 0-9, ., _, - and /"));
        }
        if part.contains("..") {
            return Err(ImageReferenceError("the repository has two dots after each other"));
        }
    }
    Ok(())
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@sha256:{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_docker_reads_them() {
        let digest = "9".repeat(64);
        for (text, host, repository, wanted) in [
            ("nginx", DEFAULT_HOST, "library/nginx", "latest"),
            ("ubuntu/prometheus:2-22.04", DEFAULT_HOST, "ubuntu/prometheus", "2-22.04"),
            ("ghcr.io/a/b", "ghcr.io", "a/b", "latest"),
            ("localhost:5000/a", "localhost:5000", "a", "latest"),
            ("localhost/a:1", "localhost", "a", "1"),
            ("127.0.0.1:5000/a/b:x_y", "127.0.0.1:5000", "a/b", "x_y"),
            ("[::1]:5000/a", "[::1]:5000", "a", "latest"),
            (&format!("quay.io/a:t@sha256:{digest}"), "quay.io", "a", &format!("sha256:{digest}")),
        ] {
            let read: ImageReference = text.parse().unwrap();
            assert_eq!((read.host(), read.repository(), read.wanted().as_str()), (host, repository, wanted));
            assert_eq!(read.to_string().parse(), Ok(read));
        }
    }

    #[test]
    fn what_names_no_image_is_refused() {
        for text in [
            "",
            "/",
            "A",
            "a:",
            "a:-x",
            "a@",
            "a@md5:9",
            "a//b",
            "a/../b",
            "-a",
            "a.io:x/b",
            "a.io:0/b",
            "u@a.io/b",
            "a b",
            "a.io/",
            "a?b",
            "a#b",
            "a%2fb",
            "a.io:5000:1/b",
            &"a".repeat(300),
            &format!("a:{}", "t".repeat(129)),
        ] {
            assert!(text.parse::<ImageReference>().is_err(), "{text}");
        }
    }
}
