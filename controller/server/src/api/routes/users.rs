//! The routes of users, sessions and the audit log.

use http::Method;
use periapt_host_api::{
    audit::AuditPage,
    command::Answer,
    user::{
        AwaitLogin, BegunLogin, IssuedRegistration, IssuedSession, LoginResult, NewApiToken, NewPassword,
        NewUser, PasswordLogin, SessionDetails, UseRegistration, UserDetails,
    },
};
use periapt_model::Right;

use super::{
    operation::{Operation, Route, json},
    query::AUDIT_QUERY,
};
use crate::api::{audit, issuer_login, sessions, users};

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/login").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "logIn",
                "Opens a session by a password.",
                json::<IssuedSession>(),
            )
            .request(json::<PasswordLogin>()),
            sessions::log_in,
        ),
        Route::new("/v1/login/device").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "beginLogin",
                "Begins a login at the issuer of identities, with an empty object.",
                json::<BegunLogin>(),
            ),
            issuer_login::begin,
        ),
        Route::new("/v1/login/device/result").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "awaitLogin",
                "Waits for a while for the approval of a begun login, and opens a session after it.",
                json::<LoginResult>(),
            )
            .request(json::<AwaitLogin>()),
            issuer_login::result,
        ),
        Route::new("/v1/register").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "registerUser",
                "Sets a user's password by a registration token, once, and opens a session.",
                json::<IssuedSession>(),
            )
            .request(json::<UseRegistration>()),
            sessions::register,
        ),
        Route::new("/v1/logout").on(
            Operation::new(
                Right::ReadOneself,
                Method::POST,
                "logOut",
                "Ends the session of the request.",
                json::<Answer>(),
            ),
            sessions::log_out,
        ),
        Route::new("/v1/whoami").on(
            Operation::get(Right::ReadOneself, "whoami", "The user of the request.", json::<UserDetails>()),
            sessions::whoami,
        ),
        Route::new("/v1/sessions").on(
            Operation::new(
                Right::OpenOwnSession,
                Method::POST,
                "openSession",
                "Opens a session for the operator on the controller's own host.",
                json::<IssuedSession>(),
            )
            .once(),
            sessions::open,
        ),
        Route::new("/v1/tokens").on(
            Operation::new(
                Right::OpenOwnSession,
                Method::POST,
                "makeToken",
                "Makes an API token of the user of the request.",
                json::<IssuedSession>(),
            )
            .request(json::<NewApiToken>())
            .once(),
            sessions::make_token,
        ),
        Route::new("/v1/audit").on(
            Operation::get(
                Right::ReadAudit,
                "audit",
                "A page of the audit log, the oldest entry first.",
                json::<AuditPage>(),
            )
            .query(AUDIT_QUERY),
            audit::page,
        ),
        Route::new("/v1/users")
            .on(
                Operation::get(
                    Right::List,
                    "users",
                    "The users that the caller may see.",
                    json::<Vec<UserDetails>>(),
                ),
                users::list,
            )
            .on(
                Operation::new(
                    Right::ManageUsers,
                    Method::POST,
                    "addUser",
                    "Makes a user, and returns the token by which the user registers.",
                    json::<IssuedRegistration>(),
                )
                .request(json::<NewUser>())
                .once(),
                users::add,
            ),
        Route::new("/v1/users/{user}")
            .on(Operation::get(Right::ReadUser, "user", "One user.", json::<UserDetails>()), users::one),
        Route::new("/v1/users/{user}/sessions").on(
            Operation::get(
                Right::ReadUser,
                "sessions",
                "The sessions and API tokens of a user, the newest first.",
                json::<Vec<SessionDetails>>(),
            ),
            users::sessions,
        ),
        Route::new("/v1/users/{user}/password").on(
            Operation::new(
                Right::ManageSessions,
                Method::PUT,
                "setPassword",
                "Sets a user's password. The user's other sessions end.",
                json::<Answer>(),
            )
            .request(json::<NewPassword>())
            .once(),
            users::set_password,
        ),
        Route::new("/v1/users/{user}/registration").on(
            Operation::new(
                Right::ManageUsers,
                Method::POST,
                "resetPassword",
                "Takes a user's password away, and returns the token by which the user sets another one.",
                json::<IssuedRegistration>(),
            )
            .once(),
            users::reset,
        ),
    ]
}
