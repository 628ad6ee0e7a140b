//! The inference of the two endpoints of a relation.

use periapt_host_api::{
    ApplicationName, EndpointName, ErrorCode, InterfaceName, Refusal,
    charm::{CharmMeta, EndpointMeta},
    command::EndpointSelector,
    relation::{Endpoint, Role, Scope},
};

use crate::{
    entity::{Application, RemoteApplication, RemoteSource},
    transaction::Transaction,
};

/// The name of the implicit endpoint that each application has, and of its interface.
pub(crate) const JUJU_INFO: &str = "juju-info";

/// A pair of endpoints that can be related.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The two endpoints, the provider first.
    pub(crate) ends: Vec<Endpoint>,
    pub(crate) scope: Scope,
    /// True if one end is the implicit endpoint.
    implicit: bool,
}

impl Pair {
    /// Returns the pair's name for messages, the requirer first.
    pub(crate) fn describe(&self) -> String {
        let ends: Vec<String> = self.ends.iter().rev().map(ToString::to_string).collect();
        ends.join(" ")
    }
}

/// Returns the only pair of endpoints that two selectors match. Refuses none and several.
pub(crate) fn infer(
    tx: &Transaction<'_>,
    first: &EndpointSelector,
    second: &EndpointSelector,
) -> Result<Pair, Refusal> {
    let (left, right) = (candidates(tx, first)?, candidates(tx, second)?);
    let mut pairs = Vec::new();
    if first.application != second.application {
        for a in &left {
            pairs.extend(right.iter().filter_map(|b| pair(a, b)));
        }
    }
    // Explicit endpoints win over implicit ones.
    if pairs.iter().any(|pair| !pair.implicit) {
        pairs.retain(|pair| !pair.implicit);
    }
    pairs.sort_by_cached_key(Pair::describe);
    match pairs.as_slice() {
        [only] => Ok(only.clone()),
        [] if first.endpoint.is_some() && second.endpoint.is_some() => {
            let text = format!(
                "cannot add relation \"{} {}\": endpoints do not relate; {}; {}",
                describe(first),
                describe(second),
                offers(first, &left),
                offers(second, &right)
            );
            Err(Refusal::bad_request(text))
        }
        [] => {
            let text = format!("no relations found; {}; {}", offers(first, &left), offers(second, &right));
            Err(Refusal::not_found(text))
        }
        several => {
            let names: Vec<String> = several.iter().map(|pair| format!("{:?}", pair.describe())).collect();
            let text = format!(
                "ambiguous relation: \"{} {}\" could refer to {}",
                describe(first),
                describe(second),
                names.join("; ")
            );
            Err(Refusal::new(ErrorCode::Ambiguous, text))
        }
    }
}

/// Returns a selector as the operator wrote it.
pub(crate) fn describe(selector: &EndpointSelector) -> String {
    match &selector.endpoint {
        Some(endpoint) => format!("{}:{endpoint}", selector.application),
        None => selector.application.to_string(),
    }
}

/// The most endpoints of an application that a message names.
const NAMED: usize = 20;

/// Returns a message with an application's endpoints: `wordpress has db (requires mysql), website (provides http)`.
fn offers(selector: &EndpointSelector, candidates: &[Candidate]) -> String {
    let explicit: Vec<String> = candidates
        .iter()
        .filter(|candidate| !candidate.implicit)
        .map(|Candidate { end, .. }| {
            let role = match end.role {
                Role::Provider => "provides",
                Role::Requirer => "requires",
                Role::Peer => "peers by",
            };
            format!("{} ({role} {})", end.name, end.interface)
        })
        .collect();
    let named = explicit.get(..NAMED).unwrap_or(&explicit).join(", ");
    match explicit.len() {
        0 => format!("{} has no endpoint of its own", selector.application),
        count if count > NAMED => format!("{} has {named} and {} more", selector.application, count - NAMED),
        _ => format!("{} has {named}", selector.application),
    }
}

struct Candidate {
    end: Endpoint,
    scope: Scope,
    implicit: bool,
}

