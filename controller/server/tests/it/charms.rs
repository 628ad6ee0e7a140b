//! Charm archives: checked on the way in, cached for ever on the way out.

use bytes::Bytes;
use futures_util::stream;
use periapt_host_api::{CharmDigest, ErrorCode};

use crate::{
    fixture::{Fixture, charm, code_of},
    raw,
};

#[tokio::test]
async fn an_archive_is_uploaded_once_and_fetched_by_whoever_knows_its_digest() {
    let fixture = Fixture::start().await;
    let digest = CharmDigest::of(&charm());
    assert!(!fixture.client.has_charm(&digest).await.unwrap());
    let uploaded = fixture.client.upload_charm(charm()).await.unwrap();
    assert_eq!((uploaded.digest, uploaded.meta.name.as_str()), (digest, "tiny"));
    assert!(fixture.client.has_charm(&digest).await.unwrap());
    let pieces: Vec<_> = charm().chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let again = fixture.client.upload_charm_stream(&digest, stream::iter(pieces)).await.unwrap();
    assert_eq!(again, uploaded);
    assert_eq!(fixture.as_agent("one").client.fetch_charm(&digest).await.unwrap(), charm());
    fixture.stop().await;
}

#[tokio::test]
async fn what_is_no_charm_or_another_one_is_not_kept() {
    let fixture = Fixture::start().await;
    let error = fixture.client.upload_charm(Bytes::from_static(b"no zip")).await;
    assert_eq!(code_of(error), ErrorCode::CharmRefused);
    let other = CharmDigest::of(b"another");
    let error = fixture.client.upload_charm_stream(&other, stream::iter([Ok(charm())])).await;
    let error = error.unwrap_err();
    assert!(error.to_string().contains(&format!("not {other}")), "{error}");
    for digest in [other, CharmDigest::of(b"no zip"), CharmDigest::of(&charm())] {
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
