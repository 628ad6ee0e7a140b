//! Layers of images: each is sent and kept once, for all images that have it.

use std::{collections::BTreeMap, path::Path, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use periapt_client::{Client, ClientError, KnownLayer};
use periapt_controller::{BackupChain, BackupKeys, RestoredKeys, RestoredLog, restore};
use periapt_host_api::{
    Digest, ErrorCode,
    backup::BackupRequest,
    command::Command,
    resource::{ArchiveLayer, ContentKind, ResourceKey, ResourceUpload, frame_ranges},
};
use periapt_image::{
    ImageChoice, ImageLimits, ImageSource,
    testing::{directory, file, image, layer, members, tar},
};
use tempfile::TempDir;

use crate::{
    downloads::DownloadedFile,
    fixture::{
        Fixture, TIMEOUT, application, charm_with_resources, code_of, deploy, in_directory, run, unit,
    },
    listeners::authority_in,
    set::{Member, Set},
};

/// The bytes of the file in the layer that all images of these tests have.
const BASE: usize = 600_000;

/// Returns the archive of an image with a large layer and a small one of its own.
fn archive(own: &str) -> Vec<u8> {
    let base = layer(&[directory("bin/"), file("bin/base", vec![7; BASE])]);
    let top = layer(&[file("own", own.repeat(9_000))]);
    tar(&members(&image(&[base, top]).files()))
}

/// Returns the place of the large layer in an archive.
fn base(archive: &[u8]) -> ArchiveLayer {
    let place = TempDir::new().unwrap();
    let path = place.path().join("image.tar");
    std::fs::write(&path, archive).unwrap();
    let source = ImageSource::open(&path, &ImageLimits::default()).unwrap();
    let layers = source.layer_places(&source.choose(&ImageChoice::default()).unwrap()).unwrap();
    layers.into_iter().max_by_key(|layer| layer.size).unwrap()
}

async fn upload(client: &Client, archive: &[u8]) -> Result<(), ClientError> {
    let pieces: Vec<_> = archive.chunks(10_000).map(Bytes::copy_from_slice).collect();
    let pieces = || stream::iter(pieces.clone().into_iter().map(Ok));
    client.upload_content(&Digest::of(archive), ContentKind::OciImage, pieces).await.map(drop)
}

/// Uploads an image without layers. Returns the number of bytes that are sent beside the first line.
async fn upload_without(
    client: &Client,
    archive: &[u8],
    left_out: Vec<ArchiveLayer>,
) -> Result<usize, ClientError> {
    let ranges = frame_ranges(&left_out, archive.len() as u64);
    let pieces = ranges.iter().map(|range| archive[range.start as usize..range.end as usize].to_vec());
    let pieces: Vec<Bytes> = pieces.map(Bytes::from).collect();
    let sent = pieces.iter().map(Bytes::len).sum();
    let content = || stream::iter(pieces.clone().into_iter().map(Ok));
    client.upload_partial_image(&Digest::of(archive), left_out, content).await.map(|_| sent)
}

/// Returns the sizes of the whole blobs below a directory, by their names.
fn stored(directory: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(stored(&path));
        } else if name.len() == 64 {
            found.insert(name, path.metadata().map_or(0, |metadata| metadata.len()));
        }
    }
    found
}

fn bytes_in(directory: &Path) -> u64 {
    stored(directory).values().sum()
}

async fn has(client: &Client, archive: &[u8]) -> bool {
    client.has_content(&Digest::of(archive), ContentKind::OciImage).await.unwrap()
}

