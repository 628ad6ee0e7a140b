//! Certificates of other authorities, which operators give their controllers.

use std::{fs, net::TcpStream, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use anyhow::Context as _;
use periapt_host_api::Timestamp;
use periapt_tests::Installation;
use periapt_transport::{Authority, ClientCertificate, PublicName, Trust, client_config};
use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};
use serde_json::Value;

/// A certificate for `localhost` with its key, in two files.
struct Given {
    authority: Authority,
    certificate: PathBuf,
    key: PathBuf,
}

impl Given {
    fn made(periapt: &Installation, name: &str, issued: Timestamp) -> anyhow::Result<Self> {
        let authority = Authority::generate()?;
        let names: [PublicName; 1] = ["localhost".parse()?];
        let (certificate, key) = authority.issue_server(&names, issued)?;
        let place = |end: &str| periapt.path().join(format!("{name}{end}"));
        let given = Self { authority, certificate: place(".pem"), key: place("-key.pem") };
        fs::write(&given.certificate, certificate)?;
        fs::write(&given.key, key)?;
        fs::set_permissions(&given.key, fs::Permissions::from_mode(0o600))?;
        Ok(given)
    }

    fn words(&self) -> anyhow::Result<[&str; 4]> {
        Ok([
            "--tls-cert",
            self.certificate.to_str().context("a path")?,
            "--tls-key",
            self.key.to_str().context("a path")?,
        ])
    }
}

/// Returns true if a client that trusts an authority accepts a server by a name.
fn accepts(port: u16, called: &'static str, authority: &str) -> anyhow::Result<bool> {
    let config = client_config(&Trust::Authority(authority.to_owned()), &ClientCertificate::default())?;
    let connection = ClientConnection::new(config, ServerName::try_from(called)?)?;
    let mut stream = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port))?);
    Ok(stream.conn.complete_io(&mut stream.sock).is_ok() && !stream.conn.is_handshaking())
}

#[test]
fn a_given_certificate_is_what_clients_and_agents_know_the_controller_by() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let given = Given::made(&periapt, "given", Timestamp::now())?;
    let bootstrap =
        ["bootstrap", "--listen", "127.0.0.1:0", "--public-name", "localhost", "--agent-name", "first"];
    periapt.ok([&bootstrap[..], &given.words()?].concat())?;
    let listing = periapt.json(["controllers"])?;
    let entry = &listing["controllers"]["local"];
    let url = entry["url"].as_str().context("no URL")?.to_owned();
    let port = url.strip_prefix("https://localhost:").context("another name")?.parse()?;
    let own = fs::read_to_string(periapt.path().join("data/controllers/local/controller/ca.pem"))?;
    assert_eq!(entry["ca-cert"], format!("{own}{}", given.authority.certificate()));
    for (called, authority, accepted) in [
        ("localhost", given.authority.certificate(), true),
        ("localhost", &own, false),
        ("127.0.0.1", &own, true),
    ] {
        assert_eq!(accepts(port, called, authority)?, accepted, "{called}");
    }

    periapt.ok(["agent-token", "second", "--output", "second.token"])?;
    let run = ["agent", "run", "--controller", &url, "--name", "second", "--data", "second"];
    for more in [&["--token-file", "second.token"][..], &[]] {
        let mut second = periapt.spawn([&run[..], more].concat())?;
        assert_eq!(second.first_line()?, "ready second");
        assert_eq!(second.end("TERM")?, Some(0));
    }
    // It is started again with the same files.
    periapt.ok(["controller", "stop"])?;
    periapt.ok(["controller", "start"])?;
    assert!(accepts(port, "localhost", given.authority.certificate())?);
    let is_alive = |agents: &Value| agents[0]["name"] == "first" && agents[0]["alive"] == true;
    periapt.json_until(&["agents"], is_alive)?;

    // It can be taken away again, even if its files are gone.
    let error = periapt.refused(["controller", "start", "--no-tls-cert"])?;
    assert!(
        error.contains("controller local is running, and keeps the options that it was started with"),
        "{error}"
    );
    periapt.ok(["controller", "stop"])?;
    fs::remove_file(&given.key)?;
    let error = periapt.refused(["controller", "start"])?;
    assert!(error.contains("given-key.pem: no such file") && error.contains("--no-tls-cert"), "{error}");
    let both = [&["controller", "start", "--no-tls-cert"][..], &given.words()?].concat();
    assert_eq!(periapt.run(both)?.code, Some(2));
    periapt.ok(["controller", "start", "--no-tls-cert"])?;
    assert!(accepts(port, "localhost", &own)?);
    assert!(!accepts(port, "localhost", given.authority.certificate())?);
    assert_eq!(periapt.json(["controllers"])?["controllers"]["local"]["ca-cert"], own);
    periapt.json_until(&["agents"], is_alive)?;
    let mut second = periapt.spawn(run)?;
    assert_eq!(second.first_line()?, "ready second", "an agent that joined by the name trusts both");
    assert_eq!(second.end("TERM")?, Some(0));
    periapt.ok(["controller", "stop"])?;
    periapt.ok(["controller", "start"])?;
    assert!(accepts(port, "localhost", &own)?, "it stays so");
    Ok(())
}

