//! The list of URLs at which a client reaches the controllers of one store.

use std::{convert::Infallible, fmt, net::SocketAddr, str::FromStr, sync::Arc};

use periapt_host_api::api::MAX_ADDRESSES;

use crate::address::{Address, UrlError};

/// The URLs of the controllers of one store: at least one, at most [`MAX_ADDRESSES`], and each once. Several are all
/// `https://`. As text, the URLs are separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses(Arc<[Address]>);

/// A text that is no list of URLs.
#[derive(Debug, Clone, thiserror::Error)]
#[error("invalid controller URL {url:?}: {reason}")]
pub struct AddressesError {
    /// The URL at fault.
    pub(crate) url: String,
    /// The fault.
    pub(crate) reason: UrlError,
}

impl Addresses {
    /// Reads URLs, each of which may be a list itself.
    pub fn read<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) -> Result<Self, AddressesError> {
        let mut addresses = Vec::new();
        for urls in urls {
            for url in split(urls.as_ref()) {
                add(&mut addresses, url)?;
            }
        }
        match addresses.is_empty() {
            true => Err(AddressesError { url: String::new(), reason: UrlError::Missing }),
            false => Ok(Self(addresses.into())),
        }
    }

    /// Returns the URLs of a controller's own list that a client can use: those over TLS, each once, up to the bound.
    /// None if there are fewer than two, as for a controller that stands alone.
    pub fn learned<T: AsRef<str>>(urls: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut addresses = Vec::new();
        for url in urls.into_iter().take(MAX_ADDRESSES) {
            match Address::parse(url.as_ref()) {
                Ok(address @ Address::Tls(_)) if !addresses.contains(&address) => addresses.push(address),
                Ok(_) => {}
                Err(reason) => tracing::debug!(%reason, "the controller names a URL that no client can use"),
            }
        }
        (addresses.len() > 1).then(|| Self(addresses.into()))
    }

    /// Returns the list of addresses in a network in memory, which no TLS is needed for.
    pub(crate) fn in_memory(addresses: &[SocketAddr]) -> Result<Self, AddressesError> {
        let parsed = addresses.iter().map(|address| {
            let url = format!("http://{address}");
            Address::parse(&url).map_err(|reason| AddressesError { url, reason })
        });
        Ok(Self(parsed.collect::<Result<_, _>>()?))
    }

    /// Returns this list and what of another one it lacks, up to the bound.
    pub fn with(&self, others: &Self) -> Self {
        let lacking = others.0.iter().filter(|other| !self.0.contains(other));
        Self(self.0.iter().chain(lacking).take(MAX_ADDRESSES).cloned().collect())
    }

    /// Returns the URLs.
    pub fn urls(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(Address::to_string)
    }

    /// Returns each host with its port, the form of an address for Juju's clients.
    pub fn servers(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|address| address.authority().to_string())
    }

    /// Returns true if all URLs are over TLS.
    pub fn are_over_tls(&self) -> bool {
        self.0.iter().all(|address| matches!(address, Address::Tls(_)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Address> {
        self.0.iter()
    }
}

/// Splits a list of URLs. The path of a socket may hold commas, and stands alone.
fn split(urls: &str) -> impl Iterator<Item = &str> {
    let separator = if urls.starts_with("unix:") { '\0' } else { ',' };
    urls.split(separator).map(str::trim)
}

/// Adds a URL to a list.
fn add(addresses: &mut Vec<Address>, url: &str) -> Result<(), AddressesError> {
    let refused = |reason| AddressesError { url: url.to_owned(), reason };
    let address = match url {
        "" => return Err(refused(UrlError::Missing)),
        url => Address::parse(url).map_err(refused)?,
    };
    if addresses.contains(&address) {
        return Err(refused(UrlError::Twice));
    }
    if addresses.len() == MAX_ADDRESSES {
        return Err(refused(UrlError::TooMany));
    }
    addresses.push(address);
    // A socket or an address without TLS reaches the process on this machine, and says nothing about others.
    match addresses.len() > 1 && addresses.iter().any(|address| !matches!(address, Address::Tls(_))) {
        true => Err(refused(UrlError::Alone)),
        false => Ok(()),
    }
}

impl FromStr for Addresses {
    type Err = AddressesError;

    fn from_str(urls: &str) -> Result<Self, AddressesError> {
        Self::read([urls])
    }
}

impl TryFrom<&str> for Addresses {
    type Error = AddressesError;

    fn try_from(urls: &str) -> Result<Self, AddressesError> {
        Self::read([urls])
    }
}

impl TryFrom<&String> for Addresses {
    type Error = AddressesError;

    fn try_from(urls: &String) -> Result<Self, AddressesError> {
        Self::read([urls])
    }
}

impl TryFrom<String> for Addresses {
    type Error = AddressesError;

    fn try_from(urls: String) -> Result<Self, AddressesError> {
        Self::read([urls])
    }
}

/// Serves lists that are parsed already, wherever a text is taken as well.
impl From<Infallible> for AddressesError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Formats the URLs, separated by commas.
impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{address}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<String> {
        (1..=count).map(|port| format!("https://a:{port}")).collect()
    }

    #[test]
    fn urls_are_given_by_commas_or_one_by_one() {
        let list: Addresses = "https://a:1, https://b:2/".parse().unwrap();
        assert_eq!(list.to_string(), "https://a:1,https://b:2");
        assert_eq!(Addresses::read(["https://a:1", "https://b:2"]).unwrap(), list);
        assert_eq!(list.servers().collect::<Vec<_>>(), ["a:1", "b:2"]);
        assert_eq!(Addresses::read(["unix:///run/a,b"]).unwrap().to_string(), "unix:///run/a,b");
        assert_eq!(Addresses::read(numbered(MAX_ADDRESSES)).unwrap().urls().count(), MAX_ADDRESSES);
    }

    #[test]
    fn a_list_that_cannot_be_used_is_refused_by_the_url_at_fault() {
        let too_many = numbered(MAX_ADDRESSES + 1).join(",");
        for (list, url, reason) in [
            ("", "", "a URL is needed"),
            ("https://a:1,", "", "a URL is needed"),
            ("https://a:1,https://A:1/", "https://A:1/", "it stands twice in the list"),
            ("https://a:1,unix:///run/x", "unix:///run/x", "over https:// alone"),
            ("http://127.0.0.1:1,https://a:1", "https://a:1", "over https:// alone"),
            ("https://a:1,https://b", "https://b", "it names no port"),
            (&too_many, "https://a:17", "a list has at most 16 URLs"),
        ] {
            let error = list.parse::<Addresses>().unwrap_err();
            assert_eq!(error.url, url, "{list}");
            assert!(error.to_string().contains(reason), "{list}: {error}");
        }
    }

    #[test]
    fn of_a_controllers_list_only_https_urls_are_taken_each_once_and_few() {
        let learned = |urls: &[&str]| Addresses::learned(urls).map(|list| list.to_string());
        let mixed = ["https://a:1", "http://127.0.0.1:2", "unix:///run/x", "", "https://a:1", "https://b:2"];
        assert_eq!(learned(&mixed).as_deref(), Some("https://a:1,https://b:2"));
        assert_eq!(learned(&["https://a:1"]), None);
        assert_eq!(learned(&[]), None);
        let many = Addresses::learned(numbered(1_000)).unwrap();
        assert_eq!(many.urls().count(), MAX_ADDRESSES);
        assert_eq!(Addresses::read(["https://b:1"]).unwrap().with(&many).urls().count(), MAX_ADDRESSES);
    }
}
