//! Downloads that go on where their connection broke.

use std::{
    fs::File,
    net::SocketAddr,
    os::unix::fs::FileExt as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use periapt_blobs::{SharedStore, testing::TestS3};
use periapt_client::{Client, ClientError, Identity, Options, PartialFile};
use periapt_host_api::{Digest, ErrorCode, resource::ResourceKey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::{
    fixture::{Fixture, code_of, larger_charm, unit},
    resources::{attach, deployed, upload},
    set::Set,
};

/// The bytes of the content of these tests.
const CONTENT: usize = 6 << 20;

/// A file for a download, and a reader of it.
pub(crate) struct DownloadedFile {
    pub(crate) partial: PartialFile,
    reader: File,
}

impl DownloadedFile {
    pub(crate) fn empty() -> Self {
        let reader = tempfile::tempfile().unwrap();
        let file = tokio::fs::File::from_std(reader.try_clone().unwrap());
        Self { partial: PartialFile::empty(file), reader }
    }

    /// Returns a file with the beginning of a content.
    async fn beginning_with(bytes: &[u8]) -> Self {
        let mut file = Self::empty();
        file.partial.append(bytes).await.unwrap();
        file
    }

    /// Returns the bytes that have arrived.
    pub(crate) async fn bytes(&mut self) -> Vec<u8> {
        self.partial.sync().await.unwrap();
        let size = self.reader.metadata().unwrap().len();
        assert_eq!(size, self.partial.length(), "there is nothing behind what has arrived");
        let mut bytes = vec![0; size as usize];
        self.reader.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }
}

/// A line to a controller. Each connection passes so many bytes of answers, and ends.
struct ShortLine {
    url: String,
    /// The bytes of answers that all connections have passed.
    passed: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl ShortLine {
    async fn to(controller: SocketAddr, most: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let passed = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&passed);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(controller).await else { continue };
                let counter = Arc::clone(&counter);
                tokio::spawn(async move { forward(client, server, most, &counter).await });
            }
        });
        Self { url, passed, accepting }
    }

    fn client(&self, identity: Identity) -> Client {
        Client::new(Options::new(&self.url, identity)).unwrap()
    }

    fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }
}

impl Drop for ShortLine {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, most: u64, passed: &AtomicU64) {
    let (mut asking, mut asked) = client.split();
    let (answering, mut answered) = server.split();
    let answers = async {
        let (mut answers, mut piece) = (answering.take(most), vec![0; 16 << 10]);
        while let Ok(read @ 1..) = answers.read(&mut piece).await {
            // It is counted before the client has it, and looks at the count.
            passed.fetch_add(read as u64, Ordering::SeqCst);
            if asked.write_all(&piece[..read]).await.is_err() {
                break;
            }
        }
        // The client sees the end, or has gone.
        let _ = asked.shutdown().await;
    };
    tokio::select! {
        _ = tokio::io::copy(&mut asking, &mut answered) => {}
        () = answers => {}
    }
    // A connection that is closed with requests unread is reset, and the client loses the last bytes of its answers.
    let _ = tokio::io::copy(&mut asking, &mut tokio::io::sink()).await;
}

fn content() -> Vec<u8> {
    (0..CONTENT).map(|at| (at % 251) as u8).collect()
}

fn key(content: &[u8]) -> ResourceKey {
    ResourceKey { name: "data".parse().unwrap(), digest: Digest::of(content) }
}

