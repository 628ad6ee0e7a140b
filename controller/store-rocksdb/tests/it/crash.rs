//! SIGKILL of a process whose store replaces its state: afterwards the store has one of the two states, and all of it.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use periapt_host_api::Revision;
use periapt_store::{LoadedState, Store as _};
use periapt_store_rocksdb::RocksStore;
use tempfile::TempDir;

use crate::directory::ID;

/// The variable by which the killed process, which is this program, is told its directory.
const DIRECTORY: &str = "PERIAPT_TEST_REPLACED_STORE";

/// The kills, and the time by which each comes later after the beginning of a replacement than the one before.
const KILLS: u32 = 12;
const LATER: Duration = Duration::from_millis(3);

/// The longest wait for a beginning, on a busy machine.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Returns the state of a revision: some MiB, so that a replacement has several batches, and that of a new store at 0.
fn state(revision: u64) -> LoadedState {
    if revision == 0 {
        return LoadedState::default();
    }
    let byte = u8::try_from(revision % 251).unwrap();
    let entity = |number: u64| (format!("{number:06}").into_bytes(), vec![byte; 1_024]);
    let entities = (0..4_000 + revision % 3 * 1_000).map(entity).collect();
    let note = Some(format!("note {revision}").into_bytes());
    LoadedState { revision: Revision(revision), entities, note }
}

/// Is the process to kill if the other test starts it, and passes otherwise.
#[tokio::test]
async fn a_process_replaces_states_until_it_is_killed() {
    let Some(place) = env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let store = RocksStore::open(&place.join("store"), ID).await.unwrap();
    let first = store.load().await.unwrap().revision.0;
    for revision in first + 1.. {
        let next = state(revision);
        store.unstage().await.unwrap();
        for part in next.entities.chunks(500) {
            store.stage(part.to_vec()).await.unwrap();
        }
        fs::write(place.join("staged"), "").unwrap();
        store.replace_by_staged(next.revision, next.note).await.unwrap();
        fs::remove_file(place.join("staged")).unwrap();
    }
}

#[tokio::test]
async fn a_store_whose_process_is_killed_while_it_replaces_its_state_has_a_whole_one() {
    let place = TempDir::new().unwrap();
    let staged = place.path().join("staged");
    let mut before = 0;
    for kill in 0..KILLS {
        let mut replacing = Command::new(env::current_exe().unwrap())
            .args(["--exact", "crash::a_process_replaces_states_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while !staged.exists() {
            assert!(replacing.try_wait().unwrap().is_none(), "it ended by itself");
            assert!(began.elapsed() < BEGINS_WITHIN, "no replacement began");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The kills are spread over a replacement.
        let began = Instant::now();
        while began.elapsed() < LATER * kill {
            std::thread::yield_now();
        }
        replacing.kill().unwrap();
        replacing.wait().unwrap();
        if staged.exists() {
            fs::remove_file(&staged).unwrap();
        }
        let store = RocksStore::open(&place.path().join("store"), ID).await.unwrap();
        let read = store.load().await.unwrap().whole().await.unwrap();
        assert!(read == state(read.revision.0), "kill {kill}: the state at {} is not whole", read.revision);
        assert!(read.revision.0 >= before, "kill {kill}: {} is older than {before}", read.revision);
        before = read.revision.0;
    }
}
