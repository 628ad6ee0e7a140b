//! Scripts, from their text to what they say, over a world that answers as an agent does.

mod bounds;
mod commands;
mod files;
mod language;
mod tools;
mod world;
