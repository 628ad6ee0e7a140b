//! Blobs of two controllers that share an object store.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::Method;
use periapt_blobs::{
    Blob, BlobError, Blobs, SharedStore,
    testing::{Proxy, TestS3},
};
use periapt_host_api::{Digest, StoreId};
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) async fn read(blob: Blob) -> Vec<u8> {
    let pieces: Vec<_> = blob.content.map(|piece| piece.unwrap()).collect().await;
    pieces.concat()
}

pub(crate) async fn put(blobs: &Blobs, content: &[u8]) -> Digest {
    let digest = Digest::of(content);
    let mut incoming = blobs.begin(digest).await.unwrap();
    for piece in content.chunks(1 << 20) {
        incoming.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    incoming.finish().await.unwrap();
    digest
}

async fn spool(blobs: &Blobs, content: &[u8]) {
    let mut spool = blobs.spool().await.unwrap();
    spool.write(&Bytes::copy_from_slice(content)).await.unwrap();
    blobs.put_spooled(spool.end().await.unwrap()).await.unwrap();
}

fn large() -> Vec<u8> {
    (0..20_000_077_u32).map(|number| (number % 251) as u8).collect()
}

#[tokio::test]
async fn one_stores_blobs_of_any_size_and_the_other_reads_them_whole_and_in_ranges() {
    let (server, directory) = (TestS3::start(), TempDir::new().unwrap());
    let store = SharedStore::of(&server.options("some/prefix")).unwrap();
    store.check().await.unwrap();
    let one = Blobs::in_shared(&store, &directory.path().join("one")).unwrap();
    let two = Blobs::in_shared(&store, &directory.path().join("two")).unwrap();
    let (charms, resources) = (two.clone(), two.namespace("resources"));
    for content in [b"".to_vec(), b"0123456789".to_vec(), large()] {
        let digest = put(&one, &content).await;
        assert_eq!(two.size(&digest).await.unwrap(), Some(content.len() as u64));
        assert!(two.is_intact(&digest).await.unwrap());
        assert!(read(charms.get(&digest, None).await.unwrap().unwrap()).await == content);
        assert_eq!(resources.size(&digest).await.unwrap(), None, "namespaces are apart");
    }
    let digest = Digest::of(b"0123456789");
    let part = charms.get(&digest, Some(7..99)).await.unwrap().unwrap();
    assert_eq!((part.size, part.range.clone()), (10, 7..10));
    assert_eq!(read(part).await, b"789");
    assert!(matches!(charms.get(&digest, Some(10..11)).await, Err(BlobError::NoSuchRange { .. })));
    let missing = Digest::of(b"missing");
    assert!(charms.get(&missing, None).await.unwrap().is_none());
    assert!(!charms.is_intact(&missing).await.unwrap());

    let all = two.objects().await.unwrap();
    assert_eq!(all.len(), 3);
    for object in all {
        let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
        assert!(!object.is_old(now) && object.is_old(now + 25 * 3_600_000));
        one.delete_object(&object).await.unwrap();
        one.delete_object(&object).await.unwrap();
    }
    assert_eq!(two.digests().await.unwrap(), [].into());
}

#[tokio::test]
async fn a_blob_that_was_stored_a_short_while_ago_is_stored_once() {
    let (server, directory) = (TestS3::start(), TempDir::new().unwrap());
    let proxy = Proxy::before(server.endpoint(), None).await;
    let store = SharedStore::of(&server.options_at(proxy.url(), "p")).unwrap();
    let blobs = Blobs::in_shared(&store, directory.path()).unwrap();
    for content in [&b"small"[..], &large()] {
        put(&blobs, content).await;
        assert!(proxy.take_count(&Method::PUT, "") > 0);
        put(&blobs, content).await;
        spool(&blobs, content).await;
        assert_eq!(proxy.take_count(&Method::PUT, ""), 0);
        assert_eq!(
            blobs
                .objects()
                .await
                .unwrap()
                .iter()
                .filter(|object| object.digest == Digest::of(content))
                .count(),
            1
        );
    }
    // What comes is checked all the same.
    let mut incoming = blobs.begin(Digest::of(b"small")).await.unwrap();
    incoming.write(Bytes::from_static(b"other")).await.unwrap();
    assert!(matches!(incoming.finish().await, Err(BlobError::WrongDigest { .. })));
    let mut incoming = blobs.begin(Digest::of(b"another")).await.unwrap();
    incoming.write(Bytes::from_static(b"other")).await.unwrap();
    assert!(matches!(incoming.finish().await, Err(BlobError::WrongDigest { .. })));
    assert_eq!(blobs.size(&Digest::of(b"another")).await.unwrap(), None);
}

#[tokio::test]
async fn a_blob_is_fetched_once_for_many_readers_and_again_when_the_cache_has_lost_it() {
    let (server, directory) = (TestS3::start(), TempDir::new().unwrap());
    let proxy = Proxy::before(server.endpoint(), None).await;
    let store = SharedStore::of(&server.options_at(proxy.url(), "p")).unwrap().caching(10);
    let blobs = Blobs::in_shared(&store, directory.path()).unwrap();
    let (one, two) = (put(&blobs, b"one").await, put(&blobs, b"larger than the cache").await);
    let reads = (0..8).map(|_| async { read(blobs.get(&one, None).await.unwrap().unwrap()).await });
    for content in futures_util::future::join_all(reads).await {
        assert_eq!(content, b"one");
    }
    let fetched = |digest: &Digest| proxy.take_count(&Method::GET, &format!("{digest}/"));
    assert_eq!(fetched(&one), 1);
    assert_eq!(read(blobs.get(&two, None).await.unwrap().unwrap()).await, b"larger than the cache");
    proxy.take_count(&Method::GET, "");
    assert_eq!(read(blobs.get(&two, None).await.unwrap().unwrap()).await, b"larger than the cache");
    assert_eq!(fetched(&two), 0, "one blob alone may be larger");
    assert_eq!(read(blobs.get(&one, None).await.unwrap().unwrap()).await, b"one");
    assert_eq!(fetched(&one), 1);
    // A file that something has damaged is not used after a restart.
    std::fs::write(directory.path().join(format!("charms-{one}")), b"onE").unwrap();
    let blobs = Blobs::in_shared(&store, directory.path()).unwrap();
    assert_eq!(read(blobs.get(&one, None).await.unwrap().unwrap()).await, b"one");
}

#[tokio::test]
async fn a_place_belongs_to_one_set_of_controllers() {
    let (server, directory) = (TestS3::start(), TempDir::new().unwrap());
    let store = SharedStore::of(&server.options("p")).unwrap();
    store.is_free().await.unwrap();
    let blobs = Blobs::in_shared(&store, directory.path()).unwrap();
    let (own, other) = (StoreId(Uuid::from_u128(1)), StoreId(Uuid::from_u128(2)));
    blobs.claim(own).await.unwrap();
    blobs.claim(own).await.unwrap();
    let error = blobs.claim(other).await.unwrap_err().to_string();
    assert!(error.contains(&format!("holds the blobs of the store {own}")), "{error}");
    assert!(error.contains("delete the object p/periapt-store"), "{error}");
    assert!(store.is_free().await.is_err());
    let elsewhere = SharedStore::of(&server.options("p2")).unwrap();
    Blobs::in_shared(&elsewhere, directory.path()).unwrap().claim(other).await.unwrap();
}