fn candidates(tx: &Transaction<'_>, selector: &EndpointSelector) -> Result<Vec<Candidate>, Refusal> {
    if let Some(remote) = consumed(tx, &selector.application) {
        return of_consumed(remote, selector);
    }
    let application = tx.application(&selector.application)?;
    let meta = tx.charm_meta(&application)?;
    let mut found: Vec<Candidate> = meta
        .endpoints
        .iter()
        .filter(|(name, _)| selector.endpoint.as_ref().is_none_or(|wanted| wanted == *name))
        .map(|(name, endpoint)| Candidate {
            end: end(&application.name, name, endpoint),
            scope: endpoint.scope,
            implicit: false,
        })
        .collect();
    let wants_implicit = selector.endpoint.as_ref().is_none_or(|name| name.as_str() == JUJU_INFO);
    if wants_implicit && !found.iter().any(|candidate| candidate.end.name.as_str() == JUJU_INFO) {
        found.extend(implicit(&application).map(|end| Candidate {
            end,
            scope: Scope::Global,
            implicit: true,
        }));
    }
    match &selector.endpoint {
        Some(name) if found.is_empty() => {
            let names: Vec<&str> = meta.endpoints.keys().take(NAMED).map(EndpointName::as_str).collect();
            let has = if names.is_empty() { "none of its own".to_owned() } else { names.join(", ") };
            Err(Refusal::not_found(format!(
                "application {:?} has no {:?} relation; it has {has}",
                application.name.as_str(),
                name.as_str(),
            ))
            .about(format!("application {}", application.name)))
        }
        _ => Ok(found),
    }
}

/// Returns the offer that this model consumes under this name.
pub(crate) fn consumed<'a>(
    tx: &'a Transaction<'_>,
    application: &ApplicationName,
) -> Option<&'a RemoteApplication> {
    let found = tx.state.remote_application(application)?;
    matches!(found.source, RemoteSource::Offer { .. }).then_some(found.as_ref())
}

fn of_consumed(remote: &RemoteApplication, selector: &EndpointSelector) -> Result<Vec<Candidate>, Refusal> {
    let wanted = |name: &EndpointName| selector.endpoint.as_ref().is_none_or(|wanted| wanted == name);
    let offered = remote.endpoints.iter().filter(|(name, _)| wanted(name));
    let found: Vec<Candidate> = offered
        .map(|(name, endpoint)| Candidate {
            end: endpoint.of(&remote.name, name),
            scope: Scope::Global,
            implicit: name.as_str() == JUJU_INFO,
        })
        .collect();
    match &selector.endpoint {
        Some(name) if found.is_empty() => {
            let names: Vec<&str> = remote.endpoints.keys().take(NAMED).map(EndpointName::as_str).collect();
            Err(Refusal::not_found(format!(
                "saas application {:?} offers no {:?} relation; it offers {}",
                remote.name.as_str(),
                name.as_str(),
                names.join(", ")
            ))
            .about(format!("application {}", remote.name)))
        }
        _ => Ok(found),
    }
}

/// Returns all endpoints of an application with their scopes, the implicit one included.
pub(crate) fn all(application: &Application, meta: &CharmMeta) -> Vec<(Endpoint, Scope)> {
    let declared = meta.endpoints.iter();
    let mut all: Vec<(Endpoint, Scope)> =
        declared.map(|(name, endpoint)| (end(&application.name, name, endpoint), endpoint.scope)).collect();
    if !all.iter().any(|(end, _)| end.name.as_str() == JUJU_INFO) {
        all.extend(implicit(application).map(|end| (end, Scope::Global)));
    }
    all
}

fn end(application: &ApplicationName, name: &EndpointName, meta: &EndpointMeta) -> Endpoint {
    Endpoint {
        application: application.clone(),
        name: name.clone(),
        role: meta.role,
        interface: meta.interface.clone(),
    }
}

fn implicit(application: &Application) -> Option<Endpoint> {
    Some(Endpoint {
        application: application.name.clone(),
        name: EndpointName::new(JUJU_INFO).ok()?,
        role: Role::Provider,
        interface: InterfaceName::new(JUJU_INFO).ok()?,
    })
}

fn pair(a: &Candidate, b: &Candidate) -> Option<Pair> {
    if a.end.role == Role::Peer
        || a.end.role.counterpart() != b.end.role
        || a.end.interface != b.end.interface
        || a.end.application == b.end.application
    {
        return None;
    }
    let scope = match (a.scope, b.scope) {
        (Scope::Global, Scope::Global) => Scope::Global,
        _ => Scope::Container,
    };
    let mut ends = vec![a.end.clone(), b.end.clone()];
    ends.sort_by_key(|end| end.role != Role::Provider);
    Some(Pair { ends, scope, implicit: a.implicit || b.implicit })
}

/// Returns the limit of an endpoint. The implicit endpoint has none.
pub(crate) fn limit(meta: &CharmMeta, endpoint: &EndpointName) -> Option<u32> {
    meta.endpoints.get(endpoint)?.limit
}
