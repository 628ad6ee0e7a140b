//! The API's methods, by who calls them.

mod agent;
mod blob;
mod charm;
mod operator;
mod resource;
