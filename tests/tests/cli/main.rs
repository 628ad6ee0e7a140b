//! The one binary, driven as an operator drives it: nothing here knows what is inside.

mod agents;
mod controllers;
mod mistakes;
mod settling;
mod watching;
