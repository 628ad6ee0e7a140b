//! Resources: streamed uploads, kept while an application has them, downloads for units with access.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use periapt_client::{Client, ClientError};
use periapt_host_api::{
    Digest, ErrorCode, UnitName,
    command::{Answer, Command, ResourceUploaded},
    resource::{ContentKind, ResourceKey, ResourceUpload},
};
use periapt_image::{ImageLimits, ImagePlatform, ImageRecipe, ImageSettings, pack_image};

use crate::{
    downloads::DownloadedFile,
    fixture::{Agent, Fixture, Model, TIMEOUT, application, charm_with_resources, code_of, deploy, unit},
    raw,
};

pub(crate) async fn upload(client: &Client, content: &[u8]) -> Result<ResourceUploaded, ClientError> {
    let pieces: Vec<_> = content.chunks(1_000).map(Bytes::copy_from_slice).collect();
    let pieces = || stream::iter(pieces.clone().into_iter().map(Ok));
    client.upload_resource(&Digest::of(content), pieces).await
}

pub(crate) async fn attach(model: &Model, content: &[u8]) -> Result<u64, ClientError> {
    let upload = ResourceUpload { digest: Digest::of(content), filename: None, reference: None };
    let (application, resource) = (application("stocked"), "data".parse().unwrap());
    match model.command(Command::AttachResource { application, resource, upload }).await? {
        Answer::Resource { revision, .. } => Ok(revision),
        other => panic!("{other:?}"),
    }
}

async fn fetch(agent: &Agent, model: &Model, of: &UnitName, content: &[u8]) -> Result<Vec<u8>, ClientError> {
    let key = ResourceKey { name: "data".parse().unwrap(), digest: Digest::of(content) };
    let mut file = DownloadedFile::empty();
    agent.client.fetch_unit_resource(&agent.name, &model.uuid, of, &key, &mut file.partial).await?;
    Ok(file.bytes().await)
}

/// Deploys an application `stocked` with a unit on a connected agent `one`.
pub(crate) async fn deployed(fixture: &Fixture) -> (Agent, Model, impl Sized + use<>) {
    let agent = fixture.as_agent("one");
    let assignments = agent.connect().await;
    let model = fixture.add_model("m").await;
    let charm = fixture.client.upload_charm(charm_with_resources()).await.unwrap().digest;
    model.command(deploy(charm, 1)).await.unwrap();
    (agent, model, assignments)
}

/// Returns the number of files below a directory.
fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

