//! The names by which workloads reach units.

use core::net::IpAddr;

use crate::{ApplicationName, ModelName, UnitName, pod::MAX_HOST_BYTES};

/// The target of a workload's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionTarget {
    /// The asking unit itself.
    Own,
    /// A unit.
    Unit(UnitName),
    /// Any unit of an application.
    Application(ApplicationName),
    /// An address.
    Address(IpAddr),
}

impl ConnectionTarget {
    /// Reads a host as workloads name it: an address, `localhost`, `app-0` for the unit `app/0`, `app` for any unit of
    /// `app`, and the names of Kubernetes for both: `app-0.app-endpoints`, `app-endpoints` and `app`, each followed by
    /// nothing, `MODEL`, `MODEL.svc` or `MODEL.svc.cluster.local`. Returns none for other names, and for other models.
    pub fn read(host: &str, model: &ModelName) -> Option<Self> {
        if host.len() > MAX_HOST_BYTES {
            return None;
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            let address = address.to_canonical();
            return Some(if address.is_loopback() { Self::Own } else { Self::Address(address) });
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let labels: Vec<&str> = host.split('.').collect();
        let (first, rest) = labels.split_first()?;
        let service = |text: &str| {
            let text = text.strip_suffix(HEADLESS).unwrap_or(text);
            text.parse::<ApplicationName>().ok()
        };
        match rest {
            [] if *first == "localhost" => Some(Self::Own),
            [] if unit(first).is_some() => unit(first).map(Self::Unit),
            domain if is_domain(domain, model) => service(first).map(Self::Application),
            [headless, domain @ ..] if headless.ends_with(HEADLESS) => {
                let unit =
                    unit(first).filter(|unit| service(headless).as_ref() == Some(unit.application()))?;
                is_domain(domain, model).then_some(Self::Unit(unit))
            }
            _ => None,
        }
    }
}

/// The end of the name of the service that Kubernetes gives the units of an application by their own names.
const HEADLESS: &str = "-endpoints";

/// Returns the unit of `app-0`. No application has such a name.
fn unit(label: &str) -> Option<UnitName> {
    let (application, number) = label.rsplit_once('-')?;
    format!("{application}/{number}").parse().ok()
}

/// Returns true if the labels after a service's name are those of a model, or none.
fn is_domain(labels: &[&str], model: &ModelName) -> bool {
    match labels {
        [] => true,
        [name, rest @ ..] => {
            *name == model.as_str() && matches!(rest, [] | ["svc"] | ["svc", "cluster", "local"])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_name_is_read() {
        let read = |host: &str| ConnectionTarget::read(host, &"lab".parse().unwrap());
        let unit = |name: &str| Some(ConnectionTarget::Unit(name.parse().unwrap()));
        let application = |name: &str| Some(ConnectionTarget::Application(name.parse().unwrap()));
        let address = |text: &str| Some(ConnectionTarget::Address(text.parse().unwrap()));
        let own = Some(ConnectionTarget::Own);
        let long = "a".repeat(MAX_HOST_BYTES + 1);
        for (host, expected) in [
            ("db-0", unit("db/0")),
            ("DB-12.", unit("db/12")),
            ("my-db-3", unit("my-db/3")),
            ("db-0.db-endpoints", unit("db/0")),
            ("db-0.db-endpoints.lab", unit("db/0")),
            ("db-0.db-endpoints.lab.svc", unit("db/0")),
            ("db-0.db-endpoints.lab.svc.cluster.local", unit("db/0")),
            ("db-0.db-endpoints.lab.svc.cluster.local.", unit("db/0")),
            ("db", application("db")),
            ("my-db", application("my-db")),
            ("db-endpoints", application("db")),
            ("db.lab.svc.cluster.local", application("db")),
            ("db-endpoints.lab.svc", application("db")),
            ("localhost", own.clone()),
            ("127.0.0.53", own.clone()),
            ("::1", own.clone()),
            ("::ffff:127.0.0.1", own),
            ("10.0.0.1", address("10.0.0.1")),
            ("::ffff:10.0.0.1", address("10.0.0.1")),
            ("169.254.169.254", address("169.254.169.254")),
            // Other models, other domains and other units than the service's have no name here.
            ("db.other", None),
            ("db-0.db-endpoints.other.svc", None),
            ("db-0.web-endpoints.lab", None),
            ("db.db-endpoints.lab", None),
            ("db.lab.svc.cluster", None),
            ("db.lab.svc.cluster.local.example", None),
            ("db.example.com", None),
            ("db-00", None),
            ("db-4294967296", None),
            ("-0", None),
            ("", None),
            (".", None),
            ("db..lab", None),
            ("db/0", None),
            ("db-0\0", None),
            (&long, None),
        ] {
            assert_eq!(read(host), expected, "{host}");
        }
    }
}
