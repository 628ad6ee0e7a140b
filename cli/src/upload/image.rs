//! The content of resources of type `oci-image`: an archive, a layout, or an image of a registry.

use std::{
    fs::{self, File},
    io::{self, BufWriter},
    net::IpAddr,
    path::Path,
};

use periapt_host_api::{
    resource::{ArchiveLayer, MAX_RESOURCE_BYTES, RegistryName},
    yaml,
};
use periapt_image::{
    Image, ImageChoice, ImageError, ImageLimits, ImageReference, ImageRegistry, ImageSource, PlainHttp,
    PullError, PullOptions, RegistryCredentials,
};
use serde::Deserialize;

use crate::{
    error::{Explain as _, Failure, Result, with_source},
    input,
    output::Progress,
};

/// The most bytes of a file with the name of an image and a user of its registry.
const MAX_DETAILS: u64 = 64 << 10;

/// The advice about a file with the name of an image.
const DETAILS: &str = "it has registrypath, and if the registry asks for them, username and password";

/// The prefix of a registry on this machine that is called without TLS.
const PLAIN: &str = "http://";

/// An archive with one image, which was checked.
#[derive(Debug)]
pub(crate) struct ImageArchive {
    /// The archive.
    pub(crate) file: File,
    /// The name by which the image was fetched from a registry, with its digest.
    pub(crate) reference: Option<RegistryName>,
    /// The places of the image's layers in the archive.
    pub(crate) layers: Vec<ArchiveLayer>,
}

/// The name of an image in a registry and a user of it, in the form of Juju's files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegistryDetails {
    registrypath: String,
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
}

impl ImageArchive {
    /// Reads an image from where an operator says that it is: an archive, a directory with a layout, a file with the name
    /// of an image in a registry and a user of it, or such a name.
    pub(crate) async fn obtain(place: &Path) -> Result<Self> {
        match fs::metadata(place) {
            Ok(found) if found.is_dir() => Self::of_layout(place, None),
            Ok(_) if has_details(place) => Self::of_details(place).await,
            Ok(_) => Self::of_archive(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_path(place) => {
                Self::of_registry(place.to_str().unwrap_or_default(), None).await
            }
            Err(error) => Err(Failure::new(format!("cannot read {}: {error}", place.display()))),
        }
    }

    fn of_archive(path: &Path) -> Result<Self> {
        let file = input::regular(path)?;
        let at = || format!("cannot read {}", path.display());
        let size = file.metadata().explain(at)?.len();
        if size > MAX_RESOURCE_BYTES {
            return Err(Failure::new(format!(
                "{} has {size} bytes, and an image may have {MAX_RESOURCE_BYTES}",
                path.display()
            )));
        }
        let copy = file.try_clone().explain(at)?;
        let checked = || {
            let source = ImageSource::of_file(copy, &ImageLimits::default())?;
            source.layer_places(&check(&source)?)
        };
        let layers = checked().map_err(|error| refused(path, error))?;
        Ok(Self { file, reference: None, layers })
    }

    /// Makes an archive of the image of a layout.
    fn of_layout(path: &Path, reference: Option<RegistryName>) -> Result<Self> {
        let archived = || {
            let source = ImageSource::open(path, &ImageLimits::default())?;
            let image = check(&source)?;
            let target = std::env::temp_dir();
            let failed = |source| ImageError::Write { path: target.clone(), source };
            let file = tempfile::tempfile_in(&target).map_err(failed)?;
            let writer = BufWriter::new(file.try_clone().map_err(failed)?);
            source.write_archive(&image, writer, &target)?;
            let archive = ImageSource::of_file(file.try_clone().map_err(failed)?, &ImageLimits::default())?;
            let layers = archive.layer_places(&archive.choose(&ImageChoice::default())?)?;
            Ok((file, layers))
        };
        let (file, layers) = archived().map_err(|error| refused(path, error))?;
        Ok(Self { file, reference, layers })
    }

    async fn of_details(path: &Path) -> Result<Self> {
        let text = input::text_within(path, MAX_DETAILS)?;
        // No part of the file is shown: it has a password.
        let details: RegistryDetails = yaml::parse(&text)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())).with_hint(DETAILS))?;
        let RegistryDetails { registrypath, username, password } = details;
        if username.is_empty() && !password.is_empty() {
            let error = format!("{}: it has a password, and no username", path.display());
            return Err(Failure::new(error).with_hint(DETAILS));
        }
        let credentials = (!username.is_empty()).then_some(RegistryCredentials { username, password });
        Self::of_registry(&registrypath, credentials).await
    }

    async fn of_registry(text: &str, credentials: Option<RegistryCredentials>) -> Result<Self> {
        let (name, plain_http) = match text.strip_prefix(PLAIN) {
            Some(name) => (name, PlainHttp::OnLoopback),
            None => (text, PlainHttp::Refused),
        };
        let reference: ImageReference = name.parse().map_err(|error| {
            Failure::new(format!("no file or directory at {text:?}, and no image in a registry: {error}"))
        })?;
        if plain_http == PlainHttp::OnLoopback && !is_loopback(reference.host()) {
            return Err(Failure::new(format!(
                "{text}: a registry is called without TLS on this machine's loopback alone"
            )));
        }
        let registry = ImageRegistry::new(PullOptions { credentials, plain_http, ..PullOptions::default() });
        let registry = registry.map_err(with_source)?;
        let directory = tempfile::tempdir().explain(|| "cannot make a directory for the image".to_owned())?;
        let layout = directory.path().join("layout");
        let progress = Progress::of_download(name);
        let mut before = 0;
        let pulled = registry.pull(&reference, &layout, |at| {
            progress.advance(at.bytes.saturating_sub(before));
            before = at.bytes;
        });
        let pulled = pulled.await;
        progress.finish();
        let pinned = pulled.map_err(|error| not_pulled(error, plain_http))?.pinned.to_string();
        let reference = RegistryName::new(&pinned).map_err(with_source)?;
        Self::of_layout(&layout, Some(reference))
    }
}

