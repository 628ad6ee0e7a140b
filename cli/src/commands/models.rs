//! Models: made, chosen, set, shown and destroyed.

mod add;
mod config;
mod constraints;
mod defaults;
mod destroy;
mod list;
mod listed;
mod show;
mod switch;
mod users;
mod whoami;

use super::{Verb, verbs};

verbs! {
    /// Models: made, chosen, set, shown and destroyed.
    Models {
        add::AddModel,
        list::Models,
        switch::Switch,
        whoami::Whoami,
        users::Users,
        users::ShowUser,
        destroy::DestroyModel,
        config::ModelConfig,
        defaults::ModelDefaults,
        show::ShowModel,
        constraints::ModelConstraints,
        constraints::SetModelConstraints,
    }
}
