//! The table of rights: which callers may do what with which subject. Every route of the API and every command names
//! its row, and `docs/access.md` is generated from the table.

/// The kind of a right's subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubjectKind {
    /// The controller as a whole.
    Controller,
    /// A user of the controller.
    User,
    /// A model.
    Model,
    /// An offer of a model.
    Offer,
    /// An agent.
    Agent,
    /// The runner of one model on one agent.
    Runner,
}

impl SubjectKind {
    /// Returns the kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::User => "user",
            Self::Model => "model",
            Self::Offer => "offer",
            Self::Agent => "agent",
            Self::Runner => "runner",
        }
    }
}

/// A kind of caller, in its relation to the subject. A superuser is an administrator of every model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// Every caller, known or not.
    Anyone,
    /// Every user who may log in.
    AnyUser,
    /// The user that the request is about.
    Oneself,
    /// A superuser.
    Superuser,
    /// A user with read access to the model, or more.
    ModelReader,
    /// A user with write access to the model, or more.
    ModelWriter,
    /// A user with admin access to the model.
    ModelAdmin,
    /// A user with write access to some model, or more.
    AnyModelWriter,
    /// A user with read access to the offer, or more.
    OfferReader,
    /// A user with admin access to the offer.
    OfferAdmin,
    /// Every agent.
    AnyAgent,
    /// The agent that the request is about.
    SameAgent,
    /// The agent that hosts the runner that the request is about.
    RunnersAgent,
    /// The controller itself.
    Worker,
}

impl Holder {
    /// Returns the kind in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anyone => "every caller",
            Self::AnyUser => "every user",
            Self::Oneself => "the user",
            Self::Superuser => "superusers",
            Self::ModelReader => "users with `read` on the model",
            Self::ModelWriter => "users with `write` on the model",
            Self::ModelAdmin => "users with `admin` on the model",
            Self::AnyModelWriter => "users with `write` on some model",
            Self::OfferReader => "users with `read` on the offer",
            Self::OfferAdmin => "users with `admin` on the offer",
            Self::AnyAgent => "every agent",
            Self::SameAgent => "the agent",
            Self::RunnersAgent => "the runner's agent",
            Self::Worker => "the controller itself",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRow {
    /// The right.
    pub right: Right,
    /// The kind of its subject.
    pub subject: SubjectKind,
    /// The allowed acts, in words.
    pub allows: &'static str,
    /// The callers who have the right.
    pub holders: &'static [Holder],
}

macro_rules! table {
    ($($right:ident on $subject:ident: $allows:literal for $($holder:ident),+;)*) => {
        /// A right: the name of a row.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Right {
            $(#[doc = $allows] $right,)*
        }

        /// The table of rights.
        pub const TABLE: &[AccessRow] = &[$(AccessRow {
            right: Right::$right,
            subject: SubjectKind::$subject,
            allows: $allows,
            holders: &[$(Holder::$holder),+],
        }),*];

        impl Right {
            /// Returns the right's row.
            pub fn row(self) -> AccessRow {
                match self {
                    $(Self::$right => AccessRow {
                        right: self,
                        subject: SubjectKind::$subject,
                        allows: $allows,
                        holders: &[$(Holder::$holder),+],
                    },)*
                }
            }

            /// Returns the right's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$right => stringify!($right),)*
                }
            }
        }
    };
}

table! {
    LogIn on Controller: "Logs in by a password or at the issuer, or sets the first password with a registration token." for Anyone;
    JoinControllers on Controller: "Joins the controllers of one log with a token, and is given their keys." for Anyone;
    JoinAgent on Agent: "Joins as the agent with a join token, and renews the certificate of the key that joined." for Anyone;
    ReadController on Controller: "Reads the controller's version, name and state." for AnyUser, AnyAgent;
    ReadOneself on Controller: "Reads the caller's own name and access." for AnyUser;
    ReadDefaults on Controller: "Reads the defaults of models, clouds and the names of credentials." for AnyUser;
    List on Controller: "Lists models, offers, agents and users. The list holds only what the caller may see." for AnyUser;
    Upload on Controller: "Uploads charms and the content of resources, and asks for uploads by their digest." for AnyModelWriter, Superuser;
    FetchCharm on Controller: "Downloads a charm. A user uploaded it or reads a model that uses it; an agent runs or will run it." for AnyUser, AnyAgent;
    CommandController on Controller: "Sends commands to the controller. Each command has a right of its own." for AnyUser;
    OpenOwnSession on Controller: "Opens sessions and API tokens for oneself." for AnyUser;
    ManageController on Controller: "Makes models, sets defaults of models, keeps clouds and credentials, admits and removes agents." for Superuser;
    MigrateModels on Controller: "Moves models to another controller, and takes models from one." for Superuser;
    ManageUsers on Controller: "Adds, removes, disables and enables users, and grants access to the controller." for Superuser;
    ReadMetrics on Controller: "Reads the controller's metrics." for Superuser;
    ReadAudit on Controller: "Reads the audit log." for Superuser;
    BackUp on Controller: "Reads all that the controller keeps, with its keys under a key of the caller's." for Superuser;
    ReadUser on User: "Reads a user's details and sessions." for Oneself, Superuser;
    ManageSessions on User: "Ends sessions, and sets the password." for Oneself, Superuser;
    ReadModel on Model: "Reads the model, its status, logs and history, without the content of secrets." for ModelReader;
    WriteModel on Model: "Changes the model." for ModelWriter;
    AdministerModel on Model: "Destroys the model, grants access to it, offers applications, sets `workload-egress`, runs scripts, reveals secrets." for ModelAdmin;
    FindOffer on Offer: "Finds and shows the offer." for OfferReader;
    AdministerOffer on Offer: "Grants access to the offer." for OfferAdmin;
    ActAsAgent on Agent: "Registers the agent, and follows its assignments." for SameAgent;
    ActAsRunner on Runner: "Follows the view of the agent's runner of a model, commits its units' hooks, and fetches their secrets and resources." for RunnersAgent;
    Work on Controller: "Does the controller's own work." for Worker;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_right_has_one_row_and_holders_that_fit_its_subject() {
        let rights: BTreeSet<Right> = TABLE.iter().map(|row| row.right).collect();
        assert_eq!(rights.len(), TABLE.len());
        for row in TABLE {
            assert_eq!(row.right.row(), *row);
            for holder in row.holders {
                let fits = match holder {
                    Holder::Anyone
                    | Holder::AnyUser
                    | Holder::Superuser
                    | Holder::AnyAgent
                    | Holder::AnyModelWriter
                    | Holder::Worker => true,
                    Holder::Oneself => row.subject == SubjectKind::User,
                    Holder::ModelReader | Holder::ModelWriter | Holder::ModelAdmin => {
                        row.subject == SubjectKind::Model
                    }
                    Holder::OfferReader | Holder::OfferAdmin => row.subject == SubjectKind::Offer,
                    Holder::SameAgent => row.subject == SubjectKind::Agent,
                    Holder::RunnersAgent => row.subject == SubjectKind::Runner,
                };
                assert!(fits, "{:?} cannot be held by {holder:?}", row.right);
            }
        }
    }
}
