//! The addresses that a client knows, in the order in which it tries them.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use periapt_transport::client_config;
use rustls::ClientConfig;

use crate::{
    Addresses, ClientError, Options, Result, StartAt,
    dial::{Dialler, TrustError},
    peer::Peer,
};

/// The diallers of all known addresses. The first one is that of the address that answered last.
#[derive(Debug)]
pub(crate) struct Peers {
    given: Addresses,
    tls: Option<Arc<ClientConfig>>,
    order: Vec<Dialler>,
}

impl Peers {
    /// Prepares connections to the addresses of the options.
    pub(crate) fn new(options: &Options, given: Addresses) -> Result<Self> {
        let tls = match (&options.trust, given.are_over_tls()) {
            (Some(trust), true) => {
                let config = client_config(trust, &options.certificate);
                Some(config.map_err(|error| invalid(&given.to_string(), &error.into()))?)
            }
            (None, true) => return Err(invalid(&given.to_string(), &TrustError::Nobody)),
            (_, false) => None,
        };
        let mut order = Vec::new();
        for address in given.iter() {
            let dialler = Dialler::new(address.clone(), tls.as_ref(), options.memory.as_ref());
            order.push(dialler.map_err(|error| invalid(&address.to_string(), &error))?);
        }
        if options.start_at == StartAt::Random {
            shuffle(&mut order);
        }
        Ok(Self { given, tls, order })
    }

    /// Returns the diallers, in the order of attempts.
    pub(crate) fn order(&self) -> &[Dialler] {
        &self.order
    }

    /// Puts an address first, because it answered; those before it did not.
    pub(crate) fn answered(&mut self, peer: &Peer) {
        let index = self.order.iter().position(|dialler| dialler.peer() == peer);
        self.order.rotate_left(index.unwrap_or_default());
    }

    /// Puts an address last, because its connection broke.
    pub(crate) fn broke(&mut self, peer: &Peer) {
        if let Some(index) = self.order.iter().position(|dialler| dialler.peer() == peer) {
            let dialler = self.order.remove(index);
            self.order.push(dialler);
        }
    }

    /// Takes over the controllers' own list. The addresses that the client was given stay: they have worked from here,
    /// which the controllers cannot know of theirs. A list without alternatives leaves them alone.
    pub(crate) fn learn<T: AsRef<str>>(&mut self, urls: impl IntoIterator<Item = T>) {
        // Without TLS the list proves nothing, and its controllers could not be known.
        if self.tls.is_none() {
            return;
        }
        let known = match Addresses::learned(urls) {
            Some(learned) => self.given.with(&learned),
            None => self.given.clone(),
        };
        let (mut order, mut new) = (Vec::new(), Vec::new());
        for address in known.iter() {
            // An address whose host can have no certificate is not tried.
            if let Ok(dialler) = Dialler::new(address.clone(), self.tls.as_ref(), None) {
                new.push(dialler);
            }
        }
        for dialler in &self.order {
            if let Some(index) = new.iter().position(|known| known.peer() == dialler.peer()) {
                order.push(new.remove(index));
            }
        }
        shuffle(&mut new);
        order.append(&mut new);
        self.order = order;
    }
}

fn invalid(urls: &str, reason: &TrustError) -> ClientError {
    ClientError::InvalidUrl { url: urls.to_owned(), reason: reason.to_string() }
}

/// Shuffles addresses that are equals, so that the clients of a controller that ends spread over the others. The numbers
/// are no secure random ones.
fn shuffle(order: &mut [Dialler]) {
    for last in (1..order.len()).rev() {
        let random = RandomState::new().hash_one(last) % (last as u64 + 1);
        order.swap(last, usize::try_from(random).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use periapt_transport::{Authority, Trust};

    use super::*;
    use crate::Identity;

    fn peers(urls: &str, start_at: StartAt) -> Peers {
        let trust = Trust::Authority(Authority::generate().unwrap().certificate().to_owned());
        let options = Options::new(urls, Identity::Local).with_trust(trust).with_start(start_at);
        Peers::new(&options, urls.parse().unwrap()).unwrap()
    }

    fn order(peers: &Peers) -> Vec<String> {
        peers.order().iter().map(|dialler| dialler.peer().to_string()).collect()
    }

    const THREE: &str = "https://a:1,https://b:1,https://c:1";

    #[test]
    fn clients_start_at_all_addresses_and_go_on_to_all_others() {
        let orders: BTreeSet<_> = (0..500).map(|_| order(&peers(THREE, StartAt::Random))).collect();
        // That one of the six orders is missing has a probability of 1 in 10^39.
        assert_eq!(orders.len(), 6, "{orders:?}");
    }

    #[test]
    fn the_address_that_answered_is_first_and_the_one_that_broke_last() {
        let mut peers = peers(THREE, StartAt::First);
        assert_eq!(order(&peers), ["https://a:1", "https://b:1", "https://c:1"]);
        let second = peers.order()[1].peer().clone();
        peers.answered(&second);
        assert_eq!(order(&peers), ["https://b:1", "https://c:1", "https://a:1"]);
        let broken = peers.order()[0].peer().clone();
        peers.broke(&broken);
        assert_eq!(order(&peers), ["https://c:1", "https://a:1", "https://b:1"]);
        peers.broke(&broken);
        assert_eq!(order(&peers), ["https://c:1", "https://a:1", "https://b:1"], "it is last already");
    }

    #[test]
    fn a_controllers_list_adds_to_what_was_given_and_its_end_takes_away_what_it_added() {
        let mut peers = peers("https://a:1", StartAt::Random);
        peers.learn(["https://a:1"]);
        assert_eq!(order(&peers), ["https://a:1"]);
        peers.learn(["https://c:1", "http://127.0.0.1:1", "https://b:1", "https://a:1"]);
        assert_eq!(order(&peers)[0], "https://a:1", "the one in use stays the first");
        assert_eq!(order(&peers).into_iter().collect::<BTreeSet<_>>().len(), 3);
        peers.learn(["https://b:1", "https://d:1"]);
        let known: BTreeSet<_> = order(&peers).into_iter().collect();
        assert_eq!(known, ["https://a:1", "https://b:1", "https://d:1"].map(String::from).into());
        peers.learn::<&str>([]);
        assert_eq!(order(&peers), ["https://a:1"]);
    }
}
