//! A script that can be started.

use crate::ScriptLimits;

/// A script's text, with the variables, the host name and the bounds that it runs with.
#[derive(Debug, Clone)]
pub struct Script {
    /// The script's text.
    pub text: String,
    /// The first variables.
    pub environment: Vec<(String, String)>,
    /// The name that `hostname` prints.
    pub hostname: String,
    /// The bounds of its work, memory and output.
    pub limits: ScriptLimits,
}
