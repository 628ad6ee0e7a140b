//! Values without a subject of their own (ids and names, durations, patterns, digests), and functions that read and
//! quote untrusted texts.

pub mod duration;
pub mod excerpt;
pub mod glob;
pub mod hash;
pub mod id;
pub mod level;
pub mod name;
pub mod rule;
pub mod size;
pub mod truth;
pub mod unit_map;
pub mod version;
pub mod yaml;
