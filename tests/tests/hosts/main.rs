//! Three hosts: network namespaces with addresses of their own, a controller on one and an agent on each. They share a
//! kernel and its file systems; each has a directory of its own for its data.

mod addresses;
mod calls;
mod egress;
mod encrypted;
mod exposing;
mod firewall;
mod joined;
mod offering;
mod once;
mod packets;
mod servers;
mod site;
