//! `show-unit` and `show-application`: all that is known of one thing, with Juju's field names.

mod application;
mod unit;

pub(crate) use application::ShowApplication;
pub(crate) use unit::ShowUnit;