async fn until(what: &str, holds: impl Fn() -> bool, mut meanwhile: impl AsyncFnMut()) {
    let waiting = async {
        while !holds() {
            meanwhile().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{what} never happened"));
}

#[tokio::test]
async fn content_is_uploaded_attached_and_fetched_by_the_agent_of_a_unit() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let (first, second) = (vec![7; 100_000], vec![8; 9 << 20]);
    assert!(!fixture.client.has_resource(&Digest::of(&first)).await.unwrap());
    assert_eq!(code_of(attach(&model, &first).await), ErrorCode::NotFound);
    let uploaded = upload(&fixture.client, &first).await.unwrap();
    assert_eq!(uploaded, ResourceUploaded { digest: Digest::of(&first), size: 100_000 });
    assert!(fixture.client.has_resource(&uploaded.digest).await.unwrap());
    upload(&fixture.client, &first).await.unwrap();
    assert_eq!(attach(&model, &first).await.unwrap(), 1);
    let of = unit("stocked/0");
    assert!(fetch(&agent, &model, &of, &first).await.unwrap() == first);
    upload(&fixture.client, &second).await.unwrap();
    assert_eq!(attach(&model, &second).await.unwrap(), 2);
    assert!(fetch(&agent, &model, &of, &second).await.unwrap() == second);
    assert!(fetch(&agent, &model, &of, &first).await.unwrap() == first, "hooks under way still read it");

    let listed = fixture.client.resources(&model.selector(), &application("stocked")).await.unwrap();
    let data = listed.iter().find(|resource| resource.name.as_str() == "data").unwrap();
    let attached = data.attached.as_ref().unwrap();
    assert_eq!((attached.revision, attached.size, attached.digest), (2, 9 << 20, Digest::of(&second)));
    assert_eq!(data.units.keys().collect::<Vec<_>>(), [&of]);
    fixture.stop().await;
}

#[tokio::test]
async fn nobody_else_is_given_content() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let content = b"rows".to_vec();
    upload(&fixture.client, &content).await.unwrap();
    attach(&model, &content).await.unwrap();
    let (of, other) = (unit("stocked/0"), fixture.as_agent("two"));
    let _other_there = other.connect().await;
    let denied = |result| assert_eq!(code_of(result), ErrorCode::PermissionDenied);
    // An agent without a unit of the application asks for itself and in another agent's name.
    denied(fetch(&other, &model, &of, &content).await);
    let pretending = Agent { name: agent.name.clone(), client: other.client.clone() };
    denied(fetch(&pretending, &model, &of, &content).await);
    // The agent asks for another model.
    denied(fetch(&agent, &fixture.add_model("n").await, &of, &content).await);
    // The agent asks for content that is uploaded and not attached, and for a resource that the application does not
    // have.
    upload(&fixture.client, b"unattached").await.unwrap();
    denied(fetch(&agent, &model, &of, b"unattached").await);
    denied(fetch(&agent, &model, &unit("stocked/1"), &content).await);
    // A resource's blob is no charm, and an agent may not upload.
    let as_charm = agent.client.fetch_charm(&Digest::of(&content)).await;
    assert_eq!(code_of(as_charm), ErrorCode::NotFound);
    assert_eq!(code_of(upload(&agent.client, b"from an agent").await), ErrorCode::PermissionDenied);
    assert!(agent.client.has_resource(&Digest::of(&content)).await.is_err());
    fixture.stop().await;
}

#[tokio::test]
async fn what_is_not_what_was_promised_or_breaks_off_leaves_nothing() {
    let fixture = Fixture::start().await;
    let other = Digest::of(b"other");
    let pieces = || stream::iter([Ok(Bytes::from_static(b"content"))]);
    let error = fixture.client.upload_resource(&other, pieces).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, ErrorCode::BadRequest, "{error}");
    assert!(error.to_string().contains(&format!("not {other}")), "{error}");

    let broken = || {
        stream::iter([
            Ok(Bytes::from(vec![7; 9 << 20])),
            Err(std::io::Error::other("the sender's disk fails")),
        ])
    };
    fixture.client.upload_resource(&other, broken).await.unwrap_err();
    let address = fixture.handle.address();
    let malformed = raw::request(address, "PUT /v1/resources/..%2f..%2fx", &[], "x").await;
    assert_eq!(malformed.status, 400);

    assert!(!fixture.client.has_resource(&other).await.unwrap());
    until("that the parts go", || files(fixture.blobs()) == 0, async || tokio::task::yield_now().await).await;
    fixture.stop().await;
}

