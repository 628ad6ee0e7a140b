//! `show-unit`, `show-application`, ...: all that is known of one thing, with Juju's field names.

mod application;
mod controller;
mod machine;
mod model;
mod unit;

pub(crate) use application::ShowApplication;
pub(crate) use controller::ShowController;
pub(crate) use machine::ShowMachine;
pub(crate) use model::ShowModel;
pub(crate) use unit::ShowUnit;
