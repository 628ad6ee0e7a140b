//! `network-get`

use periapt_host_api::network::{HostInterface, InterfaceAddress, NetworkInfo};
use serde_json::{Map, Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT_FILE, RELATION},
    flags::{Flag, Initial, Kind},
    format::Format,
};
use crate::{CallError, lease::Interruption};

const BIND: &str = "--bind-address";
const INGRESS: &str = "--ingress-address";
const EGRESS: &str = "--egress-subnets";
const PRIMARY: &str = "--primary-address";

pub(super) const NETWORK_GET: Tool = Tool {
    name: "network-get",
    arguments: "<binding>",
    summary: "Print the addresses of an endpoint or an extra binding.",
    flags: &[
        &[Flag {
            names: &["--format"],
            kind: Kind::Value(Initial::Fixed("yaml")),
            help: "Specify output format (json|smart|yaml)",
        }],
        OUTPUT_FILE,
        RELATION,
        &[
            Flag { names: &[BIND], kind: Kind::Switch, help: "Print the address to bind to" },
            Flag { names: &[INGRESS], kind: Kind::Switch, help: "Print the address that others reach" },
            Flag { names: &[EGRESS], kind: Kind::Switch, help: "Print the subnets that traffic comes from" },
            Flag { names: &[PRIMARY], kind: Kind::Switch, help: "Deprecated, the same as --bind-address" },
        ],
    ],
    run: network_get,
};

fn network_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format_or(Format::Yaml)?;
    let [binding] = call.at_most()?;
    let binding = binding.ok_or_else(|| CallError::invalid("no arguments specified"))?;
    if binding.is_empty() {
        return Err(CallError::invalid("no binding name specified").into());
    }
    let relation = call.flags.value("-r").map(|_| call.relation()).transpose()?;
    let info = call.run.network(binding, relation)?;
    let mut asked = Map::new();
    if call.flags.is_on(BIND) || call.flags.is_on(PRIMARY) {
        let address = info.bind_address().map(|address| address.to_string());
        asked.insert("bind-address".to_owned(), address.unwrap_or_default().into());
    }
    if call.flags.is_on(INGRESS) {
        asked.insert("ingress-address".to_owned(), info.ingress_address().unwrap_or_default().into());
    }
    if call.flags.is_on(EGRESS) {
        asked.insert("egress-subnets".to_owned(), egress(&info));
    }
    let value = match (asked.len(), asked.values().next()) {
        (0, _) => whole(&info),
        (1, Some(only)) => only.clone(),
        _ => Value::Object(asked),
    };
    Ok(format.print(&value).into())
}

fn egress(info: &NetworkInfo) -> Value {
    info.egress_subnets.iter().map(ToString::to_string).collect()
}

/// Returns all addresses as JSON. Some keys appear in two spellings, because old charms read the
/// second.
fn whole(info: &NetworkInfo) -> Value {
    let address = |at: &InterfaceAddress| {
        let (address, subnet) = (at.address.to_string(), at.subnet.to_string());
        json!({"hostname": "", "value": address, "cidr": subnet, "address": address})
    };
    let interface = |interface: &HostInterface| {
        let addresses: Vec<Value> = interface.addresses.iter().map(address).collect();
        let (name, mac) = (&interface.name, &interface.mac);
        json!({
            "mac-address": mac, "interface-name": name, "addresses": addresses,
            "macaddress": mac, "interfacename": name,
        })
    };
    let bind: Vec<Value> = info.bind_addresses.iter().map(interface).collect();
    json!({
        "bind-addresses": bind,
        "egress-subnets": egress(info),
        "ingress-addresses": info.ingress_addresses,
    })
}
