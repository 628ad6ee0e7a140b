//! Many uploads at once, some of them slow, and failing helpers.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use periapt_client::{Client, Identity};
use periapt_controller::Program;
use periapt_host_api::{
    Digest, ErrorCode, UserName, access::ControllerAccess, command::ControllerCommand, user::NewUser,
};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinSet};

use crate::{
    fixture::{Fixture, TIMEOUT, charm, charm_with_resources, code_of, in_directory, larger_charm, run},
    raw,
};

#[tokio::test]
async fn senders_that_stall_keep_no_other_out() {
    let fixture = Fixture::start().await;
    let address = fixture.handle.address();
    let digest = Digest::of(b"never sent");
    let mut stalled = Vec::new();
    for kind in ["charms", "resources"] {
        for _ in 0..20 {
            stalled.push(raw::stalled(address, &format!("PUT /v1/{kind}/{digest}")).await);
        }
    }
    let uploaded = tokio::time::timeout(TIMEOUT, fixture.client.upload_charm(charm())).await;
    uploaded.unwrap().unwrap();
    let content = || stream::iter([Ok(Bytes::from_static(b"rows"))]);
    let digest = Digest::of(b"rows");
    let uploaded = tokio::time::timeout(TIMEOUT, fixture.client.upload_resource(&digest, content)).await;
    uploaded.unwrap().unwrap();
    drop(stalled);
    fixture.stop().await;
}

/// Starts an upload that stalls until `go`, and then ends without its rest.
fn held(client: &Client, go: &watch::Sender<bool>) -> impl Future<Output = ErrorCode> + use<> {
    let (client, go) = (client.clone(), go.subscribe());
    async move {
        let content = move || {
            let mut go = go.clone();
            let rest = stream::once(async move {
                let _ = go.wait_for(|go| *go).await;
                Ok(Bytes::new())
            });
            stream::iter([Ok(Bytes::from_static(b"PK"))]).chain(rest)
        };
        code_of(client.upload_charm_stream(&Digest::of(b"never sent"), content).await)
    }
}

#[tokio::test]
async fn what_a_busy_controller_refuses_is_sent_again_until_it_is_taken() {
    let fixture = Fixture::start().await;
    let options = periapt_client::Options::new(fixture.handle.url(), Identity::Local);
    let patient = Client::new(options.with_busy_retry_timeout(TIMEOUT)).unwrap();
    let go = watch::Sender::new(false);
    let mut uploads = JoinSet::new();
    // More than one connection may have: the surplus is refused, and tried again.
    for _ in 0..12 {
        uploads.spawn(held(&patient, &go));
    }
    let impatient = Client::new(periapt_client::Options::new(fixture.handle.url(), Identity::Local)).unwrap();
    impatient.upload_charm(charm()).await.unwrap();
    let taken = tokio::spawn({
        let patient = patient.clone();
        async move { patient.upload_charm(larger_charm()).await }
    });
    go.send_replace(true);
    for code in tokio::time::timeout(TIMEOUT, uploads.join_all()).await.unwrap() {
        // Each upload arrived with another digest than its path says.
        assert_eq!(code, ErrorCode::BadRequest);
    }
    tokio::time::timeout(TIMEOUT, taken).await.unwrap().unwrap().unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn past_the_bound_a_connection_is_told_when_to_come_again() {
    let fixture = Fixture::start().await;
    let go = watch::Sender::new(false);
    let mut uploads = JoinSet::new();
    for _ in 0..9 {
        uploads.spawn(held(&fixture.client, &go));
    }
    // While nothing else goes on, only refused uploads can end.
    let first = tokio::time::timeout(TIMEOUT, uploads.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(first, ErrorCode::TooManyRequests);
    go.send_replace(true);
    for code in tokio::time::timeout(TIMEOUT, uploads.join_all()).await.unwrap() {
        assert_eq!(code, ErrorCode::BadRequest);
    }
    fixture.stop().await;
}

/// Sends an upload with one piece at once, and then one byte after the other without end.
async fn drips(client: Client, piece: usize) -> ErrorCode {
    let content = move || {
        let first = stream::iter([Ok(Bytes::from(vec![b'x'; piece]))]);
        first.chain(stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(Bytes::from_static(b"x"))
        }))
    };
    code_of(client.upload_charm_stream(&Digest::of(b"never whole"), content).await)
}

