//! The host's functions in memory, with the signatures of the generated imports.

use super::state::{State, apply, current};
use crate::bindings::periapt::charm as wit;
use wit::types::Error;

pub(crate) mod config {
    use super::{current, wit::config::Value};

    pub(crate) fn get(key: &str) -> Option<Value> {
        current(|state| state.config.get(key).cloned())
    }

    pub(crate) fn get_all() -> Vec<(String, Value)> {
        current(|state| state.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

pub(crate) mod relations {
    use super::{Error, State, apply, current};
    use crate::bindings::periapt::charm::relations::{Bag, OwnBag};
    use crate::testing::state::Text;

    pub(crate) fn ids(endpoint: &str) -> Vec<u32> {
        current(|state| {
            let relations = state.durable.relations.iter();
            relations
                .filter(|(_, relation)| relation.endpoint == endpoint && !relation.broken)
                .map(|(id, _)| *id)
                .collect()
        })
    }

    pub(crate) fn remote_application(id: u32) -> Result<String, Error> {
        current(|state| Ok(state.relation(id)?.remote.clone()))
    }

    pub(crate) fn members(id: u32) -> Result<Vec<String>, Error> {
        current(|state| {
            let mut members: Vec<String> = state.relation(id)?.members.iter().cloned().collect();
            // Sorted by number, as by the host.
            members
                .sort_by_key(|unit| unit.rsplit_once('/').and_then(|(_, number)| number.parse::<u32>().ok()));
            Ok(members)
        })
    }

    pub(crate) fn get(id: u32, bag: &Bag) -> Result<Vec<(String, String)>, Error> {
        current(|state| Ok(read(state, id, bag)?.into_iter().collect()))
    }

    pub(crate) fn get_value(id: u32, bag: &Bag, key: &str) -> Result<Option<String>, Error> {
        current(|state| Ok(read(state, id, bag)?.remove(key)))
    }

    pub(crate) fn set(id: u32, bag: OwnBag, changes: &[(String, String)]) -> Result<(), Error> {
        current(|state| {
            let (unit, application) = (state.unit.clone(), state.application().to_owned());
            let written = match bag {
                OwnBag::Unit => state.relation(id)?.units.entry(unit).or_default(),
                OwnBag::Application => {
                    state.not_leader("cannot write relation settings")?;
                    state.relation(id)?.applications.entry(application).or_default()
                }
            };
            apply(written, changes);
            Ok(())
        })
    }

    /// Reads a bag by the host's rules: only the leader reads its own application's bag outside peer relations, no
    /// unit reads a colleague's bag there, and no unit reads bags from outside the relation.
    fn read(state: &mut State, id: u32, bag: &Bag) -> Result<Text, Error> {
        let denied = || Error::PermissionDenied("permission denied".to_owned());
        let (own_unit, own, leader) = (state.unit.clone(), state.application().to_owned(), state.leader);
        let relation = state.relation(id)?;
        let peers = relation.remote == own;
        match bag {
            Bag::Unit(name) if *name == own_unit => Ok(relation.units.get(name).cloned().unwrap_or_default()),
            Bag::Unit(name) => {
                let application = unit_of(name)?;
                if application != relation.remote {
                    return Err(denied());
                }
                let missing = || Error::NotFound(format!("unit {name:?}: settings not found"));
                relation.units.get(name).cloned().ok_or_else(missing)
            }
            Bag::Application(name) if *name == own && !leader && !peers => Err(denied()),
            Bag::Application(name) if *name == own || *name == relation.remote => {
                Ok(relation.applications.get(name).cloned().unwrap_or_default())
            }
            Bag::Application(_) => Err(denied()),
        }
    }

    /// Returns the application of a unit's name.
    fn unit_of(name: &str) -> Result<&str, Error> {
        let is_name = |text: &str| {
            let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()) && text.bytes().all(inner)
        };
        match name.split_once('/') {
            Some((application, number)) if is_name(application) && number.parse::<u32>().is_ok() => {
                Ok(application)
            }
            None if is_name(name) => {
                let text = format!("expected unit name, got application name {name:?}");
                Err(Error::InvalidArgument(text))
            }
            _ => Err(Error::InvalidArgument(format!("invalid unit name {name:?}"))),
        }
    }
}

pub(crate) mod ports {
    use super::{Error, State, current, wit::ports};
    use crate::testing::declared::Declared;
    use crate::{OpenedPorts, Ports};

    pub(crate) fn open(ports: ports::Ports, endpoints: &[String]) -> Result<(), Error> {
        let opened = OpenedPorts { ports: Ports::from_wit(&ports), endpoints: endpoints.to_vec() };
        current(|state| {
            let known = |name: &&String| Declared::has(&state.declared.endpoints, name);
            if let Some(unknown) = endpoints.iter().find(|name| !known(name)) {
                return Err(Error::NotFound(format!("endpoint {unknown:?} not found")));
            }
            check(state, "open", &opened.ports)?;
            if !state.durable.ports.contains(&opened) {
                state.durable.ports.push(opened);
            }
            Ok(())
        })
    }

    /// Refuses an invalid range, and a range that shares a port with another open range of the unit.
    fn check(state: &State, verb: &str, ports: &Ports) -> Result<(), Error> {
        if let Some((protocol, first, last)) = bounds(ports).filter(|(_, first, last)| first > last) {
            return Err(Error::InvalidArgument(format!("invalid port range {first}-{last}/{protocol}")));
        }
        let overlaps = |open: &&OpenedPorts| match (bounds(&open.ports), bounds(ports)) {
            (Some((a, from, to)), Some((b, first, last))) => a == b && from <= last && first <= to,
            _ => false,
        };
        let other = state.durable.ports.iter().find(|open| open.ports != *ports && overlaps(open));
        let Some(other) = other else { return Ok(()) };
        let when = if state.ports_before.contains(other) { "" } else { " requested earlier" };
        let unit = &state.unit;
        Err(Error::Conflict(format!(
            "cannot {verb} {ports} (unit \"{unit}\"): port range conflicts with {} (unit \"{unit}\"){when}",
            other.ports
        )))
    }

    fn bounds(ports: &Ports) -> Option<(&'static str, u16, u16)> {
        match *ports {
            Ports::Tcp(first, last) => Some(("tcp", first, last)),
            Ports::Udp(first, last) => Some(("udp", first, last)),
            Ports::Icmp => None,
        }
    }

    pub(crate) fn close(ports: ports::Ports, endpoints: &[String]) -> Result<(), Error> {
        let closed = OpenedPorts { ports: Ports::from_wit(&ports), endpoints: endpoints.to_vec() };
        current(|state| {
            if !state.durable.ports.iter().any(|open| open.ports == closed.ports) {
                return check(state, "close", &closed.ports);
            }
            state.durable.ports.retain(|open| *open != closed);
            Ok(())
        })
    }

    pub(crate) fn opened() -> Vec<ports::OpenedPorts> {
        current(|state| {
            let open = state.durable.ports.iter();
            open.map(|open| ports::OpenedPorts {
                ports: open.ports.to_wit(),
                endpoints: open.endpoints.clone(),
            })
            .collect()
        })
    }
}

pub(crate) mod status {
    use super::{Error, State, current, wit::status};
    use crate::Status;

    pub(crate) fn set(workload: status::WorkloadStatus, message: &str) -> Result<(), Error> {
        current(|state| state.status = Some(Status { workload, message: message.to_owned() }));
        Ok(())
    }

    pub(crate) fn get() -> Result<status::StatusInfo, Error> {
        current(|state| Ok(State::status_info(state.status.as_ref())))
    }

    pub(crate) fn set_application(workload: status::WorkloadStatus, message: &str) -> Result<(), Error> {
        current(|state| {
            state.not_leader("this unit is not the leader")?;
            state.application_status = Some(Status { workload, message: message.to_owned() });
            Ok(())
        })
    }

    pub(crate) fn set_application_version(version: &str) -> Result<(), Error> {
        current(|state| state.version = Some(version.to_owned()));
        Ok(())
    }
}

pub(crate) mod leadership {
    use super::{Error, current};

    pub(crate) fn is_leader() -> Result<bool, Error> {
        current(|state| Ok(state.leader))
    }
}

pub(crate) mod network {
    use super::{Error, current, wit::network as wit};

    /// Returns one interface with the unit's one address, for any binding.
    pub(crate) fn get(binding: &str, _relation: Option<u32>) -> Result<wit::NetworkInfo, Error> {
        let unknown = || Error::NotReady(format!("no address is known for binding \"{binding}\""));
        let address = current(|state| state.address.clone()).ok_or_else(unknown)?;
        let alone = format!("{address}/32");
        let addresses = vec![wit::InterfaceAddress { address: address.clone(), cidr: alone.clone() }];
        Ok(wit::NetworkInfo {
            bind_addresses: vec![wit::NetworkInterface {
                name: "eth0".to_owned(),
                mac: String::new(),
                addresses,
            }],
            ingress_addresses: vec![address],
            egress_subnets: vec![alone],
        })
    }
}

pub(crate) mod goal_state {
    use super::{current, wit::goal_state::GoalState};

    pub(crate) fn get() -> GoalState {
        current(|state| state.goal.clone())
    }
}

pub(crate) mod state {
    use super::{Error, current};

    pub(crate) fn get(key: &str) -> Option<String> {
        current(|state| state.durable.state.get(key).cloned())
    }

    pub(crate) fn get_all() -> Vec<(String, String)> {
        current(|state| state.durable.state.clone().into_iter().collect())
    }

    pub(crate) fn set(changes: &[(String, String)]) -> Result<(), Error> {
        if changes.iter().any(|(key, _)| key.is_empty()) {
            return Err(Error::InvalidArgument("a key must not be empty".to_owned()));
        }
        current(|state| state.durable.state.extend(changes.iter().cloned()));
        Ok(())
    }

    pub(crate) fn delete(key: &str) -> Result<(), Error> {
        current(|state| state.durable.state.remove(key));
        Ok(())
    }
}

pub(crate) mod events {
    use super::{Error, current, wit::events as wit};

    pub(crate) fn emit_later(later: &wit::Later) -> Result<u64, Error> {
        let invalid = |text: &str| Error::InvalidArgument(text.to_owned());
        if later.after.is_none() && later.conditions.is_empty() {
            return Err(invalid("say when: after a time, or when something changes"));
        }
        if later.after.is_some_and(|after| after < 1_000) {
            return Err(invalid("an event can be put off by one second or more"));
        }
        current(|state| {
            let id = state.durable.next_event;
            state.durable.next_event += 1;
            state.durable.events.insert(id, later.clone());
            Ok(id)
        })
    }

    pub(crate) fn cancel(id: u64) -> Result<(), Error> {
        let unknown = || Error::NotFound(format!("the unit waits for no event {id}"));
        current(|state| state.durable.events.remove(&id).map(|_| ()).ok_or_else(unknown))
    }

    pub(crate) fn pending() -> Vec<wit::PendingEvent> {
        current(|state| {
            let events = state.durable.events.iter();
            events
                .map(|(id, later)| wit::PendingEvent {
                    id: *id,
                    name: later.name.clone(),
                    json: later.json.clone().unwrap_or_else(|| "null".to_owned()),
                    after: later.after,
                    conditions: later.conditions.clone(),
                })
                .collect()
        })
    }
}

pub(crate) mod actions {
    use super::{Error, current};
    use crate::testing::state::Action;

    fn running<T>(call: impl FnOnce(&mut Action) -> T) -> Result<T, Error> {
        let none = || Error::WrongContext("not running an action".to_owned());
        current(|state| state.action.as_mut().filter(|action| action.running).map(call).ok_or_else(none))
    }

    /// Results that only the host sets.
    const RESERVED: [&str; 4] = ["stdout", "stdout-encoding", "stderr", "stderr-encoding"];

    fn check_key(key: &str) -> Result<(), Error> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let part = |part: &str| {
            part.bytes().all(|byte| letter(byte) || byte == b'-')
                && part.bytes().next().is_some_and(letter)
                && part.bytes().next_back().is_some_and(letter)
        };
        if !key.split('.').all(part) {
            return Err(Error::InvalidArgument(format!(
                "key {key:?} must start and end with lowercase alphanumeric, and contain only lowercase \
                 alphanumeric, hyphens and periods"
            )));
        }
        match RESERVED.contains(&key.split('.').next().unwrap_or_default()) {
            true => Err(Error::InvalidArgument(format!("cannot set reserved action key {key:?}"))),
            false => Ok(()),
        }
    }

    pub(crate) fn params() -> Result<String, Error> {
        running(|action| {
            let entries = action.params.iter().map(|(key, json)| format!("\"{key}\":{json}"));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        })
    }

    pub(crate) fn param(path: &str) -> Result<Option<String>, Error> {
        running(|action| action.params.get(path).cloned())
    }

    pub(crate) fn set_results(results: &[(String, String)]) -> Result<(), Error> {
        for (key, _) in results {
            check_key(key)?;
        }
        running(|action| action.results.extend(results.iter().cloned()))
    }

    pub(crate) fn log(message: &str) -> Result<(), Error> {
        running(|action| action.log.push(message.to_owned()))
    }

    pub(crate) fn fail(message: Option<&str>) -> Result<(), Error> {
        let message = message.unwrap_or("action failed without reason given, check action for errors");
        running(|action| action.failed = Some(message.to_owned()))
    }
}

pub(crate) mod storage {
    use super::{Error, current, wit::storage::StorageInfo};
    use crate::StorageKind;
    use crate::testing::declared::Declared;

