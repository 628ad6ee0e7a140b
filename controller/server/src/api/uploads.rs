//! Uploads that are under way: how many of one caller, how many of all, and how much of them is held.
//!
//! Callers cannot be told apart by who they say they are, so a caller is a connection. What is bounded for all is far above
//! what callers need who come to an end, and what one of them sends slowly takes little of it: somebody who holds places
//! and sends nothing loses them soon (`body.rs`), and meanwhile others have theirs.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use periapt_host_api::{ErrorCode, Refusal};

use crate::api::caller::Peer;

/// What uploads of one kind may take together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most over one connection.
    of_connection: usize,
    /// The most over all.
    all: usize,
    /// The most bytes that are held of all, on the disk.
    bytes: u64,
}

impl Bounds {
    /// Archives: eight of the largest size, or some hundred of the usual.
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
    of: BTreeMap<SocketAddr, usize>,
    bytes: u64,
}

/// One upload, until it is dropped.
#[derive(Debug)]
pub(crate) struct Upload {
    uploads: Uploads,
    peer: SocketAddr,
    bytes: u64,
}

impl Uploads {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, taken: Arc::default() }
    }

    /// A place for an upload.
    ///
    /// # Errors
    /// Too many are under way.
    pub(crate) fn begin(&self, Peer(peer): Peer) -> Result<Upload, Refusal> {
        let Bounds { of_connection, all, .. } = self.bounds;
        let mut taken = self.lock();
        let own = taken.of.get(&peer).copied().unwrap_or_default();
        if own >= of_connection {
            return Err(full(format!("{own} uploads of this connection are under way")));
        }
        if taken.all >= all {
            return Err(full(format!("{all} uploads are under way")));
        }
        taken.all += 1;
        taken.of.insert(peer, own + 1);
        drop(taken);
        Ok(Upload { uploads: self.clone(), peer, bytes: 0 })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing between two counts can fail.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload {
    /// So many more bytes of it are held.
    ///
    /// # Errors
    /// Too much is held of all uploads.
    pub(crate) fn hold(&mut self, more: usize) -> Result<(), Refusal> {
        let most = self.uploads.bounds.bytes;
        let mut taken = self.uploads.lock();
        let bytes = taken.bytes.saturating_add(more as u64);
        if bytes > most {
            return Err(full(format!("{} MiB of uploads are held", most >> 20)));
        }
        taken.bytes = bytes;
        drop(taken);
        self.bytes += more as u64;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut taken = self.uploads.lock();
        taken.all = taken.all.saturating_sub(1);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        match taken.of.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
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

    fn peer(port: u16) -> Peer {
        Peer(([127, 0, 0, 1], port).into())
    }

    #[test]
    fn a_caller_that_takes_all_its_places_keeps_no_other_out() {
        let uploads = Uploads::new(Bounds { of_connection: 2, all: 3, bytes: 10 });
        let mut held: Vec<_> = (0..2).map(|_| uploads.begin(peer(1)).unwrap()).collect();
        let refusal = uploads.begin(peer(1)).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooManyRequests);
        assert!(refusal.message.starts_with("2 uploads of this connection are under way"), "{refusal}");
        held.push(uploads.begin(peer(2)).unwrap());
        let refusal = uploads.begin(peer(3)).unwrap_err();
        assert!(refusal.message.starts_with("3 uploads are under way"), "{refusal}");
        held.remove(0);
        held.push(uploads.begin(peer(3)).unwrap());
        held.clear();
        let taken = uploads.lock();
        assert!(taken.all == 0 && taken.of.is_empty() && taken.bytes == 0, "{taken:?}");
    }

    #[test]
    fn what_is_held_of_all_uploads_is_bounded_and_given_back() {
        let uploads = Uploads::new(Bounds { of_connection: 8, all: 8, bytes: 10 });
        let (mut one, mut two) = (uploads.begin(peer(1)).unwrap(), uploads.begin(peer(2)).unwrap());
        one.hold(6).unwrap();
        assert_eq!(two.hold(5).unwrap_err().code, ErrorCode::TooManyRequests);
        two.hold(4).unwrap();
        drop(one);
        two.hold(6).unwrap();
    }
}
