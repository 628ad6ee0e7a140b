//! Placements of units on a command line.

use periapt_host_api::{AgentName, MachineId, command::Placement};

use super::ParseError;

/// Parses `3` or `agent=NAME`.
pub(crate) fn parse(text: &str) -> Result<Placement, ParseError> {
    if let Some(agent) = text.strip_prefix("agent=") {
        return Ok(Placement::Agent(AgentName::new(agent)?));
    }
    let wrong =
        |_| ParseError::Form(format!("invalid placement {text:?}: write a machine's number, or agent=NAME"));
    text.parse::<MachineId>().map(Placement::Machine).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_machine_or_an_agent() {
        assert_eq!(parse("3").ok(), Some(Placement::Machine(MachineId(3))));
        assert_eq!(parse("agent=w1").ok(), Some(Placement::Agent(AgentName::new("w1").unwrap())));
        for bad in ["", "-1", "lxd:3", "agent=", "agent"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
