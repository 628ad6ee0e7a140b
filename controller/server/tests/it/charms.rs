//! Charm archives: checked at the upload, and cached forever by clients.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use periapt_host_api::{Digest, ErrorCode, StoreId, Timestamp, charm::CharmMeta, command::Command};
use periapt_model::{
    Changes, EntityKey,
    entity::{Charm, MetaReader, Uploaders},
};
use periapt_store::{MemoryStore, Store as _, codec};
use tempfile::TempDir;

use crate::{
    fixture::{
        Fault, Faults, Fixture, TIMEOUT, application, charm, charm_with_container, code_of, deploy,
        larger_charm, next_where, options, run,
    },
    raw,
};

/// Advances the clock until so many archives are stored.
async fn wait_for_archives(fixture: &Fixture, count: usize) {
    let waiting = async {
        while fixture.archives() != count {
            fixture.clock.advance(Duration::from_secs(60));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

/// Advances the clock by some minutes, and lets due work happen.
async fn minutes(fixture: &Fixture, minutes: u32) {
    for _ in 0..minutes {
        fixture.clock.advance(Duration::from_secs(60));
        fixture.client.controller().await.unwrap();
    }
}

#[tokio::test]
async fn a_charm_that_no_model_uses_goes_after_a_while_and_one_that_is_used_stays() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let used = fixture.client.upload_charm(charm()).await.unwrap().digest;
    let unused = fixture.client.upload_charm(larger_charm()).await.unwrap().digest;
    model.command(deploy(used, 1)).await.unwrap();
    minutes(&fixture, 45).await;
    assert_eq!(fixture.archives(), 2, "it may be on its way to being deployed");
    wait_for_archives(&fixture, 1).await;
    assert_eq!(fixture.client.fetch_charm(&used).await.unwrap(), charm());
    assert_eq!(code_of(model.command(deploy(unused, 1)).await), ErrorCode::NotFound);

    fixture.client.upload_charm(larger_charm()).await.unwrap();
    minutes(&fixture, 45).await;
    assert!(fixture.client.has_charm(&unused).await.unwrap());
    minutes(&fixture, 45).await;
    assert_eq!(fixture.archives(), 2, "who asks for it will use it");

    let remove = Command::RemoveApplication {
        application: application("tiny"),
        force: None,
        storage: Default::default(),
    };
    model.command(remove).await.unwrap();
    wait_for_archives(&fixture, 0).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_archive_whose_charm_was_refused_is_not_kept() {
    for (fault, kept) in [(Fault::Refuse, 0), (Fault::FailBeforeWriting, 0), (Fault::FailAfterWriting, 1)] {
        let fixture = Fixture::start().await;
        let model = fixture.add_model("m").await;
        let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();
        fixture.faults.set(fault);
        let refused = fixture.client.upload_charm(charm()).await;
        let code = match fault {
            Fault::Refuse => ErrorCode::StorageUnavailable,
            _ => ErrorCode::OutcomeUnknown,
        };
        assert_eq!(code_of(refused), code);
        assert_eq!(fixture.archives(), 1);
        if fault != Fault::Refuse {
            next_where(&mut status, |status| !status.controller.problems.is_empty()).await;
            // While it is unknown if the charm is registered, its archive stays.
            minutes(&fixture, 5).await;
            assert_eq!(fixture.archives(), 1, "{fault:?}");
        }
        fixture.faults.set(Fault::None);
        next_where(&mut status, |status| status.controller.problems.is_empty()).await;
        match kept {
            0 => wait_for_archives(&fixture, 0).await,
            _ => minutes(&fixture, 5).await,
        }
        assert_eq!(fixture.archives(), kept, "{fault:?}");
        let deployed = model.command(deploy(Digest::of(&charm()), 1)).await;
        assert_eq!(deployed.is_ok(), kept == 1, "{deployed:?}");
        fixture.stop().await;
    }
}

#[tokio::test]
async fn an_archive_is_uploaded_once_and_fetched_by_its_digest() {
    let fixture = Fixture::start().await;
    let digest = Digest::of(&charm());
    assert!(!fixture.client.has_charm(&digest).await.unwrap());
    let uploaded = fixture.client.upload_charm(charm()).await.unwrap();
    assert_eq!((uploaded.digest, uploaded.meta.name.as_str()), (digest, "tiny"));
    assert!(fixture.client.has_charm(&digest).await.unwrap());
    let pieces: Vec<_> = charm().chunks(1000).map(Bytes::copy_from_slice).collect();
    let pieces = || stream::iter(pieces.clone().into_iter().map(Ok));
    let again = fixture.client.upload_charm_stream(&digest, pieces).await.unwrap();
    assert_eq!(again, uploaded);
    assert_eq!(fixture.client.fetch_charm(&digest).await.unwrap(), charm());
    let idle = fixture.as_agent("one").client.fetch_charm(&digest).await;
    assert_eq!(code_of(idle), ErrorCode::NotFound, "an agent without a unit of it");
    fixture.stop().await;
}

#[tokio::test]
async fn an_archive_that_an_earlier_program_read_is_read_again_at_the_next_upload() {
    let archive = charm_with_container();
    let inspected = periapt_archive::inspect(&archive).unwrap();
    let (digest, component) = (inspected.digest, inspected.component);
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let blobs = TempDir::new().unwrap();
    let start = || run(options(Arc::clone(&memory), Faults::default(), blobs.path()));
    let (handle, client, running) = start().await;
    client.upload_charm(archive.clone()).await.unwrap();
    handle.shutdown();
    running.await.unwrap().unwrap();

    let earlier = Charm {
        digest,
        component,
        meta: CharmMeta { containers: Default::default(), ..inspected.meta.clone() },
        size: archive.len() as u64,
        uploaded_at: Timestamp::UNIX_EPOCH,
        uploaders: Uploaders::default(),
        reader: MetaReader::FIRST,
    };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Charm(digest), Some(earlier.into()));
    let revision = memory.load().await.unwrap().revision;
    let batch = codec::batch(revision, [codec::Writes::of(&changes).unwrap()]);
    memory.commit(batch).await.unwrap();

    let (handle, client, running) = start().await;
    assert_eq!(client.fetch_charm(&digest).await.unwrap(), archive, "its agents have it");
    assert!(!client.has_charm(&digest).await.unwrap(), "a client uploads it again");
    let uploaded = client.upload_charm(archive).await.unwrap();
    assert_eq!(uploaded.meta, inspected.meta);
    assert!(client.has_charm(&digest).await.unwrap());
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_no_charm_or_another_one_is_not_kept() {
    let fixture = Fixture::start().await;
    let error = fixture.client.upload_charm(Bytes::from_static(b"no zip")).await;
    assert_eq!(code_of(error), ErrorCode::CharmRefused);
    let other = Digest::of(b"another");
    let error = fixture.client.upload_charm_stream(&other, || stream::iter([Ok(charm())])).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains(&format!("not {other}")), "{error}");
    for digest in [other, Digest::of(b"no zip"), Digest::of(&charm())] {
        assert!(!fixture.client.has_charm(&digest).await.unwrap());
        assert_eq!(code_of(fixture.client.fetch_charm(&digest).await), ErrorCode::NotFound);
    }
    let agent = fixture.as_agent("one").client.upload_charm(charm()).await;
    assert_eq!(code_of(agent), ErrorCode::PermissionDenied);
    fixture.stop().await;
}

#[tokio::test]
async fn an_archive_is_served_in_ranges_and_never_twice() {
    let fixture = Fixture::start().await;
    let archive = charm();
    let digest = fixture.client.upload_charm(archive.clone()).await.unwrap().digest;
    let address = fixture.handle.address();
    let line = format!("GET /v1/charms/{digest}");
    let size = archive.len();

    let whole = raw::request(address, &line, &[], "").await;
    assert_eq!((whole.status, whole.body.as_slice()), (200, &archive[..]));
    let tag = whole.header("etag").unwrap().to_owned();
    assert!(whole.header("cache-control").unwrap().contains("immutable"));

    let part = raw::request(address, &line, &[("range", "bytes=10-19"), ("if-range", &tag)], "").await;
    assert_eq!((part.status, part.body.as_slice()), (206, &archive[10..20]));
    assert_eq!(part.header("content-range"), Some(format!("bytes 10-19/{size}").as_str()));

    let other = raw::request(address, &line, &[("range", "bytes=10-19"), ("if-range", "\"x\"")], "").await;
    assert_eq!((other.status, other.body.len()), (200, size));

    let known = raw::request(address, &line, &[("if-none-match", &tag)], "").await;
    assert_eq!((known.status, known.body.len()), (304, 0));

    let outside = raw::request(address, &line, &[("range", &format!("bytes={size}-"))], "").await;
    assert_eq!(outside.status, 416);
    assert_eq!(outside.header("content-range"), Some(format!("bytes */{size}").as_str()));
    assert_eq!(outside.header("content-type"), Some("application/problem+json"));

    let head = raw::request(address, &line.replace("GET", "HEAD"), &[], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(size.to_string().as_str()));
    fixture.stop().await;
}
