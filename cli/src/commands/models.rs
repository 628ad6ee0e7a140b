//! Models: made, chosen, set, shown and destroyed.

mod add;
mod config;
mod constraints;
mod defaults;
mod destroy;
mod list;
mod listed;
mod migrate;
mod show;
mod switch;

use super::{Verb, verbs};

verbs! {
    /// Models: made, chosen, set, shown and destroyed.
    Models {
        add::AddModel,
        list::Models,
        switch::Switch,
        destroy::DestroyModel,
        migrate::Migrate,
        config::ModelConfig,
        defaults::ModelDefaults,
        show::ShowModel,
        constraints::ModelConstraints,
        constraints::SetModelConstraints,
    }
}
