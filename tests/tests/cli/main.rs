//! The one binary, driven as an operator drives it: nothing here knows what is inside.

mod actions;
mod agents;
mod changes;
mod controllers;
mod failing;
mod mistakes;
mod settling;
mod watching;