#[tokio::test]
async fn an_upload_that_drips_after_it_has_sent_much_is_broken_off_and_leaves_its_place() {
    let directory = TempDir::new().unwrap();
    let mut options = in_directory(&directory.path().join("controller"));
    options.upload_progress_within = Duration::from_secs(1);
    let (handle, client, _running) = run(options).await;
    let mut uploads = JoinSet::new();
    // The most that one connection may have.
    for _ in 0..8 {
        uploads.spawn(drips(client.clone(), 8 << 20));
    }
    for code in tokio::time::timeout(TIMEOUT, uploads.join_all()).await.unwrap() {
        assert_eq!(code, ErrorCode::TryAgain);
    }
    let digest = Digest::of(b"never whole");
    assert!(!client.has_charm(&digest).await.unwrap());
    tokio::time::timeout(TIMEOUT, client.upload_charm(charm())).await.unwrap().unwrap();
    handle.shutdown();
}

#[tokio::test]
async fn forty_uploads_of_four_charms_at_once_all_succeed() {
    let fixture = Fixture::start().await;
    let other = edition(&charm());
    let charms = [charm(), larger_charm(), charm_with_resources(), other];
    let mut uploads = JoinSet::new();
    for number in 0..40 {
        let archive = charms[number % charms.len()].clone();
        let options = periapt_client::Options::new(fixture.handle.url(), Identity::Local);
        let client = Client::new(options).unwrap();
        uploads.spawn(async move { client.upload_charm(archive).await });
    }
    for uploaded in tokio::time::timeout(TIMEOUT, uploads.join_all()).await.unwrap() {
        uploaded.unwrap();
    }
    assert_eq!(fixture.archives(), charms.len());
    fixture.stop().await;
}

/// Returns the same archive with a comment at its end.
fn edition(archive: &Bytes) -> Bytes {
    [&archive[..archive.len() - 2], &[1, 0, b'x']].concat().into()
}

/// Starts a controller whose helper is a shell with this script.
async fn with_helper(directory: &TempDir, script: String) -> (periapt_controller::Handle, Client) {
    let mut options = in_directory(&directory.path().join("controller"));
    let arguments = vec!["-c".into(), script.into()];
    options.check_helper = Program { path: "/bin/sh".into(), arguments, environment: Vec::new() };
    let (handle, client, _running) = run(options).await;
    (handle, client)
}

#[tokio::test]
async fn a_helper_that_dies_is_a_refusal_and_one_that_cannot_be_started_is_told_at_once() {
    let directory = TempDir::new().unwrap();
    let (handle, client) = with_helper(&directory, "ulimit -c 0; kill -SEGV $$".to_owned()).await;
    let error = client.upload_charm(charm()).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::CharmRefused);
    assert_eq!(
        refusal.message,
        "checking the charm failed: it ended with signal: 11 (SIGSEGV): a limit of memory or time, or a defect"
    );
    handle.shutdown();

    let directory = TempDir::new().unwrap();
    let mut options = in_directory(directory.path());
    options.check_helper.path = PathBuf::from("/nonexistent");
    let (handle, client, _running) = run(options).await;
    // A client with retries does not send the archive again and again either.
    let options = periapt_client::Options::new(handle.url(), Identity::Local);
    let patient = Client::new(options.with_busy_retry_timeout(10 * TIMEOUT)).unwrap();
    let error = tokio::time::timeout(TIMEOUT, patient.upload_charm(charm())).await.unwrap().unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::Internal);
    assert!(refusal.message.starts_with("the controller cannot check charms: "), "{refusal}");
    let line = format!("PUT /v1/charms/{}", Digest::of(b"x"));
    let told = raw::request(handle.address(), &line, &[], "x").await;
    assert_eq!((told.status, told.header("retry-after")), (500, None));
    assert!(!client.has_charm(&Digest::of(&charm())).await.unwrap());
    handle.shutdown();
}

/// Returns the most helpers that ran at the same time, from their log.
fn most_at_once(log: &Path) -> usize {
    let mut running = 0_usize;
    let text = fs::read_to_string(log).unwrap();
    let counts = text.lines().map(|line| {
        running = if line == "begin" { running + 1 } else { running - 1 };
        running
    });
    counts.max().unwrap()
}

#[tokio::test]
async fn however_many_uploads_there_are_two_are_checked_at_a_time() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let work = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done";
    let script = format!(
        "echo begin >> {log}; cat > {log}.$$; {work}; echo end >> {log}; echo no >&2; exit 1",
        log = log.display()
    );
    let (handle, client) = with_helper(&directory, script).await;
    let client = Arc::new(client);
    let mut uploads = JoinSet::new();
    for number in 0..8_u8 {
        let client = Arc::clone(&client);
        uploads.spawn(async move { code_of(client.upload_charm(vec![number].into()).await) });
    }
    for code in tokio::time::timeout(Duration::from_secs(120), uploads.join_all()).await.unwrap() {
        assert_eq!(code, ErrorCode::CharmRefused);
    }
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 16);
    assert!(most_at_once(&log) <= 2, "{} at once", most_at_once(&log));
    handle.shutdown();
}

