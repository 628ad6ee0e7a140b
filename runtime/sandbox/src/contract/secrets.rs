//! The interface `secrets`.

use periapt_hook::{GetMode, NewOwner, SecretInfo, SecretMetadata};
use periapt_host_api::{
    RelationId,
    secret::{RotatePolicy, SecretReader},
};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::secrets::{
        Access, Details, Metadata, Owner, RevisionMode, RotatePolicy as WitPolicy,
    },
    host_call,
    types::Error,
};
use crate::state::HookState;

/// Values by key.
type Values = Vec<(String, Vec<u8>)>;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_leader(
        interface,
        "add",
        |context, now, (owner, content, said): &(Owner, Values, Metadata)| {
            let answer =
                context.secret_add(now, (*owner).into(), content, said.into(), said.expire.as_deref());
            answer.map(|result| result.map_err(Error::from))
        },
    )?;
    host_call::link_leader(
        interface,
        "set",
        |context, now, (uri, content, said): &(String, Option<Values>, Metadata)| {
            let expire = said.expire.as_deref();
            let answer = context.secret_set(now, uri, content.as_ref(), said.into(), expire);
            answer.map(|result| result.map_err(Error::from))
        },
    )?;
    host_call::link_leader(
        interface,
        "get",
        |context, _, (uri, label, mode): &(Option<String>, Option<String>, RevisionMode)| {
            let answer = context.secret_get(uri.as_deref(), label.as_deref(), (*mode).into());
            answer.map(|result| result.map_err(Error::from))
        },
    )?;
    host_call::link_leader(
        interface,
        "info",
        |context, now, (uri, label): &(Option<String>, Option<String>)| {
            let answer = context.secret_info(now, uri.as_deref(), label.as_deref());
            answer.map(|result| result.map(Details::from).map_err(Error::from))
        },
    )?;
    host_call::link_leader(interface, "ids", |context, now, (): &()| {
        context.secret_ids(now).map(|result| result.map_err(Error::from))
    })?;
    host_call::link_leader(
        interface,
        "grant",
        |context, now, (uri, relation, unit): &(String, u32, Option<String>)| {
            let answer = context.secret_grant(now, uri, RelationId(*relation), unit.as_deref());
            answer.map(|result| result.map_err(Error::from))
        },
    )?;
    host_call::link_leader(interface, "revoke", |context, now, (uri, reader): &(String, String)| {
        context.secret_revoke(now, uri, reader).map(|result| result.map_err(Error::from))
    })?;
    host_call::link_leader(interface, "remove", |context, now, (uri, revision): &(String, Option<u32>)| {
        context.secret_remove(now, uri, *revision).map(|result| result.map_err(Error::from))
    })
}

impl From<Owner> for NewOwner {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Application => Self::Application,
            Owner::Unit => Self::Unit,
        }
    }
}

impl From<NewOwner> for Owner {
    fn from(owner: NewOwner) -> Self {
        match owner {
            NewOwner::Application => Self::Application,
            NewOwner::Unit => Self::Unit,
        }
    }
}

impl From<RevisionMode> for GetMode {
    fn from(mode: RevisionMode) -> Self {
        match mode {
            RevisionMode::Tracked => Self::Tracked,
            RevisionMode::Peek => Self::Peek,
            RevisionMode::Refresh => Self::Refresh,
        }
    }
}

/// Converts all fields except the expiry, which depends on the time of the call.
impl From<&Metadata> for SecretMetadata {
    fn from(said: &Metadata) -> Self {
        Self {
            label: said.label.clone(),
            description: said.description.clone(),
            rotate: said.rotate.map(RotatePolicy::from),
            expire: None,
        }
    }
}

macro_rules! policies {
    ($($policy:ident),*) => {
        impl From<WitPolicy> for RotatePolicy {
            fn from(policy: WitPolicy) -> Self {
                match policy { $(WitPolicy::$policy => Self::$policy),* }
            }
        }

        impl From<RotatePolicy> for WitPolicy {
            fn from(policy: RotatePolicy) -> Self {
                match policy { $(RotatePolicy::$policy => Self::$policy),* }
            }
        }
    };
}

policies!(Never, Hourly, Daily, Weekly, Monthly, Quarterly, Yearly);

impl From<SecretInfo> for Details {
    fn from(info: SecretInfo) -> Self {
        let access = |(reader, relation): (SecretReader, RelationId)| Access {
            reader: reader.to_string(),
            relation: relation.0,
        };
        Self {
            uri: info.id.uri(),
            revision: info.revision.0,
            label: info.label,
            owner: info.owner.into(),
            description: info.description,
            rotation: info.rotation.into(),
            rotates: info.rotates.map(|time| time.to_string()),
            expiry: info.expiry.map(|time| time.to_string()),
            access: info.access.into_iter().map(access).collect(),
        }
    }
}