/// Returns the failure of a pull, with what the operator can do about it.
fn not_pulled(error: PullError, plain_http: PlainHttp) -> Failure {
    let hint = match &error {
        PullError::CredentialsNeeded { .. } => Some(
            "give them as to Juju: in place of the image, name a file FILE.yaml with registrypath, username and password",
        ),
        PullError::CredentialsRefused { .. } => {
            Some("the password is wrong, or the user may not pull this image")
        }
        PullError::Unreachable { host, .. } if plain_http == PlainHttp::Refused && is_loopback(host) => {
            Some("write http:// before the name if the registry on this machine has no TLS")
        }
        _ => None,
    };
    let failure = with_source(error);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// Returns true for a host of the loopback, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(name, _)| name);
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Reads all of an image for this machine's architecture.
fn check(source: &ImageSource) -> Result<Image, ImageError> {
    let image = source.choose(&ImageChoice::default())?;
    source.inspect(&image)?;
    Ok(image)
}

fn refused(path: &Path, error: ImageError) -> Failure {
    match error.is_of_host() {
        true => with_source(error),
        false => Failure::new(format!("{}: {error}", path.display())),
    }
}

/// Returns true for a file with the details of a registry rather than an image.
fn has_details(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

/// Returns true for a text that can name nothing but a file.
fn is_path(place: &Path) -> bool {
    let text = place.to_str().unwrap_or("/");
    text.starts_with(['/', '.', '~']) || text.ends_with(".tar")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(place: &Path) -> String {
        ImageArchive::obtain(place).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn what_is_no_image_is_one_error_without_a_call_to_a_registry() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("text"), "no image").unwrap();
        fs::write(at("details.yaml"), "registry: x").unwrap();
        for (place, expected) in [
            (at("absent.tar"), "absent.tar: No such file"),
            (at("text"), "this is no image"),
            (at("details.yaml"), "details.yaml: "),
            (directory.path().to_owned(), "this is no image"),
            ("./absent".into(), "cannot read ./absent"),
            ("Web:1".into(), "no file or directory at \"Web:1\""),
            ("http://192.0.2.1:5000/web:1".into(), "on this machine's loopback alone"),
        ] {
            let error = refusal(&place).await;
            assert!(error.contains(expected), "{}: {error}", place.display());
        }
    }

    #[tokio::test]
    async fn a_layout_becomes_an_archive_that_is_the_same_each_time() {
        use std::io::{Read as _, Seek as _};

        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("root/bin")).unwrap();
        fs::write(at("root/bin/web"), "program").unwrap();
        let recipe = periapt_image::ImageRecipe {
            directory: at("root"),
            settings: periapt_image::ImageSettings::default(),
            platform: periapt_image::ImagePlatform::of_this_host(),
            reference: None,
        };
        periapt_image::pack_image(&recipe, &at("web.tar"), &ImageLimits::default()).unwrap();
        fs::create_dir(at("layout")).unwrap();
        let unpacked = std::process::Command::new("tar")
            .args(["-xf", "web.tar", "-C", "layout"])
            .current_dir(directory.path())
            .status();
        assert!(unpacked.unwrap().success());
        let mut read = Vec::new();
        for place in ["layout", "layout", "web.tar"] {
            let mut file = ImageArchive::obtain(&at(place)).await.unwrap().file;
            let mut bytes = Vec::new();
            file.rewind().unwrap();
            file.read_to_end(&mut bytes).unwrap();
            read.push(bytes);
        }
        assert_eq!(read[0], read[1]);
        fs::write(at("again.tar"), &read[0]).unwrap();
        ImageArchive::obtain(&at("again.tar")).await.unwrap();
    }
}