    pub(crate) fn list(name: Option<&str>) -> Vec<String> {
        current(|state| {
            let ids = state.storage.keys();
            ids.filter(|id| name.is_none_or(|name| id.split('/').next() == Some(name))).cloned().collect()
        })
    }

    pub(crate) fn get(id: &str) -> Result<StorageInfo, Error> {
        current(|state| match state.storage.get(id) {
            Some(location) => Ok(StorageInfo { kind: StorageKind::Filesystem, location: location.clone() }),
            None => Err(Error::NotFound(format!("storage \"{id}\" not found"))),
        })
    }

    pub(crate) fn add(name: &str, count: u32) -> Result<(), Error> {
        if count == 0 {
            let text = "cannot parse count: count must be greater than zero, got \"0\"";
            return Err(Error::InvalidArgument(text.to_owned()));
        }
        current(|state| {
            if !Declared::has(&state.declared.storage, name) {
                return Err(Error::NotFound(format!("charm storage {name:?} not found")));
            }
            let asked = state.durable.added_storage.entry(name.to_owned()).or_default();
            *asked = asked.saturating_add(count);
            Ok(())
        })
    }
}

pub(crate) use super::secrets;
pub(crate) mod resources {
    use super::{Error, current, wit::resources::ResourceFile};

    pub(crate) fn get(name: &str) -> Result<ResourceFile, Error> {
        let missing = |reason: String| Error::NotFound(format!("could not download resource: {reason}"));
        current(|state| {
            let attached = state.resources.get(name);
            let attached = attached.ok_or_else(|| missing(format!("resource \"{name}\" not found")))?;
            let size = std::fs::metadata(&attached.path).map_err(|error| missing(error.to_string()))?.len();
            Ok(ResourceFile {
                path: attached.path.display().to_string(),
                revision: attached.revision,
                size,
                sha256: attached.sha256.clone(),
            })
        })
    }
}

/// Streams to workloads in memory.
pub(crate) mod workloads {
    use super::{
        Error, current,
        wit::workloads::{Received, Target},
    };

