//! Users by name, and the write of one.

use periapt_host_api::{Refusal, UserName, user::FIRST_USER};

use super::entity::User;
use crate::{
    entity::EntityKey,
    root::{Root, changes::Changes},
};

/// Returns a user, or the refusal for one that does not exist.
pub(crate) fn find<'a>(root: &'a Root, name: &UserName) -> Result<&'a User, Refusal> {
    root.user(name).ok_or_else(|| {
        Refusal::not_found(format!("user {:?} not found", name.as_str())).about(format!("user {name}"))
    })
}

/// Returns true for the user that every controller has. It keeps its access, so that there is always a superuser.
pub(crate) fn is_first(user: &User) -> bool {
    user.name.as_str() == FIRST_USER
}

/// Returns the changes that write a user.
pub(crate) fn put(user: User) -> Changes {
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::User(user.name.clone()), Some(user.into()));
    changes
}
