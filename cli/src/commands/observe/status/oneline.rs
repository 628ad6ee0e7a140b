//! `status --format oneline`: a line per unit.

use std::fmt::Write as _;

use periapt_host_api::status::{FullStatus, UnitStatus};

use crate::print::status::in_order;

pub(super) fn render(status: &FullStatus) -> String {
    let mut text = String::new();
    for application in status.applications.values() {
        for (name, unit) in in_order(&application.units) {
            line(&mut text, "", name, unit);
            for (name, unit) in in_order(&unit.subordinates) {
                line(&mut text, "  ", name, unit);
            }
        }
    }
    text
}

fn line(text: &mut String, indent: &str, name: &str, unit: &UnitStatus) {
    let ports = match unit.open_ports.as_slice() {
        [] => String::new(),
        ports => format!(" {}", ports.join(", ")),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{indent}- {name}: {} (agent:{}, workload:{}){ports}",
        unit.public_address, unit.juju_status.current, unit.workload_status.current
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    #[test]
    fn each_unit_has_a_line_in_order_of_numbers() {
        assert_eq!(
            render(&fixture::settled()),
            "- mysql/0: 10.0.0.1 (agent:idle, workload:active) 3306/tcp\n\
             - mysql/1: 10.0.0.1 (agent:idle, workload:active)\n\
             - wordpress/2: 10.0.0.1 (agent:idle, workload:active) 80/tcp\n\
             - wordpress/10: 10.0.0.1 (agent:idle, workload:active) 80/tcp\n"
        );
    }
}
