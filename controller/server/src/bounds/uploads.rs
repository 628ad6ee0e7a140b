//! Bounds on running uploads: their number and their bytes, for one connection and for all.
//!
//! The controller counts connections, because it cannot tell callers apart by the names that they give. One
//! connection holds at most a quarter of all bytes, and one of its archives is checked at a time: a caller that fills
//! its share and then sends slowly leaves room for others. An upload is counted from its first bytes on, and is ended
//! if it is slower than `api/body.rs` requires. Several connections together can still take everything:
//! `docs/security.md`.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ErrorCode, Refusal};
use tokio::sync::Semaphore;

/// The bounds for uploads of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most uploads over one connection.
    of_connection: usize,
    /// The most uploads over all connections.
    all: usize,
    /// The most bytes on the disk, of all uploads together.
    bytes: u64,
}

/// The divisor for the bytes of one connection. A quarter is enough for the largest upload of each kind.
const SHARE: u64 = 4;

impl Bounds {
    /// Archives: eight of the largest size, or some hundred of the usual size.
    pub(crate) const CHARMS: Self = Self { of_connection: 8, all: 256, bytes: 1 << 30 };
    /// Content of resources: four of the largest size.
    pub(crate) const RESOURCES: Self = Self { of_connection: 4, all: 64, bytes: 4 << 30 };
}

/// Uploads of one kind. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Uploads {
    bounds: Bounds,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: BTreeMap<u64, Connection>,
    bytes: u64,
}

/// The uploads of one connection.
#[derive(Debug)]
struct Connection {
    uploads: usize,
    bytes: u64,
    turn: Arc<Semaphore>,
}

impl Default for Connection {
    fn default() -> Self {
        Self { uploads: 0, bytes: 0, turn: Arc::new(Semaphore::new(1)) }
    }
}

/// The reservation of one upload. Dropping it releases its bytes.
#[derive(Debug)]
pub(crate) struct Upload {
    uploads: Uploads,
    /// The connection's number.
    peer: u64,
    bytes: u64,
    turn: Arc<Semaphore>,
}

impl Uploads {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, taken: Arc::default() }
    }

    /// Admits an upload.
    ///
    /// # Errors
    /// Too many uploads are running.
    pub(crate) fn begin(&self, peer: u64) -> Result<Upload, Refusal> {
        let Bounds { of_connection, all, .. } = self.bounds;
        let mut taken = self.lock();
        let own = taken.of.get(&peer).map_or(0, |own| own.uploads);
        if own >= of_connection {
            return Err(full(format!("{own} uploads of this connection are under way")));
        }
        if taken.all >= all {
            return Err(full(format!("{all} uploads are under way")));
        }
        taken.all += 1;
        let connection = taken.of.entry(peer).or_default();
        connection.uploads += 1;
        let turn = Arc::clone(&connection.turn);
        drop(taken);
        Ok(Upload { uploads: self.clone(), peer, bytes: 0, turn })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing can panic between the changes of two counts.
        self.taken.lock()
    }
}

impl Upload {
    /// Reserves bytes that this upload is about to write to disk.
    ///
    /// # Errors
    /// The uploads of this connection, or all uploads, hold too many bytes.
    pub(crate) fn hold(&mut self, more: usize) -> Result<(), Refusal> {
        let (most, more) = (self.uploads.bounds.bytes, more as u64);
        let mut taken = self.uploads.lock();
        let of_all = taken.bytes.saturating_add(more);
        let connection = taken.of.entry(self.peer).or_default();
        let own = connection.bytes.saturating_add(more);
        if own > most / SHARE {
            return Err(full(format!("{} MiB of this connection's uploads are held", (most / SHARE) >> 20)));
        }
        if of_all > most {
            return Err(full(format!("{} MiB of uploads are held", most >> 20)));
        }
        connection.bytes = own;
        taken.bytes = of_all;
        drop(taken);
        self.bytes += more;
        Ok(())
    }

    /// Returns the semaphore with the connection's single permit for checks, which run one after the other.
    pub(crate) fn turn(&self) -> &Semaphore {
        &self.turn
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut taken = self.uploads.lock();
        taken.all = taken.all.saturating_sub(1);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        match taken.of.get_mut(&self.peer) {
            Some(own) if own.uploads > 1 => {
                own.uploads -= 1;
                own.bytes = own.bytes.saturating_sub(self.bytes);
            }
            _ => drop(taken.of.remove(&self.peer)),
        }
    }
}

fn full(what: String) -> Refusal {
    Refusal::new(ErrorCode::TooManyRequests, format!("{what}, which is the most; try again later"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_takes_all_its_permits_keeps_no_other_out() {
        let uploads = Uploads::new(Bounds { of_connection: 2, all: 3, bytes: 10 });
        let mut held: Vec<_> = (0..2).map(|_| uploads.begin(1).unwrap()).collect();
        let refusal = uploads.begin(1).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooManyRequests);
        assert!(refusal.message.starts_with("2 uploads of this connection are under way"), "{refusal}");
        held.push(uploads.begin(2).unwrap());
        let refusal = uploads.begin(3).unwrap_err();
        assert!(refusal.message.starts_with("3 uploads are under way"), "{refusal}");
        held.remove(0);
        held.push(uploads.begin(3).unwrap());
        held.clear();
        let taken = uploads.lock();
        assert!(taken.all == 0 && taken.of.is_empty() && taken.bytes == 0, "{taken:?}");
    }

    #[test]
    fn what_is_held_of_all_uploads_is_bounded_and_given_back() {
        let uploads = Uploads::new(Bounds { of_connection: 8, all: 8, bytes: 40 });
        let mut held: Vec<_> = (0..5).map(|port| uploads.begin(port).unwrap()).collect();
        for upload in &mut held[..4] {
            upload.hold(9).unwrap();
        }
        assert_eq!(held[4].hold(5).unwrap_err().code, ErrorCode::TooManyRequests);
        held[4].hold(4).unwrap();
        drop(held.remove(0));
        held[3].hold(6).unwrap();
    }

    #[test]
    fn a_connection_whose_uploads_stall_after_much_leaves_room_for_others() {
        for (bounds, largest) in [
            (Bounds::CHARMS, periapt_host_api::api::MAX_ARCHIVE_BYTES),
            (Bounds::RESOURCES, periapt_host_api::resource::MAX_RESOURCE_BYTES),
        ] {
            let uploads = Uploads::new(bounds);
            let largest = usize::try_from(largest).unwrap();
            let mut stalled: Vec<_> = (0..bounds.of_connection).map(|_| uploads.begin(1).unwrap()).collect();
            let held = stalled.iter_mut().filter_map(|upload| upload.hold(largest).ok()).count();
            assert!(held >= 1, "the largest upload fits");
            let refusal = stalled[held].hold(largest).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::TooManyRequests);
            assert!(refusal.message.contains("MiB of this connection's uploads are held"), "{refusal}");
            for port in [2, 3] {
                uploads.begin(port).unwrap().hold(largest).unwrap();
            }
            // Released bytes can be reserved again.
            drop(stalled.remove(0));
            stalled[held].hold(largest).unwrap();
            drop(stalled);
            assert_eq!(uploads.lock().bytes, 0);
        }
    }
}
