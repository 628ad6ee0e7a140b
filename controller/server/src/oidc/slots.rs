//! The bounds on logins that are under way: strangers begin them.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::{ErrorCode, Refusal};

use crate::network::Network;

/// The most logins under way.
const MAX_LOGINS: usize = 256;

/// The most logins under way from one network.
const MAX_LOGINS_OF_NETWORK: usize = 16;

/// The slots for logins under way. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(super) struct LoginSlots(Arc<Mutex<BTreeMap<Network, usize>>>);

/// A slot that is taken until it is dropped.
#[derive(Debug)]
pub(super) struct LoginSlot {
    slots: LoginSlots,
    network: Network,
}

impl LoginSlots {
    /// Takes a slot.
    ///
    /// # Errors
    /// All slots of the network, or of the controller, are taken.
    pub(super) fn take(&self, network: Network) -> Result<LoginSlot, Refusal> {
        let mut taken = self.0.lock();
        let all: usize = taken.values().sum();
        let of_network = taken.get(&network).copied().unwrap_or_default();
        if all >= MAX_LOGINS || of_network >= MAX_LOGINS_OF_NETWORK {
            let text = "too many logins at the issuer are under way; try again later";
            return Err(Refusal::new(ErrorCode::TooManyRequests, text));
        }
        taken.insert(network, of_network + 1);
        Ok(LoginSlot { slots: self.clone(), network })
    }
}

impl Drop for LoginSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.0.lock();
        if let Some(count) = taken.get_mut(&self.network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: usize) -> Network {
        Network::of(std::net::Ipv4Addr::from(u32::try_from(number).unwrap()).into())
    }

    #[test]
    fn a_network_and_all_together_have_bounds_and_a_place_is_given_back() {
        let slots = LoginSlots::default();
        let mut held: Vec<_> = (0..MAX_LOGINS_OF_NETWORK).map(|_| slots.take(network(0)).unwrap()).collect();
        assert_eq!(slots.take(network(0)).unwrap_err().code, ErrorCode::TooManyRequests);
        held.pop();
        held.push(slots.take(network(0)).unwrap());
        for number in MAX_LOGINS_OF_NETWORK..MAX_LOGINS {
            held.push(slots.take(network(number)).unwrap());
        }
        assert_eq!(slots.take(network(MAX_LOGINS)).unwrap_err().code, ErrorCode::TooManyRequests);
        drop(held);
        assert!(slots.0.lock().is_empty());
    }
}
