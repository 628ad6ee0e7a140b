//! The steps of a plan, and how people read them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    AgentName, ApplicationName, Digest, EndpointName, MachineId, ResourceName,
    command::{EndpointSelector, Exposure},
    constraints::Constraints,
    network::Bindings,
    offer::OfferUrl,
    resource::ResourceUpload,
    storage::StorageDirectives,
};

/// One thing to do. Displayed, a line for a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make an application without units.
    Deploy {
        /// Its name.
        application: ApplicationName,
        /// Its charm.
        charm: Digest,
        /// Its settings.
        options: BTreeMap<String, String>,
        /// What storage its units get.
        storage: StorageDirectives,
        /// The spaces that its endpoints are bound to.
        bindings: Bindings,
        /// On which agents its units are placed, and the memory of its hooks.
        constraints: Constraints,
        /// Whether it is trusted.
        trust: bool,
        /// The first content of its resources.
        resources: BTreeMap<ResourceName, ResourceUpload>,
    },
    /// Give an application another charm.
    Refresh {
        /// Which.
        application: ApplicationName,
        /// The new charm.
        charm: Digest,
    },
    /// Give a resource other content.
    Attach {
        /// Whose.
        application: ApplicationName,
        /// Which.
        resource: ResourceName,
        /// The new content.
        upload: ResourceUpload,
    },
    /// Change settings.
    Configure {
        /// Whose.
        application: ApplicationName,
        /// Those that differ.
        options: BTreeMap<String, String>,
    },
    /// Trust an application.
    Trust(ApplicationName),
    /// Bind endpoints to spaces.
    Bind {
        /// Whose.
        application: ApplicationName,
        /// Those that differ.
        bindings: Bindings,
    },
    /// Say on which agents an application's units are placed, and the memory of its hooks.
    Constrain {
        /// Whose.
        application: ApplicationName,
        /// In place of what was said before.
        constraints: Constraints,
    },
    /// Make an application's ports reachable from outside.
    Expose {
        /// Whose.
        application: ApplicationName,
        /// Endpoints, and for whom their ports are; none: all ports are for everybody.
        endpoints: BTreeMap<String, Exposure>,
    },
    /// Offer endpoints of an application.
    Offer {
        /// Which.
        application: ApplicationName,
        /// The offer's name.
        offer: ApplicationName,
        /// Which endpoints.
        endpoints: BTreeSet<EndpointName>,
    },
    /// Make an offer of another model known.
    Consume {
        /// Its name here.
        application: ApplicationName,
        /// Which.
        offer: OfferUrl,
    },
    /// Add units.
    AddUnits {
        /// To what.
        application: ApplicationName,
        /// How many, at least 1.
        count: u32,
        /// Where each of them goes.
        place: UnitPlace,
    },
    /// Relate two applications.
    Integrate(EndpointSelector, EndpointSelector),
}

/// Where a unit goes, in terms of what is there when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitPlace {
    /// On a machine of its own, wherever there is room.
    New,
    /// On a new machine of an agent.
    Agent(AgentName),
    /// On a machine that is there.
    Machine(MachineId),
    /// On the machine of an application's unit, counted from 0 in the order of their numbers.
    Beside(ApplicationName, usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deploy { application, charm, storage, bindings, constraints, .. } => {
                write!(f, "deploy application {application} from charm {}", charm.short())?;
                let storage: Vec<_> =
                    storage.iter().map(|(name, directive)| format!("{name}={directive}")).collect();
                for (what, text) in [
                    ("storage", storage.join(" ")),
                    ("bindings", shown_bindings(bindings)),
                    ("constraints", constraints.to_string()),
                ] {
                    if !text.is_empty() {
                        write!(f, ", {what} {text}")?;
                    }
                }
                Ok(())
            }
            Self::Refresh { application, charm } => {
                write!(f, "refresh application {application} to charm {}", charm.short())
            }
            Self::Attach { application, resource, upload } => {
                let content = upload.digest.short();
                write!(f, "attach content {content} to resource {resource} of application {application}")
            }
            Self::Configure { application, options } => {
                let keys: Vec<_> = options.keys().map(String::as_str).collect();
                write!(f, "set {} of application {application}", keys.join(", "))
            }
            Self::Trust(application) => write!(f, "trust application {application}"),
            Self::Offer { application, offer, .. } => write!(f, "offer {application} as {offer}"),
            Self::Consume { application, offer } => write!(f, "consume offer {offer} as {application}"),
            Self::Bind { application, bindings } => {
                write!(f, "bind application {application}: {}", shown_bindings(bindings))
            }
            Self::Constrain { application, constraints } if constraints.is_empty() => {
                write!(f, "take the constraints of application {application} back")
            }
            Self::Constrain { application, constraints } => {
                write!(f, "constrain application {application} to {constraints}")
            }
            Self::Expose { application, endpoints } => {
                write!(f, "expose application {application}")?;
                for (endpoint, Exposure { cidrs, spaces }) in endpoints {
                    let endpoint = if endpoint.is_empty() { "all endpoints" } else { endpoint };
                    let cidrs = cidrs.iter().map(ToString::to_string);
                    let whom: Vec<_> = cidrs.chain(spaces.iter().map(ToString::to_string)).collect();
                    let whom = if whom.is_empty() { "everybody".to_owned() } else { whom.join(", ") };
                    write!(f, "; {endpoint} to {whom}")?;
                }
                Ok(())
            }
            Self::AddUnits { application, count: 1, place } => {
                write!(f, "add a unit of {application} {place}")
            }
            Self::AddUnits { application, count, place: UnitPlace::New } => {
                write!(f, "add {count} units of {application} on new machines")
            }
            Self::AddUnits { application, count, place } => {
                write!(f, "add {count} units of {application} {place}")
            }
            Self::Integrate(first, second) => write!(f, "integrate {first} with {second}"),
        }
    }
}

/// `SPACE ENDPOINT=SPACE`, as `--bind` reads it.
fn shown_bindings(bindings: &Bindings) -> String {
    let default = bindings.default.iter().map(ToString::to_string);
    let endpoints = bindings.endpoints.iter().map(|(name, space)| format!("{name}={space}"));
    default.chain(endpoints).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for UnitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => write!(f, "on a new machine"),
            Self::Agent(agent) => write!(f, "on a new machine of agent {agent}"),
            Self::Machine(machine) => write!(f, "on machine {machine}"),
            Self::Beside(application, index) => write!(f, "on the machine of {application}'s unit {index}"),
        }
    }
}
