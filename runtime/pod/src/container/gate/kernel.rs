//! The gate's orders to the kernel: a route by which all addresses are the loopback's, and rules that redirect.

use std::io;

use periapt_netlink::{
    ChainPlace, FilterExpression, FilterFamily, FilterRegister, FilterTable, FilterTransaction, PacketHeader,
    ValueComparison, make_all_addresses_local,
};

/// The table of the gate, with one chain of its name.
const TABLE: FilterTable<'static> = FilterTable { family: FilterFamily::Ipv4, name: "gate" };

/// The register in which the rules' expressions keep what they look at.
const REGISTER: FilterRegister = FilterRegister::FIRST;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The port of name servers.
const NAMES: u16 = 53;

/// Redirects TCP connections to addresses that are not of the loopback to one port of it, and questions for names to
/// another one.
pub(super) fn redirect(connections: u16, questions: u16) -> io::Result<()> {
    let mut transaction = FilterTransaction::default();
    transaction.create_table(TABLE);
    transaction.create_base_chain(TABLE, TABLE.name, ChainPlace::OutputTranslation);
    let to_outside = [protocol(TCP), is_outside(), redirection(connections)];
    transaction.add_rule(TABLE, TABLE.name, to_outside.concat());
    let to_names = [protocol(UDP), is_outside(), to_port(NAMES), redirection(questions)];
    transaction.add_rule(TABLE, TABLE.name, to_names.concat());
    transaction.commit()?;
    make_all_addresses_local()
}

fn equal(value: &[u8]) -> FilterExpression {
    FilterExpression::compare(REGISTER, ValueComparison::Equal, value)
}

/// Compares the protocol.
fn protocol(of: u8) -> Vec<FilterExpression> {
    vec![FilterExpression::protocol(REGISTER), equal(&[of])]
}

/// Compares the network of the destination: it must not be the loopback's.
fn is_outside() -> Vec<FilterExpression> {
    vec![
        FilterExpression::payload(PacketHeader::Network, 16, 4, REGISTER),
        FilterExpression::mask(REGISTER, &[255, 0, 0, 0]),
        FilterExpression::compare(REGISTER, ValueComparison::Different, &[127, 0, 0, 0]),
    ]
}

/// Compares the port of the destination.
fn to_port(port: u16) -> Vec<FilterExpression> {
    vec![FilterExpression::payload(PacketHeader::Transport, 2, 2, REGISTER), equal(&port.to_be_bytes())]
}

fn redirection(port: u16) -> Vec<FilterExpression> {
    vec![FilterExpression::value(&port.to_be_bytes(), REGISTER), FilterExpression::redirect(REGISTER)]
}
