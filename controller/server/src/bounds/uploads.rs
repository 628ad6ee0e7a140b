//! Bounds on running uploads: their number and their bytes, for one connection, for one user and for all.
//!
//! One user holds at most a quarter of all permits and bytes over whatever connections, and one of a user's archives is
//! checked at a time: a caller that fills its share and then sends slowly leaves room for others. An upload is counted
//! from its first bytes on, and is ended if it is slower than `api/body.rs` requires.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{ErrorCode, Refusal, UserName};
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

/// The divisor for the permits and bytes of one user. A quarter is enough for the largest upload of each kind.
const SHARE: usize = 4;

impl Bounds {
    /// Archives: eight of the largest size, or some hundred of the usual size.
    pub(crate) const CHARMS: Self = Self { of_connection: 8, all: 256, bytes: 1 << 30 };
    /// Content of resources: four of the largest size.
    pub(crate) const RESOURCES: Self = Self { of_connection: 4, all: 128, bytes: 4 << 30 };
}

/// Uploads of one kind. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Uploads {
    bounds: Bounds,
    taken: Arc<Mutex<ReservedUploads>>,
}

#[derive(Debug, Default)]
struct ReservedUploads {
    all: usize,
    /// The uploads of each connection, by its number.
    connections: BTreeMap<u64, usize>,
    users: BTreeMap<UserName, UploadsOfUser>,
    bytes: u64,
}

/// The uploads of one user.
#[derive(Debug)]
struct UploadsOfUser {
    uploads: usize,
    bytes: u64,
    turn: Arc<Semaphore>,
}

impl Default for UploadsOfUser {
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
    user: UserName,
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
    pub(crate) fn begin(&self, peer: u64, user: &UserName) -> Result<Upload, Refusal> {
        let Bounds { of_connection, all, .. } = self.bounds;
        let mut taken = self.lock();
        let own = taken.connections.get(&peer).copied().unwrap_or_default();
        if own >= of_connection {
            return Err(full(format!("{own} uploads of this connection are in progress")));
        }
        let own = taken.users.get(user).map_or(0, |own| own.uploads);
        if own >= all.div_ceil(SHARE) {
            return Err(full(format!("{own} uploads of this user are in progress")));
        }
        if taken.all >= all {
            return Err(full(format!("{all} uploads are in progress")));
        }
        taken.all += 1;
        *taken.connections.entry(peer).or_default() += 1;
        let of_user = taken.users.entry(user.clone()).or_default();
        of_user.uploads += 1;
        let turn = Arc::clone(&of_user.turn);
        drop(taken);
        Ok(Upload { uploads: self.clone(), peer, user: user.clone(), bytes: 0, turn })
    }

    fn lock(&self) -> MutexGuard<'_, ReservedUploads> {
        // Nothing can panic between the changes of two counts.
        self.taken.lock()
    }
}

impl Upload {
    /// Reserves bytes that this upload is about to write to disk.
    ///
    /// # Errors
    /// The uploads of this user, or all uploads, hold too many bytes.
    pub(crate) fn hold(&mut self, more: usize) -> Result<(), Refusal> {
        let (most, more) = (self.uploads.bounds.bytes, more as u64);
        let mut taken = self.uploads.lock();
        let of_all = taken.bytes.saturating_add(more);
        let of_user = taken.users.entry(self.user.clone()).or_default();
        let own = of_user.bytes.saturating_add(more);
        if own > most / SHARE as u64 {
            return Err(full(format!("{} MiB of this user's uploads are held", (most / SHARE as u64) >> 20)));
        }
        if of_all > most {
            return Err(full(format!("{} MiB of uploads are held", most >> 20)));
        }
        of_user.bytes = own;
        taken.bytes = of_all;
        drop(taken);
        self.bytes += more;
        Ok(())
    }

