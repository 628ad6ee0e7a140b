//! The set-up of a pod: the layers of its image, and the directories of its storage.

use std::{ffi::OsString, fs::File, path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use periapt_host_api::{UnitName, resource::ResourceKey};
use tokio::runtime::Handle;

use super::{
    PodId,
    needs::{ContainerFiles, MountedStorage, PodMounts, PodNeeds, PodNetwork},
};
use crate::keeper::{
    controller::{Controller, ControllerError},
    images::{ImageFailure, Images, UsedImage},
    resources::Resources,
};

/// The longest name of a host (RFC 1123 and the kernel).
const MAX_HOST_NAME: usize = 63;

/// The archives of images, for the units of one model.
pub(crate) trait ImageArchives: Send + Sync {
    /// Opens the archive of a unit's image. The error is in words.
    fn open<'a>(&'a self, unit: &'a UnitName, key: &'a ResourceKey) -> BoxFuture<'a, Result<File, String>>;
}

impl<C: Controller> ImageArchives for Resources<C> {
    fn open<'a>(&'a self, unit: &'a UnitName, key: &'a ResourceKey) -> BoxFuture<'a, Result<File, String>> {
        Box::pin(async move {
            self.obtain(unit, key).await.map_err(|error| match error {
                ControllerError::Refused(refusal) => refusal.to_string(),
                other => other.to_string(),
            })
        })
    }
}

/// The images of the pods of one model.
#[derive(Clone)]
pub(crate) struct PodImages {
    /// The unpacked images of the agent.
    pub(crate) images: Arc<Images>,
    /// The archives that the model's units may have.
    pub(crate) archives: Arc<dyn ImageArchives>,
}

impl std::fmt::Debug for PodImages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodImages").field("images", &self.images).finish_non_exhaustive()
    }
}

/// A pod that cannot be started now.
#[derive(Debug)]
pub(super) enum SetupFailure {
    /// Nothing helps but other needs.
    Final(String),
    /// Another attempt may succeed.
    Temporary(String),
}

/// The image of one pod, whose layers stay while it is held.
#[derive(Debug)]
pub(super) struct HeldImage {
    images: Option<PodImages>,
    image: Option<Arc<UsedImage>>,
}

impl HeldImage {
    /// Creates the place for an image of a model's pods; without images no pod has one.
    pub(super) fn new(images: Option<PodImages>) -> Self {
        Self { images, image: None }
    }

    /// Fetches and unpacks what a pod needs, and returns the arguments of its process. The network of its unit is in a
    /// directory.
    pub(super) async fn set_up(
        &mut self,
        pod: &PodId,
        needs: &PodNeeds,
        unit_network: &Path,
    ) -> Result<Vec<OsString>, SetupFailure> {
        let files = match needs {
            PodNeeds::Met(files) => files,
            PodNeeds::Unmet(reason) => return Err(SetupFailure::Final(reason.clone())),
        };
        let images = self.images.as_ref();
        let images = images.ok_or_else(|| SetupFailure::Final("this agent has no images".to_owned()))?;
        let archive = images.archives.open(&pod.0, &files.image).await;
        let archive = archive
            .map_err(|reason| SetupFailure::Temporary(format!("its image cannot be fetched: {reason}")))?;
        let image = images.images.obtain(files.image.digest, archive).await.map_err(|error| match error {
            ImageFailure::Refused(_) => SetupFailure::Final(error.to_string()),
            ImageFailure::Host(_) => SetupFailure::Temporary(error.to_string()),
        })?;
        tracing::debug!(unit = %pod.0, container = %pod.1, image = %image.digest, "a pod has its image");
        let mut arguments = arguments(pod, &image, files);
        match files.network {
            PodNetwork::Own => {}
            PodNetwork::OfUnit => {
                arguments.extend(["--unit-network".into(), unit_network.into()]);
                let option = |port: &u16| [OsString::from("--forwarded-port"), port.to_string().into()];
                arguments.extend(files.forwarded.iter().flat_map(option));
            }
        }
        self.image = Some(image);
        Ok(arguments)
    }
}

impl Drop for HeldImage {
    fn drop(&mut self) {
        let (Some(image), Some(PodImages { images, .. })) = (self.image.take(), self.images.take()) else {
            return;
        };
        if images.let_go(image)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { images.clean_up_soon().await });
        }
    }
}

fn arguments(pod: &PodId, image: &UsedImage, files: &ContainerFiles) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
    for layer in &image.layers {
        option("--root", layer.into());
    }
    option("--owners", (&image.owners).into());
    for variable in &image.environment {
        option("--environment", variable.into());
    }
    option("--host-name", host_name(&pod.0).into());
    if let Some((user, group)) = files.user {
        option("--user-id", user.to_string().into());
        option("--group-id", group.to_string().into());
    }
    arguments.extend(mounts(&files.mounts));
    arguments
}

/// Returns the arguments of a pod's process for its storage.
pub(super) fn mounts(mounts: &PodMounts) -> Vec<OsString> {
    let option = |(place, storage): (&String, &MountedStorage)| {
        let mut mount = storage.directory.as_os_str().to_owned();
        mount.push(":");
        mount.push(place);
        if storage.is_read_only {
            mount.push(":ro");
        }
        ["--mount".into(), mount]
    };
    mounts.iter().flat_map(option).collect()
}

/// Returns the name of the host that a unit's containers see, as Kubernetes names its pods.
fn host_name(unit: &UnitName) -> String {
    let name = unit.to_string().replace('/', "-");
    let over = name.len().saturating_sub(MAX_HOST_NAME);
    // The number at the end tells units apart. The text is of ASCII.
    name.get(over..).unwrap_or_default().trim_start_matches('-').to_owned()
}

#[cfg(test)]
impl HeldImage {
    /// Creates the place for the image of a pod that has none.
    pub(super) fn none() -> Self {
        Self::new(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_one_that_the_kernel_takes() {
        assert_eq!(host_name(&"web/0".parse().unwrap()), "web-0");
        let long = format!("{}-b/12", "a".repeat(70));
        let name = host_name(&long.parse().unwrap());
        assert!(name.len() <= MAX_HOST_NAME && name.ends_with("-b-12"), "{name}");
    }
}