#[test]
fn a_certificate_that_clients_would_refuse_is_refused_with_its_reason() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let given = Given::made(&periapt, "given", Timestamp::now())?;
    let other = Given::made(&periapt, "other", Timestamp::now())?;
    let day = Duration::from_secs(24 * 60 * 60);
    let old = Given::made(&periapt, "old", Timestamp::now() - 97 * day)?;
    let run = |name: &str, [certificate, key]: [&PathBuf; 2]| -> anyhow::Result<String> {
        let mut words: Vec<&str> = vec!["controller", "run", "--data", "c", "--listen", "127.0.0.1:0"];
        if !name.is_empty() {
            words.extend(["--public-name", name]);
        }
        words.extend(["--tls-cert", certificate.to_str().context("a path")?]);
        words.extend(["--tls-key", key.to_str().context("a path")?]);
        periapt.refused(words)
    };
    let missing = periapt.path().join("none.pem");
    let alone = periapt.path().join("alone.pem");
    let chain = fs::read_to_string(&given.certificate)?;
    let end = chain.find("-----END CERTIFICATE-----").context("PEM")? + "-----END CERTIFICATE-----".len();
    fs::write(&alone, &chain[..end])?;
    let no_key = periapt.path().join("no-key.pem");
    fs::write(&no_key, &chain)?;
    fs::set_permissions(&no_key, fs::Permissions::from_mode(0o600))?;
    let directory = periapt.path().to_owned();
    let name = "localhost";
    for (name, files, told) in [
        (name, [&missing, &given.key], "none.pem: no such file"),
        (name, [&given.certificate, &missing], "none.pem: no such file"),
        (name, [&directory, &given.key], "Is a directory"),
        (name, [&given.key, &given.key], "no certificate in PEM form"),
        (name, [&given.certificate, &no_key], "no private key in PEM form"),
        (name, [&given.certificate, &other.key], "the certificate was made for another key"),
        (name, [&alone, &given.key], "the certificate was not issued by the last one of the file"),
        (name, [&old.certificate, &old.key], "the certificate expired 7 days ago"),
        (
            "node-1.example",
            [&given.certificate, &given.key],
            "the certificate is not for node-1.example, but for",
        ),
        ("", [&given.certificate, &given.key], "a certificate of one's own needs --public-name"),
        ("127.0.0.1", [&given.certificate, &given.key], "a certificate of one's own needs --public-name"),
    ] {
        let error = run(name, files)?;
        assert!(error.contains(told), "{name} {files:?}: {error}");
    }
    fs::set_permissions(&given.key, fs::Permissions::from_mode(0o640))?;
    let error = run(name, [&given.certificate, &given.key])?;
    assert!(error.contains("given-key.pem has mode 640, and others than its owner can reach it"), "{error}");
    let done = periapt.run(["bootstrap", "--tls-cert", "given.pem"])?;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("--tls-key"), "{done:?}");
    // A bootstrap that fails leaves nothing.
    let words =
        ["bootstrap", "--public-name", "localhost", "--tls-cert", "none.pem", "--tls-key", "none.pem"];
    let error = periapt.refused(words)?;
    assert!(error.contains("none.pem: no such file"), "{error}");
    assert_eq!(periapt.json(["controllers"])?["controllers"], serde_json::json!({}));
    Ok(())
}