#[tokio::test]
async fn content_that_no_application_has_goes_after_a_while() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    // An operator can go back to four earlier contents, so the first one is of no use.
    for content in [&b"one"[..], b"two", b"three", b"four", b"five", b"six"] {
        upload(&fixture.client, content).await.unwrap();
        attach(&model, content).await.unwrap();
    }
    upload(&fixture.client, b"never attached").await.unwrap();
    let kept = fixture.blobs().join("resources");
    assert_eq!(files(&kept), 7);
    let pass = async || {
        fixture.clock.advance(Duration::from_secs(60));
        fixture.client.controller().await.unwrap();
    };
    for _ in 0..45 {
        pass().await;
    }
    assert_eq!(files(&kept), 7, "it may be on its way to being attached, or be read");
    until("that what nobody has goes", || files(&kept) == 5, pass).await;
    assert_eq!(fetch(&agent, &model, &unit("stocked/0"), b"six").await.unwrap(), b"six");
    assert_eq!(code_of(fetch(&agent, &model, &unit("stocked/0"), b"one").await), ErrorCode::PermissionDenied);
    assert!(fixture.client.has_resource(&Digest::of(b"two")).await.unwrap());
    assert!(!fixture.client.has_resource(&Digest::of(b"never attached")).await.unwrap());

    let remove = Command::RemoveApplication {
        application: application("stocked"),
        force: Some(Default::default()),
        storage: Default::default(),
    };
    model.command(remove).await.unwrap();
    until("that the last ones go", || files(&kept) == 0, pass).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_agent_fetches_ranges_that_nobody_else_may_cache() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    upload(&fixture.client, b"0123456789").await.unwrap();
    attach(&model, b"0123456789").await.unwrap();
    let digest = Digest::of(b"0123456789");
    let line = format!(
        "GET /v1/agents/{}/models/{}/units/stocked/0/resources/data/{digest}",
        agent.name, model.uuid
    );
    let (address, own) = (fixture.handle.address(), ("periapt-agent", agent.name.as_str()));
    let part = raw::request(address, &line, &[own, ("range", "bytes=3-5")], "").await;
    assert_eq!((part.status, part.body.as_slice()), (206, &b"345"[..]));
    assert!(part.header("cache-control").unwrap().contains("private"));
    let nobody = raw::request(address, &line, &[], "").await;
    assert_eq!(nobody.status, 403);
    fixture.stop().await;
}

/// Returns the archive of an image with one file, for an architecture.
fn image(architecture: Option<&str>, content: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (root, archive) = (directory.path().join("root"), directory.path().join("image.tar"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("file"), content).unwrap();
    let own = ImagePlatform::of_this_host();
    let architecture = architecture.map_or(own.architecture.clone(), ToOwned::to_owned);
    let platform = ImagePlatform { architecture, ..own };
    let recipe =
        ImageRecipe { directory: root, settings: ImageSettings::default(), platform, reference: None };
    pack_image(&recipe, &archive, &ImageLimits::default()).unwrap();
    std::fs::read(archive).unwrap()
}

async fn upload_image(client: &Client, content: &[u8]) -> Result<ResourceUploaded, ClientError> {
    let pieces: Vec<_> = content.chunks(1_000).map(Bytes::copy_from_slice).collect();
    let pieces = || stream::iter(pieces.clone().into_iter().map(Ok));
    client.upload_content(&Digest::of(content), ContentKind::OciImage, pieces).await
}

#[tokio::test]
async fn an_image_is_kept_once_it_was_read_and_a_file_is_no_image() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let has =
        async |content: &[u8]| client.has_content(&Digest::of(content), ContentKind::OciImage).await.unwrap();
    let good = image(None, "one");
    let mut damaged = good.clone();
    let end = damaged.iter().rposition(|byte| *byte != 0).unwrap();
    damaged[end - 12] ^= 0xff;
    for (content, expected) in [
        (b"no image".to_vec(), "this is no image"),
        (image(Some("riscv64"), "one"), "the image is for linux/riscv64, and linux/"),
        (damaged, "layer 1"),
        (good[..good.len() / 2].to_vec(), ""),
    ] {
        let error = upload_image(client, &content).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, ErrorCode::BadRequest, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!has(&content).await && !client.has_resource(&Digest::of(&content)).await.unwrap());
    }

    upload(client, &good).await.unwrap();
    assert!(client.has_resource(&Digest::of(&good)).await.unwrap());
    assert!(!has(&good).await, "nobody has read it as an image");
    upload_image(client, &good).await.unwrap();
    assert!(has(&good).await);
    let other = image(None, "two");
    assert_eq!(upload_image(client, &other).await.unwrap().size, other.len() as u64);
    assert!(has(&other).await && client.has_resource(&Digest::of(&other)).await.unwrap());
    // The digest is checked before anything is read.
    let pieces = || stream::iter([Ok(Bytes::from_static(b"x"))]);
    let wrong = client.upload_content(&Digest::of(b"y"), ContentKind::OciImage, pieces).await;
    assert_eq!(code_of(wrong), ErrorCode::BadRequest);
    fixture.stop().await;
}