#[tokio::test]
async fn a_layer_that_two_images_share_is_kept_once_and_goes_with_the_last_of_them() {
    let fixture = Fixture::start().await;
    let kept = fixture.blobs().join("resources");
    let (one, two) = (archive("1"), archive("2"));
    upload(&fixture.client, &one).await.unwrap();
    let of_one = bytes_in(&kept);
    assert_eq!(of_one, one.len() as u64, "its parts have all of its bytes, and no others");
    assert_eq!(stored(&kept).len(), 3, "two layers, and what is around them");
    let base = base(&one);
    upload(&fixture.client, &two).await.unwrap();
    assert_eq!(bytes_in(&kept) - of_one, two.len() as u64 - base.size);
    assert!(has(&fixture.client, &one).await && has(&fixture.client, &two).await);

    // The second one is attached and stays, the first one is of no use.
    let agent = fixture.as_agent("one");
    let _there = agent.connect().await;
    let model = fixture.add_model("m").await;
    let charm = fixture.client.upload_charm(charm_with_resources()).await.unwrap().digest;
    model.command(deploy(charm, 1)).await.unwrap();
    let attach = Command::AttachResource {
        application: application("stocked"),
        resource: "data".parse().unwrap(),
        upload: ResourceUpload { digest: Digest::of(&two), filename: None, reference: None },
    };
    model.command(attach).await.unwrap();
    let until = async |expected: usize| {
        let waiting = async {
            while stored(&kept).len() != expected {
                fixture.clock.advance(Duration::from_secs(60));
                fixture.client.controller().await.unwrap();
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    };
    until(3).await;
    assert_eq!(bytes_in(&kept), two.len() as u64);
    assert!(!has(&fixture.client, &one).await && has(&fixture.client, &two).await);
    let remove = Command::RemoveApplication {
        application: application("stocked"),
        force: Some(Default::default()),
        storage: Default::default(),
    };
    model.command(remove).await.unwrap();
    until(0).await;
    assert!(!has(&fixture.client, &two).await);
    fixture.stop().await;
}

#[tokio::test]
async fn an_upload_leaves_out_what_is_there_and_agents_get_the_same_bytes() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let agent = fixture.as_agent("one");
    let _there = agent.connect().await;
    let model = fixture.add_model("m").await;
    let (one, two) = (archive("1"), archive("2"));
    let (in_one, base) = (base(&one), base(&two));
    assert!(!client.has_resource(&base.digest).await.unwrap());
    upload(client, &one).await.unwrap();
    assert!(client.has_resource(&base.digest).await.unwrap());
    let sent = upload_without(client, &two, vec![base]).await.unwrap();
    assert_eq!(sent as u64, two.len() as u64 - base.size);
    assert!(sent < BASE / 2, "{sent}");
    assert!(has(client, &two).await);

    let charm = client.upload_charm(charm_with_resources()).await.unwrap().digest;
    model.command(deploy(charm, 1)).await.unwrap();
    let digest = Digest::of(&two);
    let attach = Command::AttachResource {
        application: application("stocked"),
        resource: "data".parse().unwrap(),
        upload: ResourceUpload { digest, filename: None, reference: None },
    };
    model.command(attach).await.unwrap();
    let key = ResourceKey { name: "data".parse().unwrap(), digest };
    let mut fetched = DownloadedFile::empty();
    let of = unit("stocked/0");
    let (whose, client) = ((&agent.name, &model.uuid), &agent.client);
    client.fetch_unit_resource(whose.0, whose.1, &of, &key, &mut fetched.partial).await.unwrap();
    assert!(fetched.bytes().await == two);

    // An agent that has the first image takes the layer from there.
    let found = agent.client.unit_resource_layers(&agent.name, &model.uuid, &of, &key).await.unwrap();
    assert_eq!(found.size, two.len() as u64);
    assert!(found.layers.len() == 2 && found.layers.contains(&base), "{found:?}");
    let place = TempDir::new().unwrap();
    for (from, expected) in [(in_one.at, true), (in_one.at + 1, false)] {
        let path = place.path().join("one.tar");
        std::fs::write(&path, &one).unwrap();
        let known = KnownLayer { place: base, file: std::fs::File::open(&path).unwrap(), from };
        let (mut beside, known) = (DownloadedFile::empty(), (found.size, vec![known]));
        let fetched = client.fetch_unit_resource_beside(whose, &of, &key, known, &mut beside.partial).await;
        assert_eq!(fetched.unwrap(), expected);
        let kept = if expected { &two[..] } else { &[] };
        assert!(beside.bytes().await == kept, "nothing is kept of what is damaged");
    }

    // What has arrived of the archive counts wherever it ends: before the layer, in it, or behind it.
    let middle = base.at + base.size / 2;
    for had in [base.at - 1, base.at, middle, base.range().end, base.range().end + 1, found.size - 1] {
        let path = place.path().join("one.tar");
        let known = KnownLayer { place: base, file: std::fs::File::open(&path).unwrap(), from: in_one.at };
        let (mut beside, known) = (DownloadedFile::empty(), (found.size, vec![known]));
        beside.partial.append(&two[..had as usize]).await.unwrap();
        let fetched = client.fetch_unit_resource_beside(whose, &of, &key, known, &mut beside.partial).await;
        assert!(fetched.unwrap(), "{had}");
        assert!(beside.bytes().await == two, "{had}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_layer_that_is_missing_damaged_or_misplaced_is_one_error_and_nothing_is_written() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let kept = fixture.blobs().join("resources");
    let (one, two) = (archive("1"), archive("2"));
    let base = base(&two);
    let refused = async |left_out: Vec<ArchiveLayer>, code: ErrorCode, expected: &str| {
        let before = stored(&kept);
        let error = upload_without(client, &two, left_out).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, code, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(stored(&kept), before);
        assert!(!has(client, &two).await);
    };
    refused(vec![base], ErrorCode::NotFound, "is missing or damaged here: send the whole image").await;
    upload(client, &one).await.unwrap();
    refused(vec![ArchiveLayer { size: base.size - 1, ..base }], ErrorCode::NotFound, "is missing or damaged")
        .await;
    let moved = ArchiveLayer { at: base.at + 1, ..base };
    refused(vec![moved], ErrorCode::BadRequest, "the image's archive has digest").await;
    refused(vec![base, base], ErrorCode::BadRequest, "do not overlap").await;
    refused(vec![], ErrorCode::BadRequest, "1 to 64 layers expected").await;
    let behind = ArchiveLayer { at: two.len() as u64 + 1, ..base };
    let pieces = || stream::iter([Ok(Bytes::from_static(b"short"))]);
    let short = client.upload_partial_image(&Digest::of(&two), vec![behind], pieces).await;
    assert_eq!(code_of(short), ErrorCode::BadRequest);

    let path = kept.join(&base.digest.to_string()[..2]).join(base.digest.to_string());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[BASE / 2] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    refused(vec![base], ErrorCode::NotFound, "is missing or damaged").await;
    assert!(!has(client, &one).await, "an image with a damaged layer is to be sent again");
    // The whole image replaces the damaged layer.
    upload(client, &two).await.unwrap();
    assert!(has(client, &one).await && has(client, &two).await);
    fixture.stop().await;
}

#[tokio::test]
async fn an_image_with_a_damaged_or_missing_part_is_mended_by_an_upload_as_a_file() {
    let fixture = Fixture::start().await;
    let client = &fixture.client;
    let kept = fixture.blobs().join("resources");
    let one = archive("1");
    upload(client, &one).await.unwrap();
    let before = stored(&kept);
    assert_eq!(before.len(), 3, "two layers, and what is around them");
    let pieces: Vec<_> = one.chunks(10_000).map(Bytes::copy_from_slice).collect();
    let as_file = || stream::iter(pieces.clone().into_iter().map(Ok));
    let changed = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        *bytes.last_mut().unwrap() ^= 0xff;
        std::fs::write(path, bytes).unwrap();
    };
    let removed = |path: &Path| std::fs::remove_file(path).unwrap();
    for name in before.keys() {
        for damage in [&changed as &dyn Fn(&Path), &removed] {
            damage(&kept.join(&name[..2]).join(name));
            assert!(!client.has_resource(&Digest::of(&one)).await.unwrap(), "{name}");
            client.upload_resource(&Digest::of(&one), as_file).await.unwrap();
            assert!(client.has_resource(&Digest::of(&one)).await.unwrap(), "{name}");
            assert!(has(client, &one).await, "{name}: it is still known to be an image");
            assert_eq!(stored(&kept), before, "its parts alone are kept");
        }
    }
    let wrong = || stream::iter([Ok(Bytes::from_static(b"other"))]);
    let error = client.upload_resource(&Digest::of(&one), wrong).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, ErrorCode::BadRequest, "{error}");
    let expected = format!("the content has digest {}, not {}", Digest::of(b"other"), Digest::of(&one));
    assert!(error.to_string().contains(&expected), "{error}");
    assert!(has(client, &one).await);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_has_all_layers_and_its_restored_controller_serves_the_image() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("controller");
    let (handle, client, running) = run(in_directory(&directory)).await;
    authority_in(&directory);
    let keys = RestoredKeys::Given(BackupKeys::in_directory(&directory).unwrap());
    let (one, two) = (archive("1"), archive("2"));
    for archive in [&one, &two] {
        upload(&client, archive).await.unwrap();
    }
    let written = place.path().join("backup.tar");
    let mut file = tokio::fs::File::create(&written).await.unwrap();
    client.back_up(&BackupRequest::default(), &mut file, |_| {}).await.unwrap();
    handle.shutdown();
    running.await.unwrap().unwrap();

    let into = place.path().join("restored");
    restore(BackupChain::at(&written, &[]).unwrap(), &into, &keys, None, RestoredLog::None).await.unwrap();
    let (handle, client, running) = run(in_directory(&into)).await;
    assert!(has(&client, &one).await && has(&client, &two).await);
    let blobs = |of: &Path| stored(&of.join("blobs").join("resources"));
    assert_eq!(blobs(&into), blobs(&directory));
    assert_eq!(blobs(&into).len(), 5, "a layer is there once");
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_controllers_has_each_layer_once_and_answers_for_the_whole_image() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    for member in [&one, &two] {
        knows(member, 2).await;
    }
    let images = [archive("1"), archive("2")];
    upload(&one.client, &images[0]).await.unwrap();
    // A follower may be asked, and may not have fetched the layer yet.
    let base = base(&images[1]);
    let waiting = async {
        while !two.client.has_resource(&base.digest).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    upload_without(&two.client, &images[1], vec![base]).await.unwrap();
    for (member, name) in [(&one, "one"), (&two, "two")] {
        let waiting = async {
            while !(has(&member.client, &images[0]).await && has(&member.client, &images[1]).await) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
        assert_eq!(stored(&set.blobs(name)).len(), 5, "{name}");
    }
    one.stop().await;
    two.stop().await;
}

/// Waits until a controller knows so many controllers.
async fn knows(member: &Member, count: usize) {
    let waiting = async {
        while member.client.controller().await.unwrap().members.len() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}
