//! Applications, their units, relations and spaces.

mod add_unit;
mod bundle;
mod config;
mod constraints;
mod deploy;
mod export_bundle;
mod expose;
mod integrate;
mod refresh;
mod remove_application;
mod remove_unit;
mod removed_entities;
mod spaces;
mod suspend;

use super::{Verb, verbs};

verbs! {
    /// Applications, their units, relations and spaces.
    Applications {
        deploy::Deploy,
        export_bundle::ExportBundle,
        refresh::Refresh,
        config::Config,
        config::Trust,
        constraints::Constraints,
        constraints::SetConstraints,
        add_unit::AddUnit,
        remove_unit::RemoveUnit,
        remove_application::RemoveApplication,
        expose::Expose,
        expose::Unexpose,
        spaces::Bind,
        spaces::Spaces,
        spaces::Subnets,
        spaces::AddSpace,
        spaces::MoveToSpace,
        spaces::ShowSpace,
        spaces::RenameSpace,
        spaces::RemoveSpace,
        integrate::Integrate,
        integrate::RemoveRelation,
        suspend::SuspendRelation,
        suspend::ResumeRelation,
    }
}
