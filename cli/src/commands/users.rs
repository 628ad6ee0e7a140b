//! Users: made, registered, logged in, granted access, shown and removed.

mod access;
mod account;
mod add;
mod approval;
mod audit;
mod list;
mod login;
mod logout;
mod password;
mod register;
mod sessions;
mod token;
mod welcome;
mod whoami;

use super::{Verb, verbs};

verbs! {
    /// Users: made, registered, logged in, granted access, shown and removed.
    Users {
        add::AddUser,
        register::Register,
        login::Login,
        logout::Logout,
        password::ChangeUserPassword,
        account::DisableUser,
        account::EnableUser,
        account::RemoveUser,
        list::Users,
        list::ShowUser,
        whoami::Whoami,
        access::Grant,
        access::Revoke,
        sessions::Sessions,
        sessions::RemoveSession,
        token::AddToken,
        audit::AuditLog,
    }
}