#[tokio::test]
async fn a_user_whose_checks_take_long_holds_up_no_other() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str| directory.path().join(name);
    let (slow, go) = (file("slow"), file("go"));
    let script = format!(
        "if grep -q slow; then echo >> {slow}; until [ -e {go} ]; do sleep 0.1; done; fi; echo no >&2; exit 1",
        slow = slow.display(),
        go = go.display()
    );
    let (handle, client) = with_helper(&directory, script).await;
    let mut uploads = JoinSet::new();
    for number in 0..8 {
        // Each over a connection of its own.
        let client = Client::new(periapt_client::Options::new(handle.url(), Identity::Local)).unwrap();
        uploads.spawn(async move { code_of(client.upload_charm(format!("slow {number}").into()).await) });
    }
    while !slow.exists() {
        tokio::task::yield_now().await;
    }
    let name = UserName::new("other").unwrap();
    client.add_user(&NewUser { name: name.clone(), display_name: String::new() }).await.unwrap();
    let access = ControllerAccess::Superuser;
    client
        .controller_command(ControllerCommand::GrantController { user: name.clone(), access })
        .await
        .unwrap();
    let other = Client::new(periapt_client::Options::new(handle.url(), Identity::User(name))).unwrap();
    let quick = tokio::time::timeout(TIMEOUT, other.upload_charm(Bytes::from_static(b"quick"))).await;
    assert_eq!(code_of(quick.unwrap()), ErrorCode::CharmRefused);
    assert_eq!(fs::read_to_string(&slow).unwrap().lines().count(), 1, "one archive of a user at a time");
    fs::write(&go, "").unwrap();
    for code in tokio::time::timeout(TIMEOUT, uploads.join_all()).await.unwrap() {
        assert_eq!(code, ErrorCode::CharmRefused);
    }
    handle.shutdown();
}

#[tokio::test]
async fn uploads_that_bring_no_byte_take_no_place() {
    let fixture = Fixture::start().await;
    let address = fixture.handle.address();
    let mut silent = Vec::new();
    // The counts are above the bounds of each kind.
    for (kind, count) in [("charms", 260), ("resources", 130)] {
        for number in 0..count {
            let digest = Digest::of(format!("{number}").as_bytes());
            silent.push(raw::silent(address, &format!("PUT /v1/{kind}/{digest}")).await);
        }
    }
    fixture.client.upload_charm(charm()).await.unwrap();
    let content = || stream::iter([Ok(Bytes::from_static(b"rows"))]);
    fixture.client.upload_resource(&Digest::of(b"rows"), content).await.unwrap();
    drop(silent);
    fixture.stop().await;
}

/// Returns the files below a directory that have this name.
fn named(directory: &Path, name: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => named(&path, name),
            false => Vec::from_iter(path.ends_with(name).then_some(path)),
        })
        .collect()
}

#[tokio::test]
async fn a_damaged_charm_or_resource_is_not_there_and_is_replaced_by_uploading_it_again() {
    let fixture = Fixture::start().await;
    let (archive, rows) = (charm(), Bytes::from_static(b"rows"));
    let content = || stream::iter([Ok(Bytes::from_static(b"rows"))]);
    for content_of in [&archive, &rows] {
        let digest = Digest::of(content_of);
        let is_charm = *content_of == archive;
        let upload = async || match is_charm {
            true => fixture.client.upload_charm(archive.clone()).await.map(drop),
            false => fixture.client.upload_resource(&digest, content).await.map(drop),
        };
        let has = async || match is_charm {
            true => fixture.client.has_charm(&digest).await.unwrap(),
            false => fixture.client.has_resource(&digest).await.unwrap(),
        };
        upload().await.unwrap();
        assert!(has().await);
        let mut flipped = content_of.to_vec();
        flipped[2] ^= 1;
        let paths = named(fixture.blobs(), &digest.to_string());
        assert_eq!(paths.len(), 1, "{paths:?}");
        for damaged in [&flipped[..], &content_of[..2]] {
            fs::write(&paths[0], damaged).unwrap();
            assert!(!has().await);
            upload().await.unwrap();
            assert!(has().await);
            assert!(fs::read(&paths[0]).unwrap() == content_of[..]);
        }
    }
    fixture.stop().await;
}
