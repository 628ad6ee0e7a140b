//! The API's methods, by who calls them.

mod agent;
mod charm;
mod operator;
