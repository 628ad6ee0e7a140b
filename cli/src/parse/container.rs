//! Containers on a command line.

use std::str::FromStr;

use periapt_host_api::{ContainerName, UnitName};

use super::ParseError;
use crate::{
    context::Model,
    error::{Failure, Result},
};

/// A reference to a container: `UNIT[:CONTAINER]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerRef {
    /// The unit.
    pub(crate) unit: UnitName,
    /// The container; none means the unit's only one.
    container: Option<ContainerName>,
}

impl FromStr for ContainerRef {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (unit, container) = match text.split_once(':') {
            Some((unit, container)) => (unit, Some(container.parse()?)),
            None => (text, None),
        };
        Ok(Self { unit: unit.parse()?, container })
    }
}

impl ContainerRef {
    /// Returns the container: the one that is named, or the unit's only one.
    pub(crate) async fn container(&self, model: &Model) -> Result<ContainerName> {
        let (unit, containers) = (&self.unit, self.containers(model).await?);
        match containers.as_slice() {
            [only] => Ok(only.clone()),
            [first, ..] => {
                Err(Failure::new(format!("unit {unit} has several containers: {}", listed(&containers)))
                    .with_hint(format!("name one of them, as in {unit}:{first}")))
            }
            [] => Err(none(unit)),
        }
    }

    /// Returns the container that is named, or all of the unit.
    pub(crate) async fn containers(&self, model: &Model) -> Result<Vec<ContainerName>> {
        let unit = &self.unit;
        let details = model.client().unit(&model.selector, unit).await?;
        let known: Vec<_> = details.containers.into_keys().collect();
        match &self.container {
            _ if known.is_empty() => Err(none(unit)),
            None => Ok(known),
            Some(named) if known.contains(named) => Ok(vec![named.clone()]),
            Some(named) => {
                let text =
                    format!("unit {unit} has no container {:?}: it has {}", named.as_str(), listed(&known));
                Err(Failure::new(text))
            }
        }
    }
}

fn none(unit: &UnitName) -> Failure {
    Failure::new(format!("unit {unit} has no containers: its charm declares none"))
}

fn listed(names: &[ContainerName]) -> String {
    names.iter().map(ContainerName::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_named_after_its_unit() {
        let read = |text: &str| text.parse::<ContainerRef>().ok();
        let of = |container: Option<&str>| ContainerRef {
            unit: "web/0".parse().unwrap(),
            container: container.map(|name| name.parse().unwrap()),
        };
        assert_eq!((read("web/0"), read("web/0:nginx")), (Some(of(None)), Some(of(Some("nginx")))));
        for bad in ["", "web", "web/0:", ":nginx", "web/0:a b"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
