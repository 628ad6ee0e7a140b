//! Places of units as a command line names them.

use periapt_host_api::{AgentName, MachineId, command::Placement};

/// `3`, or `agent=NAME`.
pub(crate) fn parse(text: &str) -> std::result::Result<Placement, String> {
    if let Some(agent) = text.strip_prefix("agent=") {
        return AgentName::new(agent).map(Placement::Agent).map_err(|error| error.to_string());
    }
    text.parse::<MachineId>()
        .map(Placement::Machine)
        .map_err(|_| format!("{text:?} is no place: write a machine's number, or agent=NAME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_machine_or_an_agent() {
        assert_eq!(parse("3"), Ok(Placement::Machine(MachineId(3))));
        assert_eq!(parse("agent=w1"), Ok(Placement::Agent(AgentName::new("w1").unwrap())));
        for bad in ["", "-1", "lxd:3", "agent=", "agent"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
