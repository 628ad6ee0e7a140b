//! Controllers that keep blobs in an object store: one that is left alone still takes charms, and serves all.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::ensure;
use periapt_blobs::testing::TestS3;
use periapt_tests::Installation;
use rustix::process::Signal;

use crate::site::{Site, archives, controller, end, until};

#[test]
fn a_controller_that_is_left_alone_takes_charms_into_the_object_store_and_serves_the_others()
-> anyhow::Result<()> {
    let server = TestS3::start();
    let first = Installation::empty()?;
    let credentials = first.path().join("s3.credentials");
    let (id, secret) = server.user();
    fs::write(
        &credentials,
        format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n"),
    )?;
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600))?;
    let blobs = ["--blobs", "s3://blobs/prod", "--blobs-endpoint", server.endpoint()];
    let elsewhere = ["--blobs", "s3://nowhere/prod", "--blobs-endpoint", server.endpoint()];
    let with = ["--blobs-credentials", "s3.credentials"];

    // What cannot be used is refused before anything is made.
    let refused = first.refused(["bootstrap", "local"].into_iter().chain(elsewhere).chain(with))?;
    ensure!(refused.contains("there is no such bucket"), "{refused}");
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o644))?;
    let refused = first.refused(["bootstrap", "local"].into_iter().chain(blobs).chain(with))?;
    ensure!(refused.contains("s3.credentials") && !refused.contains(secret), "{refused}");
    fs::set_permissions(&credentials, fs::Permissions::from_mode(0o600))?;
    ensure!(!first.path().join("data/controllers/local").exists(), "nothing is left of the attempts");

    let more = [&["--agent-name", "first"][..], &blobs, &with].concat();
    let mut site = Site::bootstrapped_on(first, &more)?;
    site.join_on(Installation::empty()?, "two")?;
    let [first, second] = [site.host(0)?, site.host(1)?];
    for host in [first, second] {
        let shown = controller(host)?;
        let place = shown.pointer("/details/blobs").and_then(serde_json::Value::as_str);
        ensure!(place.is_some_and(|place| place.starts_with("s3://blobs/prod")), "{shown}");
    }

    // A copy on another disk could not be made now. The agent of the first host goes to the second controller.
    end(first, Signal::KILL)?;
    second.ok(["add-model", "test"])?;
    second.deploy("mysql", [])?;
    second.wait_for(["model"])?;
    ensure!(archives(second)? == 0, "the charm is in the object store alone");

    // The first one comes back, and the second one goes for good: the charm stays.
    first.ok(["controller", "start", "local"])?;
    until("the first one has the model", || Ok(first.run(["switch", "test"])?.code == Some(0)))?;
    end(second, Signal::KILL)?;
    first.ok(["add-model", "more"])?;
    first.ok(["create-backup", "--no-keys", "--filename", "b.tar"])?;
    let backup = String::from_utf8_lossy(&fs::read(first.path().join("b.tar"))?).into_owned();
    ensure!(
        backup.contains("charms/"),
        "the backup has the charm, which the first one never had on its disk"
    );
    Ok(())
}