#[tokio::test]
async fn a_download_over_a_line_that_breaks_again_and_again_passes_each_byte_about_once() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let content = content();
    upload(&fixture.client, &content).await.unwrap();
    attach(&model, &content).await.unwrap();
    let line = ShortLine::to(fixture.handle.address(), CONTENT as u64 / 5).await;
    let client = line.client(Identity::Agent(agent.name.clone()));
    let (of, key, mut file) = (unit("stocked/0"), key(&content), DownloadedFile::empty());
    let (mut had, mut broken) = (0, 0_u32);
    while let Err(error) =
        client.fetch_unit_resource(&agent.name, &model.uuid, &of, &key, &mut file.partial).await
    {
        assert!(error.is_temporary(), "{error}");
        assert!(file.partial.length() >= had, "what has arrived stays");
        (had, broken) = (file.partial.length(), broken + 1);
        assert!(broken < 100, "{had} bytes after {broken} attempts");
    }
    assert!(broken >= 4, "no connection passes more than a fifth: {broken}");
    assert!(file.bytes().await == content);
    let (passed, size) = (line.passed(), CONTENT as u64);
    assert!(passed >= size && passed < size + size / 10, "{passed} of {size}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_beginning_that_is_of_no_use_is_fetched_again_once() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let content = content();
    upload(&fixture.client, &content).await.unwrap();
    attach(&model, &content).await.unwrap();
    let line = ShortLine::to(fixture.handle.address(), u64::MAX).await;
    let client = line.client(Identity::Agent(agent.name.clone()));
    let (of, key) = (unit("stocked/0"), key(&content));
    let half = CONTENT / 2;
    for (beginning, expected) in [
        (content[..half].to_vec(), half),
        (vec![7; half], half + CONTENT),
        // All of it, and more, is here: the range lies outside.
        (content.clone(), CONTENT),
        (vec![7; CONTENT + 1], CONTENT),
    ] {
        let (before, mut file) = (line.passed(), DownloadedFile::beginning_with(&beginning).await);
        client.fetch_unit_resource(&agent.name, &model.uuid, &of, &key, &mut file.partial).await.unwrap();
        assert!(file.bytes().await == content);
        let (passed, expected) = (line.passed() - before, expected as u64);
        assert!(passed >= expected && passed < expected + expected / 10, "{passed} of {expected}");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn the_rest_of_a_content_is_for_those_alone_who_may_have_all_of_it() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let content = content();
    upload(&fixture.client, &content).await.unwrap();
    let mut file = DownloadedFile::beginning_with(&content[..CONTENT / 2]).await;
    let (of, key) = (unit("stocked/0"), key(&content));
    // It is not attached.
    let refused =
        agent.client.fetch_unit_resource(&agent.name, &model.uuid, &of, &key, &mut file.partial).await;
    assert_eq!(code_of(refused), ErrorCode::PermissionDenied);
    assert_eq!(file.partial.length(), 0, "nothing of it is kept");
    fixture.stop().await;
}

#[tokio::test]
async fn a_content_that_is_damaged_in_the_store_leaves_no_beginning() {
    let fixture = Fixture::start().await;
    let (agent, model, _there) = deployed(&fixture).await;
    let content = content();
    upload(&fixture.client, &content).await.unwrap();
    attach(&model, &content).await.unwrap();
    let name = Digest::of(&content).to_string();
    let path = fixture.blobs().join("resources").join(&name[..2]).join(&name);
    let mut bytes = content.clone();
    bytes[CONTENT - 1] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    let (of, key) = (unit("stocked/0"), key(&content));
    let mut file = DownloadedFile::beginning_with(&content[..CONTENT / 2]).await;
    let damaged =
        agent.client.fetch_unit_resource(&agent.name, &model.uuid, &of, &key, &mut file.partial).await;
    assert!(matches!(damaged, Err(ClientError::Damaged { .. })), "{damaged:?}");
    assert_eq!(file.partial.length(), 0);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_comes_from_a_controller_that_fetches_the_blob_from_an_object_store_or_another_one() {
    let server = TestS3::start();
    let shared = Set::sharing(SharedStore::of(&server.options("some/prefix")).unwrap());
    for set in [shared, Set::new()] {
        let one = set.start("one").await;
        let digest = one.client.upload_charm(larger_charm()).await.unwrap().digest;
        // This one has nothing on its disk when it is asked, or a moment before.
        let two = set.start("two").await;
        let line = ShortLine::to(two.handle.address(), u64::MAX).await;
        let archive = larger_charm();
        let (beginning, rest) = archive.split_at(archive.len() / 2);
        let mut file = DownloadedFile::beginning_with(beginning).await;
        line.client(Identity::Local).fetch_charm_to(&digest, &mut file.partial).await.unwrap();
        assert!(file.bytes().await == archive);
        let (passed, rest) = (line.passed(), rest.len() as u64);
        assert!(passed >= rest && passed < rest + rest / 4, "{passed} of {rest}");
        one.stop().await;
        two.stop().await;
    }
}