    pub(crate) fn connect(target: &Target) -> Result<u32, Error> {
        current(|state| state.workloads.connect(target))
    }

    pub(crate) fn read(number: u32, most: u32, timeout: Option<u32>) -> Result<Received, Error> {
        current(|state| state.workloads.read(number, most, timeout))
    }

    pub(crate) fn write(number: u32, bytes: &[u8], _timeout: Option<u32>) -> Result<u32, Error> {
        current(|state| state.workloads.write(number, bytes))
    }

    pub(crate) fn shutdown(number: u32) -> Result<(), Error> {
        current(|state| state.workloads.shutdown(number))
    }

    pub(crate) fn close(number: u32) {
        current(|state| state.workloads.close(number));
    }
}

pub(crate) mod identity {
    use super::{Error, current};

    pub(crate) fn unit_name() -> String {
        current(|state| state.unit.clone())
    }

    pub(crate) fn application_name() -> String {
        current(|state| state.application().to_owned())
    }

    pub(crate) fn model_name() -> String {
        "test".to_owned()
    }

    pub(crate) fn machine_id() -> String {
        "0".to_owned()
    }

    pub(crate) fn principal_unit() -> Option<String> {
        current(|state| state.principal.clone())
    }

    pub(crate) fn public_address() -> Result<String, Error> {
        current(|state| {
            state.address.clone().ok_or_else(|| Error::NotReady("no public address(es) found".to_owned()))
        })
    }

    pub(crate) fn private_address() -> Result<String, Error> {
        current(|state| {
            state.address.clone().ok_or_else(|| Error::NotReady("no private address(es) found".to_owned()))
        })
    }
}

pub(crate) mod log {
    use super::{current, wit::log::Level};

    pub(crate) fn write(level: Level, message: &str) {
        current(|state| state.log.push((level, message.to_owned())));
    }
}

pub(crate) mod hook_tools {
    use super::{current, wit::hook_tools::Output};

    pub(crate) fn run(name: &str, args: &[String], _stdin: Option<&[u8]>) -> Output {
        current(|state| match &mut state.tools {
            Some(tools) => tools(name, args),
            None => Output {
                exit_code: 1,
                stdout: Vec::new(),
                stderr: format!("ERROR the harness has no answer for {name}\n").into_bytes(),
            },
        })
    }
}
