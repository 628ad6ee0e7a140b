//! Connections with TLS and certificates of clients.

use std::fs;

use jiff::Timestamp;
use periapt_log::Log;
use periapt_log_etcd::{EtcdLog, EtcdOptions, EtcdTls, OpenError, testing::TestEtcd};
use periapt_transport::Authority;
use tempfile::TempDir;

use crate::fixture::{leading, opened_by_tls, options, refusal};

struct Certified {
    etcd: TestEtcd,
    authority: Authority,
    _files: TempDir,
}

/// Starts an etcd that serves TLS and asks for certificates of an authority.
fn certified() -> Certified {
    let (authority, files) = (Authority::generate().unwrap(), TempDir::new().unwrap());
    let names = ["127.0.0.1".parse().unwrap()];
    let (certificate, key) = authority.issue_server(&names, Timestamp::now()).unwrap();
    let file = |name: &str, text: &str| {
        fs::write(files.path().join(name), text).unwrap();
        files.path().join(name).display().to_string()
    };
    let arguments = [
        format!("--cert-file={}", file("server.pem", &certificate)),
        format!("--key-file={}", file("server-key.pem", &key)),
        format!("--trusted-ca-file={}", file("ca.pem", authority.certificate())),
        "--client-cert-auth".to_owned(),
    ];
    let etcd = TestEtcd::start_with(1, &arguments.each_ref().map(String::as_str));
    Certified { etcd, authority, _files: files }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_and_the_controller_know_each_other_by_certificates() {
    let Certified { etcd, authority, _files } = certified();
    let identity = authority.issue_controller("one", Timestamp::now()).unwrap();
    let tls = EtcdTls { authority: authority.certificate().to_owned(), identity: Some(identity) };
    let log = opened_by_tls(&etcd, tls).await;
    let leadership = leading(&log, "one").await;
    assert_eq!(log.confirm(leadership.term()).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_certificate_has_an_error_of_its_own() {
    let Certified { etcd, authority, _files } = certified();
    let other = Authority::generate().unwrap();
    let ca = authority.certificate();
    let tls = |ca: &str, identity| {
        let tls = EtcdTls { authority: ca.to_owned(), identity };
        EtcdOptions { tls: Some(tls), ..options(&etcd) }
    };
    let handshake = |error: OpenError, expected: &str| match &error {
        OpenError::Handshake(reason) => assert!(reason.contains(expected), "{reason}"),
        _ => panic!("{error}"),
    };
    let own = authority.issue_controller("one", Timestamp::now()).unwrap();
    handshake(refusal(&tls(other.certificate(), Some(own.clone()))).await, "another authority");
    handshake(refusal(&tls(ca, None)).await, "CertificateRequired");
    let stranger = other.issue_controller("one", Timestamp::now()).unwrap();
    handshake(refusal(&tls(ca, Some(stranger))).await, "refuses this controller's certificate");
    // Without TLS, etcd's answer is none.
    let mut plain = options(&etcd);
    plain.url.encryption = periapt_log_etcd::Encryption::Plain;
    assert!(matches!(refusal(&plain).await, OpenError::Unreachable(_)));
    // Texts that are no certificates are refused before a connection.
    for (ca, identity) in [("none", Some(own.clone())), (ca, Some(("none".to_owned(), own.1.clone())))] {
        let error = EtcdLog::open(&tls(ca, identity)).await.unwrap_err();
        assert!(matches!(error, OpenError::Tls(_)), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_without_tls_is_told_from_one_with_it() {
    let etcd = TestEtcd::start(1);
    let authority = Authority::generate().unwrap();
    let tls = EtcdTls { authority: authority.certificate().to_owned(), identity: None };
    let error = refusal(&EtcdOptions { tls: Some(tls), ..options(&etcd) }).await;
    assert!(matches!(error, OpenError::Handshake(_) | OpenError::Unreachable(_)), "{error}");
}
