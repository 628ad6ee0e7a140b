//! The bounds of API tokens: the rights that a token's scope leaves of its user's.

use periapt_host_api::{ModelUuid, access::ModelAccess, user::TokenScope};

use super::table::Right;

/// Returns true if a scope admits a right. `model` is the model that the right is about, if it is about one. The
/// user's own access is checked besides.
pub fn scope_admits(scope: &TokenScope, right: Right, model: Option<&ModelUuid>) -> bool {
    let in_models = model.is_none_or(|model| scope.models.is_empty() || scope.models.contains(model));
    let needed = match right {
        Right::LogIn
        | Right::JoinAgent
        | Right::JoinControllers
        | Right::ReadController
        | Right::ReadOneself
        | Right::List
        | Right::ReadModel
        | Right::FindOffer
        | Right::FetchCharm => ModelAccess::Read,
        Right::CommandController | Right::Upload | Right::WriteModel => ModelAccess::Write,
        Right::AdministerModel | Right::AdministerOffer => ModelAccess::Admin,
        // A token's metrics name no model.
        Right::ReadMetrics => return scope.models.is_empty(),
        Right::ReadDefaults
        | Right::OpenOwnSession
        | Right::ManageController
        | Right::MigrateModels
        | Right::ManageUsers
        | Right::ReadAudit
        | Right::BackUp
        | Right::ReadUser
        | Right::ManageSessions
        | Right::ActAsAgent
        | Right::ActAsRunner
        | Right::Work => return false,
    };
    in_models && scope.access >= needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_bounds_access_and_models_and_admits_nothing_about_users() {
        let (own, other) = (ModelUuid(uuid::Uuid::from_u128(1)), ModelUuid(uuid::Uuid::from_u128(2)));
        let scope = TokenScope { access: ModelAccess::Write, models: vec![own] };
        assert!(scope_admits(&scope, Right::WriteModel, Some(&own)));
        assert!(!scope_admits(&scope, Right::WriteModel, Some(&other)));
        assert!(!scope_admits(&scope, Right::AdministerModel, Some(&own)));
        for right in [Right::OpenOwnSession, Right::ManageUsers, Right::ManageSessions, Right::ReadAudit] {
            let all = TokenScope { access: ModelAccess::Admin, models: Vec::new() };
            assert!(!scope_admits(&all, right, None), "{right:?}");
        }
    }
}
