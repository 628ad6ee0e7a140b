//! `attach-resource`

use std::path::{Path, PathBuf};

use clap::Args;
use periapt_host_api::{
    ApplicationName, ResourceName,
    api::ResourceDetails,
    charm::ResourceKind,
    command::{Answer, Command},
    resource::ResourceUpload,
};

use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Explain as _, Failure, Result},
    upload::resource::{ResourceFile, argument, kept, revision},
};

/// Give a resource of an application new content
///
/// Its units run upgrade-charm, and hooks from then on read the new file; containers start again with the new image. The
/// same content again changes nothing. A number in place of a file is an earlier revision of the resource: the controller
/// keeps the last four beside the present one. A resource of type oci-image is an archive or directory of an OCI layout,
/// what `docker save` writes, the name of an image in a registry, or a YAML file with registrypath, username and password.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt attach-resource mysql data=./rows.sql
  periapt attach-resource website bundle=/srv/build/site.tar.gz
  periapt attach-resource web web-image=./image.tar
  periapt attach-resource web web-image=1")]
pub(crate) struct AttachResource {
    /// The application
    application: ApplicationName,
    /// The resource, as the charm declares it, and a file on this machine, an image, or an earlier revision
    #[arg(value_name = "NAME=FILE|REVISION", value_parser = argument)]
    resource: (ResourceName, PathBuf),
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for AttachResource {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let (application, (name, path)) = (self.application, self.resource);
        let resources = model.client().resources(&model.selector, &application).await?;
        let upload = match revision(&path) {
            Some(revision) => kept(&resources, &name, revision)?,
            None => uploaded(&model, &resources, &name, &path).await?,
        };
        let (shown, resource) = (application.clone(), name.clone());
        let command = Command::AttachResource { application, resource, upload };
        match model.command(command).await? {
            Answer::Resource { revision, fresh: true } => context.say(format_args!(
                "Attached {} to resource \"{name}\" of application \"{shown}\" as revision {revision}",
                path.display()
            )),
            Answer::Resource { revision, fresh: false } => context.say(format_args!(
                "Resource \"{name}\" of application \"{shown}\" has this content already, as revision {revision}"
            )),
            _ => {}
        }
        Ok(())
    }
}

/// Uploads a file or an image for a resource.
async fn uploaded(
    model: &Model,
    resources: &[ResourceDetails],
    name: &ResourceName,
    path: &Path,
) -> Result<ResourceUpload> {
    let declared = resources.iter().find(|declared| declared.name == *name);
    // The controller refuses what the charm does not declare.
    let unknown = ResourceKind::File { filename: String::new() };
    let kind = declared.map_or(&unknown, |declared| &declared.meta.kind);
    let file = ResourceFile::obtain(kind, path).await.explain(|| format!("resource \"{name}\""))?;
    let upload = file.upload_of();
    // Content that the charm does not admit is refused before the upload.
    if let Some(declared) = declared {
        declared
            .meta
            .admits(name, upload.filename.as_deref())
            .map_err(|broken| Failure::new(broken.to_string()))?;
        file.upload(model.client()).await?;
    }
    Ok(upload)
}
