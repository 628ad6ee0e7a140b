//! Tests of the beginnings that stay.

use std::path::Path;

use super::*;

struct Bench {
    root: tempfile::TempDir,
    downloads: Arc<Downloads>,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let downloads = Downloads::in_directory(root.path().to_owned());
        Self { root, downloads }
    }

    /// Makes an attempt that breaks off after so many bytes more.
    async fn break_off(&self, key: DownloadKey, bytes: u64) {
        let mut download = self.downloads.begin(key).await.unwrap();
        download.content().append(&vec![7; bytes as usize]).await.unwrap();
    }

    /// Returns the bytes that stay of a content.
    fn kept(&self, key: DownloadKey) -> Option<u64> {
        self.downloads.state.lock().kept.get(&key).map(|kept| kept.parts.content.length())
    }

    fn files(&self) -> usize {
        files(self.root.path())
    }
}

fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn charm(number: u8) -> DownloadKey {
    DownloadKey::Charm(Digest::of(&[number]))
}

fn resource(model: u128) -> DownloadKey {
    DownloadKey::Resource(ModelUuid(uuid::Uuid::from_u128(model)), Digest::of(b"content"))
}

#[tokio::test]
async fn an_attempt_goes_on_where_the_last_one_ended_and_the_whole_file_leaves() {
    let bench = Bench::new();
    bench.break_off(charm(1), MIN_KEPT_BYTES).await;
    bench.break_off(charm(1), 5).await;
    assert_eq!((bench.kept(charm(1)), bench.files()), (Some(MIN_KEPT_BYTES + 5), 1));
    let mut download = bench.downloads.begin(charm(1)).await.unwrap();
    assert_eq!(bench.kept(charm(1)), None, "it is under way");
    download.content().append(b"end").await.unwrap();
    let (digest, file) = (download.content().digest(), download.end().await.unwrap());
    let bytes = std::fs::read(file.path()).unwrap();
    assert_eq!((bytes.len() as u64, Digest::of(&bytes)), (MIN_KEPT_BYTES + 8, digest));
    drop(file);
    assert_eq!((bench.kept(charm(1)), bench.files()), (None, 0));
}

#[tokio::test]
async fn what_was_cleared_or_is_small_does_not_stay() {
    let bench = Bench::new();
    bench.break_off(charm(1), MIN_KEPT_BYTES - 1).await;
    assert_eq!((bench.kept(charm(1)), bench.files()), (None, 0));
    bench.break_off(charm(1), MIN_KEPT_BYTES).await;
    let mut download = bench.downloads.begin(charm(1)).await.unwrap();
    download.content().clear().await.unwrap();
    assert_eq!((download.content().length(), download.content().digest()), (0, Digest::of(b"")));
    drop(download);
    assert_eq!((bench.kept(charm(1)), bench.files()), (None, 0));
}

#[tokio::test]
async fn each_model_has_beginnings_of_its_own() {
    let bench = Bench::new();
    bench.break_off(resource(1), MIN_KEPT_BYTES).await;
    let mut other = bench.downloads.begin(resource(2)).await.unwrap();
    assert_eq!(other.content().length(), 0);
    drop(other);
    assert_eq!(bench.kept(resource(1)), Some(MIN_KEPT_BYTES));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_beginnings_go_and_all_go_with_time_or_need() {
    let bench = Bench::new();
    for number in 0..=MAX_KEPT as u8 {
        bench.break_off(charm(number), MIN_KEPT_BYTES).await;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!((bench.kept(charm(0)), bench.files()), (None, MAX_KEPT));
    bench.downloads.retain(|key| *key != charm(1));
    assert_eq!((bench.kept(charm(1)), bench.files()), (None, MAX_KEPT - 1));

    // The sweeper removes each in its time, and a later beginning as well.
    let until = async |files: usize| {
        while bench.files() != files {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let began = Instant::now();
    until(0).await;
    assert!(began.elapsed() <= KEPT_FOR + Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(began.elapsed() >= KEPT_FOR - Duration::from_secs(MAX_KEPT as u64 + 1));
    bench.break_off(charm(1), MIN_KEPT_BYTES).await;
    until(0).await;
}
