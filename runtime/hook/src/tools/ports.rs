//! `open-port`, `close-port`, `opened-ports`

use periapt_host_api::ports::{OpenedPorts, PortRange};
use serde_json::Value;

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
    flags::{Flag, Kind},
};
use crate::{CallError, lease::Interruption};

const ENDPOINTS: &[Flag] = &[Flag {
    names: &["--endpoints"],
    kind: Kind::Text(""),
    help: "Names of endpoints, joined by commas; all by default",
}];

pub(super) const OPEN_PORT: Tool = Tool {
    name: "open-port",
    arguments: "<port>[/<protocol>] or <from>-<to>[/<protocol>] or icmp",
    summary: "Register a request to open a port or port range.",
    flags: &[ENDPOINTS],
    run: open_port,
};

pub(super) const CLOSE_PORT: Tool = Tool {
    name: "close-port",
    arguments: "<port>[/<protocol>] or <from>-<to>[/<protocol>] or icmp",
    summary: "Register a request to close a port or port range.",
    flags: &[ENDPOINTS],
    run: close_port,
};

pub(super) const OPENED_PORTS: Tool = Tool {
    name: "opened-ports",
    arguments: "",
    summary: "List all ports and port ranges that the unit has open, the hook's requests included.",
    flags: &[
        OUTPUT,
        &[Flag { names: &["--endpoints"], kind: Kind::Switch, help: "Tell for which endpoints, too" }],
    ],
    run: opened_ports,
};

fn open_port(call: Call<'_>) -> Result<Output, Interruption> {
    let (range, endpoints) = request(&call)?;
    call.run.open_ports(range, &endpoints)?;
    Ok(silent())
}

fn close_port(call: Call<'_>) -> Result<Output, Interruption> {
    let (range, endpoints) = request(&call)?;
    call.run.close_ports(range, &endpoints)?;
    Ok(silent())
}

fn request(call: &Call<'_>) -> Result<(PortRange, Vec<String>), CallError> {
    let [range] = call.at_most()?;
    let range = range.ok_or_else(|| CallError::invalid("no port or range specified"))?;
    let endpoints = call.flags.value("--endpoints").map_or("", |given| given.value.as_str());
    let names = endpoints.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok((range.parse()?, names.map(str::to_owned).collect()))
}

fn opened_ports(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [] = call.at_most()?;
    let with_endpoints = call.flags.is_on("--endpoints");
    let line = |opened: OpenedPorts| {
        let names: Vec<_> = opened.endpoints.iter().map(|endpoint| endpoint.as_str()).collect();
        match (with_endpoints, names.is_empty()) {
            (false, _) => opened.range.to_string(),
            (true, true) => format!("{} (*)", opened.range),
            (true, false) => format!("{} ({})", opened.range, names.join(", ")),
        }
    };
    let lines: Value = call.run.opened_ports().into_iter().map(line).collect();
    Ok(format.print(&lines).into())
}
