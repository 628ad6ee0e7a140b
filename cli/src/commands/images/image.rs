//! `image`: images of containers on this machine, without a controller.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Args, Subcommand};
use periapt_image::{
    EntryKind, ImageChoice, ImageContent, ImageLimits, ImagePlatform, ImageRecipe, ImageSettings,
    ImageSource, pack_image,
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::Context,
    error::{Explain as _, Failure, Result, with_source},
    output::{OutputArgs, note},
};

/// The bits of a mode that give a program the rights of its file's owner or group.
const SET_IDS: u32 = 0o6000;

/// The operations on images.
#[derive(Debug, Subcommand)]
pub(crate) enum Image {
    Pack(PackImage),
    Show(ShowImage),
}

/// Make an image of a directory
///
/// The directory is the root of the file system that programs of the image see. The image is an archive of an OCI layout with
/// one layer; all files belong to root and have no times, so the same directory gives the same bytes. Devices, pipes and
/// sockets are left out. What could not be unpacked is refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt image pack ./root --entrypoint /bin/web
  periapt image pack ./root --output web.tar --entrypoint /bin/web --entrypoint=--port=8080 --env LANG=C.UTF-8")]
pub(crate) struct PackImage {
    /// The directory
    directory: PathBuf,
    /// The archive, if it is not to be DIRECTORY.tar here
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A word of the command that the image runs; may be repeated, word by word
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    entrypoint: Vec<String>,
    /// A variable of its environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The directory in which its command begins
    #[arg(long, value_name = "PATH")]
    workdir: Option<String>,
    /// The user that its command runs as: a name or a number, with a group after a colon
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// A port that it serves, such as 8080/tcp; may be repeated
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<String>,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// The architecture that its programs are for, such as amd64 or arm64, if it is not this machine's
    #[arg(long, value_name = "ARCHITECTURE")]
    architecture: Option<String>,
    /// The name of the image in the archive
    #[arg(long, value_name = "NAME", default_value = "latest")]
    reference: String,
}

/// Show an image, and check all of it
///
/// The file is an OCI layout (a directory), an archive of one, or what `docker save` writes. Each layer is read to its end
/// and checked as if it was unpacked; nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt image show web.tar
  periapt image show images.tar --reference example/web:1 --architecture arm64 --format json")]
pub(crate) struct ShowImage {
    /// The file or directory
    file: PathBuf,
    /// The name of the image, if the file has several
    #[arg(long, value_name = "NAME")]
    reference: Option<String>,
    /// The architecture of the image, such as amd64 or arm64, if it is not this machine's
    #[arg(long, value_name = "ARCHITECTURE")]
    architecture: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// An image as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownImage {
    digest: String,
    platform: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<String>,
    settings: ImageSettings,
    layers: Vec<ShownLayer>,
    content: ShownContent,
}

/// A layer as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownLayer {
    diff_id: String,
    form: String,
    /// The stored bytes.
    size: u64,
}

/// The files that are seen of all layers.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownContent {
    files: u64,
    directories: u64,
    links: u64,
    /// The bytes of all files.
    bytes: u64,
    /// The files with set-user-id or set-group-id. They are unpacked without it.
    set_id: u64,
    /// The devices and pipes. They are not unpacked.
    skipped: u64,
}

impl Verb for Image {
    async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Pack(pack) => pack.run(context).await,
            Self::Show(show) => show.run(context).await,
        }
    }
}

impl Verb for PackImage {
    async fn run(self, context: &Context) -> Result<()> {
        let output = match &self.output {
            Some(output) => output.clone(),
            None => self.named_output()?,
        };
        let settings = ImageSettings {
            entrypoint: self.entrypoint,
            environment: self.env,
            working_directory: self.workdir.unwrap_or_default(),
            user: self.user.unwrap_or_default(),
            ports: self.ports,
            labels: pairs(&self.labels)?,
            ..ImageSettings::default()
        };
        let platform = platform(self.architecture);
        let recipe =
            ImageRecipe { directory: self.directory, settings, platform, reference: Some(self.reference) };
        let packed = pack_image(&recipe, &output, &ImageLimits::default()).map_err(with_source)?;
        if let Some(first) = packed.skipped.first() {
            let count = packed.skipped.len();
            note(format_args!(
                "WARNING the image is without {count} devices, pipes and sockets: {first} is the first"
            ));
        }
        context.say(format_args!(
            "Packed {} ({} bytes, {} files and directories, digest {})",
            output.display(),
            packed.bytes,
            packed.entries,
            packed.digest.short()
        ));
        Ok(())
    }
}

impl PackImage {
    /// Returns the path of the archive: the directory's name, in the current directory.
    fn named_output(&self) -> Result<PathBuf> {
        let shown = self.directory.display();
        let whole = self.directory.canonicalize().explain(|| format!("cannot read {shown}"))?;
        let name = whole.file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| Failure::misused(format!("--output must name the archive of {shown}")))?;
        Ok(PathBuf::from(format!("{name}.tar")))
    }
}

impl Verb for ShowImage {
    async fn run(self, context: &Context) -> Result<()> {
        let file =
            ImageSource::open(&self.file, &ImageLimits::default()).map_err(|error| self.refused(error))?;
        let choice =
            ImageChoice { reference: self.reference.clone(), platform: platform(self.architecture.clone()) };
        let image = file.choose(&choice).map_err(|error| self.refused(error))?;
        let content = file.inspect(&image).map_err(|error| self.refused(error))?;
        let layers = image.layers.iter().map(|layer| ShownLayer {
            diff_id: format!("sha256:{}", layer.diff_id),
            form: layer.form.to_string(),
            size: layer.size,
        });
        let shown = ShownImage {
            digest: format!("sha256:{}", image.digest),
            platform: image.platform.to_string(),
            layers: layers.collect(),
            references: image.references,
            settings: image.settings,
            content: counted(&content),
        };
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

impl ShowImage {
    /// Names the file in an error about its content.
    fn refused(&self, error: periapt_image::ImageError) -> Failure {
        match error.is_of_host() {
            true => with_source(error),
            false => Failure::new(format!("{}: {error}", self.file.display())),
        }
    }
}

fn counted(content: &ImageContent) -> ShownContent {
    let mut counted = ShownContent::default();
    for (_, entry) in content.merged.entries.values() {
        match &entry.kind {
            EntryKind::File { size } => {
                counted.files += 1;
                counted.bytes = counted.bytes.saturating_add(*size);
            }
            EntryKind::HardLink { .. } => counted.files += 1,
            EntryKind::Directory { .. } => counted.directories += 1,
            EntryKind::Link { .. } => counted.links += 1,
            EntryKind::Skipped { .. } => counted.skipped += 1,
            EntryKind::Whiteout => {}
        }
        let is_file = matches!(entry.kind, EntryKind::File { .. } | EntryKind::HardLink { .. });
        counted.set_id += u64::from(is_file && entry.mode & SET_IDS != 0);
    }
    counted
}

fn platform(architecture: Option<String>) -> ImagePlatform {
    let own = ImagePlatform::of_this_host();
    match architecture {
        Some(architecture) => ImagePlatform { architecture, ..own },
        None => own,
    }
}

fn pairs(labels: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |label: &String| {
        let pair = label.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) =
            pair.ok_or_else(|| Failure::misused(format!("expected NAME=VALUE as a label, got {label:?}")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    labels.iter().map(pair).collect()
}
