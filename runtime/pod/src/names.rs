//! Names of hosts.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

use tokio::net::TcpStream;

use crate::driver::accounts::text_of;

/// The way from names of hosts to addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// The system's.
    OfSystem,
    /// `/etc/hosts` alone. In a container, the C library would load what the image names as a source of names.
    OfHosts,
}

impl Names {
    pub(crate) async fn connect(self, host: &str, port: u16) -> Result<TcpStream, String> {
        let connected = match self {
            Self::OfSystem => TcpStream::connect((host, port)).await,
            Self::OfHosts => {
                let own = host.to_owned();
                let found = tokio::task::spawn_blocking(move || addresses(&own)).await.unwrap_or_default();
                if found.is_empty() {
                    return Err(format!("{host:?} is no address and no name of /etc/hosts"));
                }
                let found: Vec<_> = found.into_iter().map(|address| SocketAddr::new(address, port)).collect();
                TcpStream::connect(found.as_slice()).await
            }
        };
        connected.map_err(|error| error.to_string())
    }
}

/// Returns the addresses of a name by `/etc/hosts`. `localhost` is this host, whatever the file says.
fn addresses(host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    if host.eq_ignore_ascii_case("localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    let of_line = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        let (address, mut names) = line
            .trim()
            .split_once(char::is_whitespace)
            .map(|(address, names)| (address.parse::<IpAddr>().ok(), names.split_whitespace()))?;
        address.filter(|_| names.any(|name| name.eq_ignore_ascii_case(host)))
    };
    text_of(Path::new("/etc/hosts")).lines().filter_map(of_line).collect()
}
