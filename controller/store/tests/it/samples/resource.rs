//! Resources of applications, and uploaded content.

use periapt_host_api::resource::{ArchiveLayer, ArchiveParts, CheckedImage, RegistryName, ResourceRevision};
use periapt_model::entity::{AttachedResource, FormerContent, ResourceContent, Uploaders};
use uuid::Uuid;

use super::{Named, digest, parse, time};

pub(crate) fn contents() -> Named<ResourceContent> {
    let uploaders = Uploaders::new([Uuid::from_u128(1), Uuid::from_u128(2)]);
    let content = |uploaders| ResourceContent {
        digest: digest("rows"),
        size: 1_234_567_890,
        uploaded_at: time(30),
        uploaders,
        image: None,
        parts: None,
    };
    let image = CheckedImage { digest: digest("manifest"), platform: "linux/amd64".into() };
    let checked = ResourceContent { image: Some(image.clone()), ..content(Uploaders::default()) };
    let layers = [(2_048, "base"), (500_000_000, "top")]
        .map(|(at, name)| ArchiveLayer { at, size: 400_000_000, digest: digest(name) })
        .into();
    let parts = ArchiveParts { frame: digest("frame"), layers };
    let in_parts =
        ResourceContent { image: Some(image), parts: Some(parts), ..content(Uploaders::default()) };
    vec![
        ("uploaded", content(Uploaders::default())),
        ("with-uploaders", content(uploaders)),
        ("with-image", checked),
        ("in-parts", in_parts),
    ]
}

pub(super) fn attached_image() -> AttachedResource {
    let image = CheckedImage { digest: digest("manifest"), platform: "linux/amd64".into() };
    let reference = RegistryName::new("docker.io/library/web:1").unwrap();
    let current = ResourceRevision { image: Some(image), reference: Some(reference), ..revision(2, "image") };
    AttachedResource { current, version: 1, former: Vec::new() }
}

pub(super) fn attached_once() -> AttachedResource {
    AttachedResource { current: revision(1, "settings"), version: 0, former: Vec::new() }
}

pub(super) fn attached_twice() -> AttachedResource {
    let former = FormerContent { content: revision(6, "fewer rows"), version: 2 };
    AttachedResource { current: revision(7, "rows"), version: 4, former: vec![former] }
}

fn revision(revision: u64, content: &str) -> ResourceRevision {
    let (digest, attached_by) = (digest(content), parse("admin"));
    ResourceRevision {
        revision,
        digest,
        size: 512,
        attached_at: time(31),
        attached_by,
        image: None,
        reference: None,
    }
}
