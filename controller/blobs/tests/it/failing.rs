//! An object store that is slow, fails, or gives other bytes than it was given.

use std::{fs, time::Duration};

use bytes::Bytes;
use http::Method;
use object_store::{ObjectStoreExt as _, PutPayload};
use periapt_blobs::{
    BlobError, Blobs, S3Timeouts, SharedStore,
    testing::{Proxy, S3Fault, TestS3},
};
use periapt_host_api::Digest;
use tempfile::TempDir;

use crate::shared::{put, read};

struct Site {
    server: TestS3,
    proxy: Proxy,
    blobs: Blobs,
    directory: TempDir,
}

async fn site() -> Site {
    let (server, directory) = (TestS3::start(), TempDir::new().unwrap());
    let proxy = Proxy::before(server.endpoint(), None).await;
    let second = Duration::from_secs(1);
    let timeouts = S3Timeouts { connect: second, answer: second, piece: second };
    let options = periapt_blobs::S3Options { timeouts, ..server.options_at(proxy.url(), "p") };
    let blobs = Blobs::in_shared(&SharedStore::of(&options).unwrap(), directory.path()).unwrap();
    Site { server, proxy, blobs, directory }
}

impl Site {
    /// Returns the number of files in the cache.
    fn cached(&self) -> usize {
        fs::read_dir(self.directory.path()).unwrap().count()
    }
}

#[tokio::test]
async fn requests_that_fail_for_a_moment_are_sent_again() {
    let Site { proxy, blobs, .. } = &site().await;
    let content: Vec<u8> = (0..9_000_000_u32).map(|number| (number % 249) as u8).collect();
    for method in [Method::PUT, Method::POST] {
        proxy.fail(method, S3Fault::Busy, 2);
    }
    let digest = put(blobs, &content).await;
    proxy.fail(Method::GET, S3Fault::Busy, 2);
    proxy.fail(Method::GET, S3Fault::CutShort, 2);
    assert!(read(blobs.get(&digest, None).await.unwrap().unwrap()).await == content);
    proxy.heal();
    proxy.fail(Method::PUT, S3Fault::Silent, 1);
    put(blobs, b"sent again after a silence").await;
}

#[tokio::test]
async fn a_store_that_stays_busy_or_breaks_off_is_one_error_and_nothing_is_acknowledged_or_kept() {
    let site = site().await;
    let Site { proxy, blobs, .. } = &site;
    let digest = put(blobs, b"stored").await;
    proxy.fail(Method::PUT, S3Fault::Busy, usize::MAX);
    let mut incoming = blobs.begin(Digest::of(b"new")).await.unwrap();
    incoming.write(Bytes::from_static(b"new")).await.unwrap();
    let error = incoming.finish().await.unwrap_err().to_string();
    assert!(error.starts_with("the blobs in s3://blobs/p at http://127.0.0.1:"), "{error}");
    assert!(error.contains("503") && error.contains("SlowDown") && !error.contains('\n'), "{error}");
    assert!(!error.contains(site.server.user().1), "{error}");
    assert_eq!(blobs.size(&Digest::of(b"new")).await.unwrap(), None);
    proxy.fail(Method::GET, S3Fault::CutShort, usize::MAX);
    assert!(matches!(blobs.get(&digest, None).await, Err(BlobError::Shared { .. })));
    assert_eq!(site.cached(), 0, "nothing of it stays");
    proxy.heal();
    assert_eq!(read(blobs.get(&digest, None).await.unwrap().unwrap()).await, b"stored");
}

#[tokio::test]
async fn wrong_bytes_are_one_error_and_are_never_served_or_kept() {
    let site = site().await;
    let Site { server, blobs, .. } = &site;
    let digest = put(blobs, b"right").await;
    let bucket = server.bucket();
    let path = format!("p/charms/{}/{digest}/{}", &digest.to_string()[..2], "a".repeat(32));
    let key = object_store::path::Path::from(path.as_str());
    for wrong in [&b"wrong"[..], b"longer than it was", b"r", b""] {
        bucket.put(&key, PutPayload::from(wrong.to_vec())).await.unwrap();
        for object in blobs.objects().await.unwrap() {
            if object.size == 5 && wrong != b"wrong" {
                blobs.delete_object(&object).await.unwrap();
            }
        }
        if wrong == b"wrong" {
            // The other object is whole, and it is found.
            assert_eq!(read(blobs.get(&digest, None).await.unwrap().unwrap()).await, b"right");
            fs::remove_file(site.directory.path().join(format!("charms-{digest}"))).unwrap();
            continue;
        }
        let Err(error) = blobs.get(&digest, None).await else { panic!("{wrong:?} was served") };
        assert!(matches!(error, BlobError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("its bytes have another digest; upload it again"), "{error}");
        assert!(!blobs.is_intact(&digest).await.unwrap());
        assert_eq!(site.cached(), 0);
    }
    assert_eq!(put(blobs, b"right").await, digest);
    assert_eq!(read(blobs.get(&digest, None).await.unwrap().unwrap()).await, b"right");
}

#[tokio::test]
async fn an_object_that_never_ends_is_read_up_to_its_listed_size() {
    let site = site().await;
    let Site { proxy, blobs, .. } = &site;
    let digest = put(blobs, b"right").await;
    assert!(blobs.is_intact(&digest).await.unwrap(), "nothing is wrong yet");
    proxy.fail(Method::GET, S3Fault::Endless, 2);
    assert!(!blobs.is_intact(&digest).await.unwrap());
    let Err(error) = blobs.get(&digest, None).await else { panic!("an endless object was served") };
    assert!(matches!(error, BlobError::Damaged { .. }), "{error}");
    assert_eq!(site.cached(), 0);
}

#[tokio::test]
async fn an_object_that_is_missing_is_no_error() {
    let Site { blobs, .. } = &site().await;
    let digest = put(blobs, b"gone").await;
    blobs.delete(&digest).await.unwrap();
    blobs.delete(&digest).await.unwrap();
    assert!(blobs.get(&digest, None).await.unwrap().is_none());
    assert_eq!(blobs.readable_size(&digest).await.unwrap(), None);
}