    /// Returns the semaphore with the user's single permit for checks, which run one after the other.
    pub(crate) fn turn(&self) -> &Semaphore {
        &self.turn
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let mut taken = self.uploads.lock();
        taken.all = taken.all.saturating_sub(1);
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
        match taken.connections.get_mut(&self.peer) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.connections.remove(&self.peer)),
        }
        match taken.users.get_mut(&self.user) {
            Some(own) if own.uploads > 1 => {
                own.uploads -= 1;
                own.bytes = own.bytes.saturating_sub(self.bytes);
            }
            _ => drop(taken.users.remove(&self.user)),
        }
    }
}

fn full(what: String) -> Refusal {
    Refusal::new(ErrorCode::TooManyRequests, format!("{what}, which is the most; try again later"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        name.parse().unwrap()
    }

    #[test]
    fn a_caller_that_takes_all_its_permits_keeps_no_other_out() {
        let uploads = Uploads::new(Bounds { of_connection: 2, all: 12, bytes: 40 });
        let mut held: Vec<_> = (0..2).map(|_| uploads.begin(1, &user("bob")).unwrap()).collect();
        let refusal = uploads.begin(1, &user("bob")).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::TooManyRequests);
        assert!(refusal.message.starts_with("2 uploads of this connection are in progress"), "{refusal}");
        held.push(uploads.begin(2, &user("bob")).unwrap());
        let refusal = uploads.begin(3, &user("bob")).unwrap_err();
        assert!(refusal.message.starts_with("3 uploads of this user are in progress"), "{refusal}");
        for (peer, name) in ["eve", "joe", "sue"].iter().flat_map(|name| [name; 3]).enumerate() {
            held.push(uploads.begin(10 + peer as u64, &user(name)).unwrap());
        }
        let refusal = uploads.begin(4, &user("pat")).unwrap_err();
        assert!(refusal.message.starts_with("12 uploads are in progress"), "{refusal}");
        held.remove(0);
        held.push(uploads.begin(4, &user("pat")).unwrap());
        held.clear();
        let taken = uploads.lock();
        let is_empty = taken.connections.is_empty() && taken.users.is_empty();
        assert!(taken.all == 0 && is_empty && taken.bytes == 0, "{taken:?}");
    }

    #[test]
    fn what_is_held_of_all_uploads_is_bounded_and_given_back() {
        let uploads = Uploads::new(Bounds { of_connection: 8, all: 20, bytes: 40 });
        let users = ["bob", "eve", "joe", "sue", "pat"].map(user);
        let mut held: Vec<_> = users.iter().map(|user| uploads.begin(1, user).unwrap()).collect();
        for upload in &mut held[..4] {
            upload.hold(9).unwrap();
        }
        assert_eq!(held[4].hold(5).unwrap_err().code, ErrorCode::TooManyRequests);
        held[4].hold(4).unwrap();
        drop(held.remove(0));
        held[3].hold(6).unwrap();
    }

    #[test]
    fn a_user_whose_uploads_stall_after_much_over_many_connections_leaves_room_for_others() {
        for (bounds, largest) in [
            (Bounds::CHARMS, periapt_host_api::api::MAX_ARCHIVE_BYTES),
            (Bounds::RESOURCES, periapt_host_api::resource::MAX_RESOURCE_BYTES),
        ] {
            let uploads = Uploads::new(bounds);
            let largest = usize::try_from(largest).unwrap();
            let bob = user("bob");
            let mut stalled: Vec<_> =
                (0..(bounds.all / SHARE) as u64).map(|peer| uploads.begin(peer, &bob).unwrap()).collect();
            let held = stalled.iter_mut().filter_map(|upload| upload.hold(largest).ok()).count();
            assert!(held >= 1, "the largest upload fits");
            let refusal = stalled[held].hold(largest).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::TooManyRequests);
            assert!(refusal.message.contains("MiB of this user's uploads are held"), "{refusal}");
            for other in ["eve", "joe"] {
                uploads.begin(2, &user(other)).unwrap().hold(largest).unwrap();
            }
            // Released bytes can be reserved again.
            drop(stalled.remove(0));
            stalled[held].hold(largest).unwrap();
            drop(stalled);
            assert_eq!(uploads.lock().bytes, 0);
        }
    }
}
