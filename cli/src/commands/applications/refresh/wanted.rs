//! The charm that a refresh gives an application.

use std::collections::BTreeMap;

use periapt_client::Client;
use periapt_host_api::{
    Digest, ResourceName,
    api::{ApplicationDetails, ResourceDetails},
    charm::ResourceMeta,
};

use crate::{
    error::{Failure, Result},
    upload::charm::{Assumptions, Charm},
};

/// A charm.
pub(super) enum WantedCharm {
    /// One from a path.
    Read(Box<Charm>),
    /// The present one.
    Present { name: String, digest: Digest },
    /// One that the application had before.
    Former { name: String, digest: Digest, resources: BTreeMap<ResourceName, ResourceMeta> },
}

impl WantedCharm {
    /// Finds the charm that an application has, or had and that the model keeps, by its revision.
    pub(super) fn kept(of: &ApplicationDetails, revision: u64) -> Result<Self> {
        if of.charm_revision == revision {
            return Ok(Self::Present { name: of.charm_name.clone(), digest: of.charm_digest });
        }
        if let Some(former) = of.former_charms.iter().find(|former| former.revision == revision) {
            return Ok(Self::Former {
                name: former.name.clone(),
                digest: former.digest,
                resources: former.resources.clone(),
            });
        }
        let known = of.former_charms.iter().map(|former| former.revision).chain([of.charm_revision]);
        let known: Vec<String> = known.map(|revision| revision.to_string()).collect();
        let text = format!(
            "application \"{}\" has no charm of revision {revision} that is kept; kept: {}",
            of.name,
            known.join(", ")
        );
        Err(Failure::new(text).with_hint("--path names a charm on this machine"))
    }

    /// Returns the charm's own name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Read(charm) => &charm.inspected.meta.name,
            Self::Present { name, .. } | Self::Former { name, .. } => name,
        }
    }

    /// Returns the resources that it declares. `present` are those of the present charm.
    pub(super) fn resources(&self, present: &[ResourceDetails]) -> BTreeMap<ResourceName, ResourceMeta> {
        match self {
            Self::Read(charm) => charm.inspected.meta.resources.clone(),
            Self::Former { resources, .. } => resources.clone(),
            Self::Present { .. } => {
                present.iter().map(|resource| (resource.name.clone(), resource.meta.clone())).collect()
            }
        }
    }

    /// Returns its digest.
    pub(super) fn digest(&self) -> Digest {
        match self {
            Self::Read(charm) => charm.inspected.digest,
            Self::Present { digest, .. } | Self::Former { digest, .. } => *digest,
        }
    }

    /// Uploads it, unless the controller has it.
    pub(super) async fn upload(&self, client: &Client) -> Result<()> {
        match self {
            Self::Read(charm) => charm.upload(client).await.map(drop),
            Self::Present { .. } | Self::Former { .. } => Ok(()),
        }
    }

    /// Adds a hint to a refusal caused by what the charm assumes.
    pub(super) fn with_hint_of_force(&self, failure: Failure, assumptions: Assumptions) -> Failure {
        match self {
            Self::Read(charm) => charm.with_hint_of_force(failure, assumptions),
            Self::Present { .. } | Self::Former { .. } => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::api::FormerCharm;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_revision_is_the_present_charm_or_one_that_is_kept() {
        let details = json!({
            "name": "web", "life": "alive", "charm": "local:web-3", "charm-name": "web", "charm-revision": 3,
            "charm-digest": Digest::of(b"3"), "subordinate": false, "exposed": false, "trust": false, "leader": null,
            "units": [], "endpoints": {}, "settings": {},
            "former-charms": [FormerCharm {
                name: "web".to_owned(), revision: 1, digest: Digest::of(b"1"), resources: BTreeMap::new(),
            }],
        });
        let details: ApplicationDetails = serde_json::from_value(details).unwrap();
        let digest = |revision| match WantedCharm::kept(&details, revision) {
            Ok(WantedCharm::Present { digest, .. } | WantedCharm::Former { digest, .. }) => digest,
            _ => panic!("{revision}"),
        };
        assert_eq!((digest(1), digest(3)), (Digest::of(b"1"), Digest::of(b"3")));
        let unknown = WantedCharm::kept(&details, 2).err().unwrap().to_string();
        assert!(unknown.contains("kept: 1, 3"), "{unknown}");
    }
}
