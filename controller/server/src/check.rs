//! The check of uploaded archives of charms and of images. A helper process runs it, because uploaded bytes must not be
//! decoded in the process that holds all models.

use std::{fs::File, process::ExitCode, time::Duration};

use periapt_helper::{Failure, Fault, Fence, HelperInput, Limits, Program, run_helper_behind};
use periapt_host_api::{
    Digest, ErrorCode, Refusal,
    charm::CharmMeta,
    resource::{ArchiveLayer, CheckedImage, MAX_RESOURCE_BYTES},
};
use periapt_image::{ImageChoice, ImageError, ImageLimits, ImageSource};
use serde::{Deserialize, Serialize};
use tokio::{sync::Semaphore, time::timeout};

/// The number of helpers for charms that run at a time. Together with their memory limit, it bounds the cost of uploads.
const AT_ONCE: usize = 2;

/// The longest wait for a permit. It is longer than one check's deadline.
const PERMIT_WITHIN: Duration = Duration::from_secs(120);

/// The limits of the check of an image, which is read from its file and not held in memory. One helper for images runs at
/// a time, beside those for charms.
const IMAGE_LIMITS: Limits = Limits {
    // The table of 500,000 entries.
    memory: 1 << 30,
    cpu_seconds: 300,
    deadline: Duration::from_secs(300),
    input: MAX_RESOURCE_BYTES,
    output: 64 << 10,
};

/// The longest wait for the permit to check an image.
const IMAGE_PERMIT_WITHIN: Duration = Duration::from_secs(600);

/// The limits of the check of a charm. The largest known charm, a Python interpreter of 40 MB, takes a second.
const LIMITS: Limits = Limits {
    // Twice the largest archive, unpacked.
    memory: 1536 << 20,
    cpu_seconds: 60,
    deadline: Duration::from_secs(90),
    input: periapt_host_api::api::MAX_ARCHIVE_BYTES,
    // The largest metadata that the store takes is far smaller.
    output: 8 << 20,
};

/// The contents of a checked archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Checked {
    /// The component's digest.
    pub(crate) component: Digest,
    /// The metadata that the charm declares.
    pub(crate) meta: CharmMeta,
}

/// The contents of a checked archive of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct CheckedArchive {
    /// The image in it.
    pub(crate) image: CheckedImage,
    /// The places of the image's layers. An image that has taken the helper over may have named any.
    pub(crate) layers: Vec<ArchiveLayer>,
}

/// The kinds of work of the helper.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    CheckCharm,
    CheckImage,
}

/// The checks of archives, a few at a time.
#[derive(Debug)]
pub(crate) struct Checks {
    helper: Program,
    charms: Semaphore,
    images: Semaphore,
}

impl Checks {
    pub(crate) fn new(helper: Program) -> Self {
        Self { helper, charms: Semaphore::new(AT_ONCE), images: Semaphore::new(1) }
    }

    /// Checks an archive. `turn` is the connection's semaphore with a single permit, so a connection waits for a
    /// permit to check with one archive at a time. Permits are given in order, so each connection gets an equal
    /// share.
    ///
    /// # Errors
    /// The reason why the charm is invalid, or why it cannot be checked.
    pub(crate) async fn check(&self, archive: File, turn: &Semaphore) -> Result<Checked, Refusal> {
        let permit = async { (turn.acquire().await, self.charms.acquire().await) };
        let _permit = timeout(PERMIT_WITHIN, permit).await.map_err(|_| {
            Refusal::new(ErrorCode::TooManyRequests, "too many charms wait to be checked; try again later")
        })?;
        let found = self.helper.run_in_memory(Work::CheckCharm, LIMITS, archive).await.map_err(refusal)?;
        // A hostile archive can only affect the result for its own charm.
        serde_json::from_slice(&found).map_err(|error| {
            Refusal::new(ErrorCode::CharmRefused, format!("the charm could not be checked: {error}"))
        })
    }

    /// Checks an archive with an image for the platform of this host. `turn` is that of [`check`](Self::check).
    ///
    /// # Errors
    /// The reason why the image is invalid, or why it cannot be checked.
    pub(crate) async fn check_image(
        &self,
        archive: File,
        turn: &Semaphore,
    ) -> Result<CheckedArchive, Refusal> {
        let permit = async { (turn.acquire().await, self.images.acquire().await) };
        let _permit = timeout(IMAGE_PERMIT_WITHIN, permit).await.map_err(|_| {
            Refusal::new(ErrorCode::TooManyRequests, "too many images wait to be checked; try again later")
        })?;
        let found = self.helper.run_in_memory(Work::CheckImage, IMAGE_LIMITS, archive).await;
        let found = found.map_err(|failure| match failure {
            Failure::Refused(text) => Refusal::new(ErrorCode::BadRequest, text),
            Failure::Host(text) => {
                tracing::error!(text, "images cannot be checked");
                Refusal::new(ErrorCode::Internal, format!("the controller cannot check images: {text}"))
            }
            failure => {
                tracing::warn!(%failure, "an image could not be checked");
                Refusal::new(ErrorCode::BadRequest, format!("checking the image failed: {failure}"))
            }
        })?;
        serde_json::from_slice(&found).map_err(|error| {
            Refusal::new(ErrorCode::BadRequest, format!("the image could not be checked: {error}"))
        })
    }
}

fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Refused(text) => Refusal::new(ErrorCode::CharmRefused, text),
        failure @ (Failure::Late(_) | Failure::Died(_)) => {
            tracing::warn!(%failure, "a charm could not be checked");
            Refusal::new(ErrorCode::CharmRefused, format!("checking the charm failed: {failure}"))
        }
        failure @ Failure::Host(_) => {
            tracing::error!(%failure, "charms cannot be checked");
            // Not a temporary error: clients would send the archive again, and a helper that cannot start rarely
            // recovers.
            Refusal::new(ErrorCode::Internal, format!("the controller cannot check charms: {failure}"))
        }
    }
}

/// Runs the check of a charm or of an image in a process that was started as a helper. `order` is its last argument.
pub fn run_check_helper(order: &str) -> ExitCode {
    let check = |work, input: HelperInput| {
        let checked = match work {
            Work::CheckCharm => serde_json::to_vec(&check_charm(&input.bytes()?)?),
            Work::CheckImage => serde_json::to_vec(&check_image(input.file()?)?),
        };
        checked.map_err(|error| Fault::Host(error.to_string()))
    };
    run_helper_behind(order, |_: &Work| Fence::Helper, check)
}

fn check_charm(archive: &[u8]) -> Result<Checked, Fault> {
    let inspected = periapt_archive::inspect(archive).map_err(|error| Fault::Refused(error.to_string()))?;
    Ok(Checked { component: inspected.component, meta: inspected.meta })
}

/// Reads all layers of an image to their end.
fn check_image(archive: File) -> Result<CheckedArchive, Fault> {
    let fault = |error: ImageError| match error.is_of_host() {
        true => Fault::Host(error.to_string()),
        false => Fault::Refused(error.to_string()),
    };
    let source = ImageSource::of_file(archive, &ImageLimits::default()).map_err(fault)?;
    let image = source.choose(&ImageChoice::default()).map_err(fault)?;
    source.inspect(&image).map_err(fault)?;
    let layers = source.layer_places(&image).map_err(fault)?;
    let image = CheckedImage { digest: image.digest, platform: image.platform.to_string() };
    Ok(CheckedArchive { image, layers })
}
