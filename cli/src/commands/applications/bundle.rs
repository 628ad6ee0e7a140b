//! The state of a model that a bundle is compared with.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, EndpointName, NameError,
    api::{ApplicationDetails, SettingSource},
    bundle::{BundleModel, Existing},
    command::EndpointSelector,
    offer::OfferUrlError,
    settings::OptionValues,
    status::FullStatus,
};

use crate::{
    context::Model,
    error::{Failure, Result},
};

/// Fetches that state from the controller.
pub(super) async fn read(model: &Model) -> Result<BundleModel> {
    let status = model.client().status(&model.selector).await?;
    let mut read = BundleModel::default();
    for name in status.applications.keys() {
        let name = ApplicationName::new(name.as_str())?;
        let details = model.client().application(&model.selector, &name).await?;
        let resources = model.client().resources(&model.selector, &name).await?;
        let attached = resources.into_iter().filter_map(|resource| {
            let digest = resource.attached?.digest;
            Some((resource.name, digest))
        });
        let existing = Existing { resources: attached.collect(), ..existing(details, &status)? };
        read.applications.insert(name, existing);
    }
    for (name, remote) in &status.remote_applications {
        let url = remote.url.parse().map_err(|error: OfferUrlError| Failure::new(error.to_string()))?;
        read.saas.insert(ApplicationName::new(name)?, url);
    }
    // A bundle leaves out relations that other models made with this one's offers.
    let known = |(name, _): &(ApplicationName, EndpointName)| {
        read.applications.contains_key(name) || read.saas.contains_key(name)
    };
    let own = relations(&status)?.into_iter().filter(|ends| ends.iter().all(known));
    read.relations = own.collect();
    Ok(read)
}

fn existing(details: ApplicationDetails, status: &FullStatus) -> Result<Existing> {
    let name = &details.name;
    if details.life != periapt_host_api::status::Life::Alive {
        return Err(Failure::new(format!("application {name} is dying"))
            .with_hint(format!("`periapt wait-for application {name} --gone` waits until it has gone")));
    }
    let shown = status.applications.get(name.as_str());
    let mut units = Vec::new();
    for (unit, shown) in shown.iter().flat_map(|shown| &shown.units) {
        units.push((unit.parse()?, shown.machine.parse().ok()));
    }
    units.sort();
    let mut offers = BTreeMap::new();
    for (offer, found) in status.offers.iter().filter(|(_, found)| found.application == name.as_str()) {
        let endpoints = found.endpoints.keys().map(|name| EndpointName::new(name));
        offers.insert(ApplicationName::new(offer)?, endpoints.collect::<Result<_, _>>()?);
    }
    let of_operator = |source| source == SettingSource::User;
    let set = details.settings.into_iter().filter(|(_, setting)| of_operator(setting.source));
    let options: OptionValues = set.filter_map(|(key, setting)| Some((key, setting.value?))).collect();
    Ok(Existing {
        charm: details.charm_digest,
        options,
        storage: details.storage,
        units: if details.subordinate { Vec::new() } else { units },
        subordinate: details.subordinate,
        exposed: details.exposed,
        exposures: details.exposures,
        bindings: details.bindings,
        constraints: details.constraints,
        trust: details.trust,
        resources: BTreeMap::new(),
        offers,
    })
}

fn relations(status: &FullStatus) -> Result<Vec<[(ApplicationName, EndpointName); 2]>> {
    let between = status.relations.iter().filter(|relation| relation.kind != "peer");
    let ends = between.map(|relation| Ok([end(&relation.provider)?, end(&relation.requirer)?]));
    ends.collect()
}

fn end(text: &str) -> Result<(ApplicationName, EndpointName), NameError> {
    let end: EndpointSelector = text.parse()?;
    let endpoint = end.endpoint.map_or_else(|| EndpointName::new(""), Ok)?;
    Ok((end.application, endpoint))
}
