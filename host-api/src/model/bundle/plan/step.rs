//! The steps of a plan, and their form for people.

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

/// One step of a plan. `Display` writes a line for people.
#[derive(Debug, Clone, PartialEq)]
pub enum BundleStep {
    /// Deploys an application without units.
    Deploy {
        /// The application's name.
        application: ApplicationName,
        /// The digest of its charm.
        charm: Digest,
        /// The application's settings.
        options: BTreeMap<String, String>,
        /// The storage directives for its units.
        storage: StorageDirectives,
        /// The spaces that its endpoints are bound to.
        bindings: Bindings,
        /// Constraints on the agents of the units, and on the memory of hooks.
        constraints: Constraints,
        /// True if the application is trusted.
        trust: bool,
        /// The first content of its resources.
        resources: BTreeMap<ResourceName, ResourceUpload>,
    },
    /// Refreshes an application to another charm.
    Refresh {
        /// The application.
        application: ApplicationName,
        /// The digest of the new charm.
        charm: Digest,
    },
    /// Attaches other content to a resource.
    Attach {
        /// The application.
        application: ApplicationName,
        /// The resource.
        resource: ResourceName,
        /// The new content.
        upload: ResourceUpload,
    },
    /// Changes settings.
    Configure {
        /// The application.
        application: ApplicationName,
        /// The settings that differ.
        options: BTreeMap<String, String>,
    },
    /// Trusts an application.
    Trust(ApplicationName),
    /// Binds endpoints to spaces.
    Bind {
        /// The application.
        application: ApplicationName,
        /// The bindings that differ.
        bindings: Bindings,
    },
    /// Sets an application's constraints.
    Constrain {
        /// The application.
        application: ApplicationName,
        /// The new constraints, which replace the old ones.
        constraints: Constraints,
    },
    /// Exposes an application.
    Expose {
        /// The application.
        application: ApplicationName,
        /// Exposed endpoints, with the networks that may reach their ports. Empty means that all networks reach all
        /// ports.
        endpoints: BTreeMap<String, Exposure>,
    },
    /// Offers endpoints of an application.
    Offer {
        /// The application.
        application: ApplicationName,
        /// The offer's name.
        offer: ApplicationName,
        /// The offered endpoints.
        endpoints: BTreeSet<EndpointName>,
    },
    /// Consumes an offer of another model.
    Consume {
        /// The offer's name in this model.
        application: ApplicationName,
        /// The URL of the offer.
        offer: OfferUrl,
    },
    /// Adds units.
    AddUnits {
        /// The application.
        application: ApplicationName,
        /// The number of units, at least 1.
        count: u32,
        /// The place of each unit.
        place: UnitPlace,
    },
    /// Relates two applications.
    Integrate(EndpointSelector, EndpointSelector),
}

/// The place of a unit, in terms of the model as it is when the step runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitPlace {
    /// A machine of its own, on any agent with room.
    New,
    /// A new machine of an agent.
    Agent(AgentName),
    /// An existing machine.
    Machine(MachineId),
    /// The machine of an application's unit, by the unit's position in the order of unit numbers, from 0.
    Beside(ApplicationName, usize),
}

impl fmt::Display for BundleStep {
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

/// Writes `SPACE ENDPOINT=SPACE`, as `--bind` reads it.
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
