//! Controllers whose etcd serves TLS and asks for certificates: the first one is given files, and the others learn all.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::ensure;
use periapt_host_api::Timestamp;
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::Installation;
use periapt_transport::Authority;

use crate::site::{Site, models, until};

/// Writes a file into a host's directory that its owner alone may read. Returns its path.
pub(crate) fn file(host: &Installation, name: &str, text: &str) -> anyhow::Result<String> {
    let path = host.path().join(name);
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(path.display().to_string())
}

/// Starts servers of etcd that have certificates of an authority, and ask their clients for such. Its own certificate is
/// `ca.pem` in the host's directory.
pub(crate) fn certified(
    host: &Installation,
    authority: &Authority,
    servers: usize,
) -> anyhow::Result<TestEtcd> {
    let (certificate, key) = authority.issue_server(&["127.0.0.1".parse()?], Timestamp::now())?;
    let server = [
        format!("--cert-file={}", file(host, "server.pem", &certificate)?),
        format!("--key-file={}", file(host, "server-key.pem", &key)?),
        format!("--trusted-ca-file={}", file(host, "ca.pem", authority.certificate())?),
        "--client-cert-auth".to_owned(),
    ];
    Ok(TestEtcd::start_with(servers, &server.each_ref().map(String::as_str)))
}

/// Writes a controller's certificate for etcd into a host's directory: `NAME.pem` and `NAME-key.pem`.
pub(crate) fn identity(host: &Installation, authority: &Authority, name: &str) -> anyhow::Result<()> {
    let (certificate, key) = authority.issue_controller(name, Timestamp::now())?;
    file(host, &format!("{name}.pem"), &certificate)?;
    file(host, &format!("{name}-key.pem"), &key)?;
    Ok(())
}

#[test]
fn an_etcd_that_asks_for_certificates_is_used_with_them_by_all_controllers() -> anyhow::Result<()> {
    let (host, authority) = (Installation::empty()?, Authority::generate()?);
    let etcd = certified(&host, &authority, 3)?;
    identity(&host, &authority, "own")?;
    let log = etcd.url().to_string();
    let plain = ["bootstrap", "local", "--no-agent", "--member", "one", "--log", &log];
    let encrypted: Vec<_> = plain
        .into_iter()
        .chain(["--log-ca", "ca.pem", "--log-cert", "own.pem", "--log-key", "own-key.pem"])
        .collect();
    until("the controller is bootstrapped", || Ok(host.run(&encrypted)?.code == Some(0)))?;

    let refused = host.refused(plain.map(|word| if word == "local" { "other" } else { word }))?;
    ensure!(refused.contains("no TLS connection with etcd"), "{refused}");
    fs::set_permissions(host.path().join("own-key.pem"), fs::Permissions::from_mode(0o644))?;
    let open = encrypted.iter().map(|word| if *word == "local" { "other" } else { word });
    let refused = host.refused(open)?;
    ensure!(refused.contains("own-key.pem"), "{refused}");
    fs::set_permissions(host.path().join("own-key.pem"), fs::Permissions::from_mode(0o600))?;

    let mut site = Site { etcd, hosts: vec![host.into()], agents: Vec::new() };
    site.join_on(Installation::empty()?, "two")?;
    site.host(1)?.ok(["add-model", "a"])?;
    for host in &site.hosts {
        until("the model is everywhere", || Ok(models(host)? == ["a"]))?;
    }
    // Each has what it needs for a start of its own.
    for number in [0, 1] {
        site.host(number)?.ok(["controller", "stop", "local"])?;
        site.host(number)?.ok(["controller", "start", "local"])?;
    }
    site.host(1)?.ok(["add-model", "b"])?;
    let keys = key_files(site.host(1)?.path())?;
    ensure!(!keys.is_empty(), "the second one keeps the key for etcd");
    for key in keys {
        ensure!(fs::metadata(&key)?.permissions().mode() & 0o077 == 0, "{} is its owner's", key.display());
    }
    Ok(())
}

/// Returns the files below a directory that hold a private key.
fn key_files(directory: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(key_files(&path)?);
        } else if path.is_file() && fs::read_to_string(&path).is_ok_and(|text| text.contains("PRIVATE KEY")) {
            found.push(path);
        }
    }
    Ok(found)
}
