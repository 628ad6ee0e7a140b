//! The check of an object store before it is used: each thing that is wrong is one error in plain words.

use http::Method;
use periapt_blobs::{
    CredentialsFrom, S3Credentials, S3Options, SharedStore,
    testing::{Proxy, S3Fault, TestS3},
};
use periapt_transport::{Authority, ServerCertificate, server_config};

async fn refusal(options: &S3Options) -> String {
    let store = SharedStore::of(options).unwrap();
    store.check().await.unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_wrong_with_a_store_is_told_in_words_and_nothing_is_left_in_it() {
    let server = TestS3::start();
    let good = server.options("p");
    SharedStore::of(&good).unwrap().check().await.unwrap();

    let nobody = server.options_at("http://127.0.0.1:1", "p");
    assert!(refusal(&nobody).await.contains("the object store does not answer: "));
    let other_bucket = S3Options { url: "s3://other/p".parse().unwrap(), ..good.clone() };
    let text = refusal(&other_bucket).await;
    assert!(text.contains("there is no such bucket: make it first"), "{text}");
    for (key_id, secret, code) in
        [("nobody", "x", "InvalidAccessKeyId"), (server.user().0, "wrong", "SignatureDoesNotMatch")]
    {
        let given = S3Credentials { key_id: key_id.into(), secret: secret.into(), token: None };
        let options = S3Options { credentials: CredentialsFrom::Given(given), ..good.clone() };
        let text = refusal(&options).await;
        assert!(text.ends_with(&format!("the object store refuses the credentials ({code})")), "{text}");
        assert!(!text.contains("wrong"), "{text}");
    }
    let proxy = Proxy::before(server.endpoint(), None).await;
    let behind = server.options_at(proxy.url(), "p");
    for method in [Method::PUT, Method::GET, Method::DELETE] {
        proxy.fail(method, S3Fault::Denied, usize::MAX);
        let text = refusal(&behind).await;
        assert!(text.ends_with("may not list, read, write and delete objects there"), "{text}");
        proxy.heal();
    }
    proxy.fail(Method::GET, S3Fault::WrongBytes, 1);
    assert!(refusal(&behind).await.ends_with("is read back with other bytes"));
}

#[tokio::test]
async fn a_certificate_is_trusted_if_its_authority_was_given() {
    let server = TestS3::start();
    let authority = Authority::generate().unwrap();
    let address: std::net::IpAddr = "127.0.0.1".parse().unwrap();
    let (certificate, key) =
        authority.issue_server(&[address.into()], periapt_host_api::Timestamp::now()).unwrap();
    let shown = ServerCertificate::new(&certificate, &key).unwrap();
    let tls = server_config(&shown, authority.certificate()).unwrap();
    let proxy = Proxy::before(server.endpoint(), Some(tls)).await;
    let options = server.options_at(proxy.url(), "p");
    let trusting = |pem: &str| S3Options { authority: Some(pem.to_owned()), ..options.clone() };
    SharedStore::of(&trusting(authority.certificate())).unwrap().check().await.unwrap();
    for options in [options.clone(), trusting(Authority::generate().unwrap().certificate())] {
        let text = refusal(&options).await;
        assert!(
            text.contains("no trusted connection to the object store: its certificate is of an authority"),
            "{text}"
        );
        assert!(text.contains("--blobs-ca names one"), "{text}");
    }
    // A server without TLS, which is asked for it.
    let plain = server.options_at(&server.endpoint().replace("http:", "https:"), "p");
    let text = refusal(&plain).await;
    assert!(text.contains("no trusted connection to the object store: it does not speak TLS 1.3"), "{text}");
}
