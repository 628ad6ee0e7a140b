//! Tables in a real kernel. `tests/tests/hosts/firewall.rs` sends packets.

use periapt_netlink::testing::in_own_network;

use super::*;
use crate::keeper::firewall::rules::MAX_RULES;

/// Returns rules for so many ports, which no sender may reach.
fn rules(ports: usize) -> FirewallRules {
    let port = |number: usize| u16::try_from(2 * number).unwrap();
    let interval =
        |number| PortInterval { transport: Transport::Udp, first: port(number), last: port(number) };
    FirewallRules { governed: (0..ports).map(interval).collect(), ..FirewallRules::default() }
}

fn exists(name: &str) -> bool {
    table(name).exists().unwrap()
}

#[test]
fn a_table_has_the_last_rules_whatever_other_programs_do_and_other_tables_stay() {
    let name = "keeper::firewall::table::tests::a_table_has_the_last_rules_whatever_other_programs_do_and_other_tables_stay";
    in_own_network(name, || {
        let (own, others) = ("periapt-one-1", "periapt-two-2");
        let (mut table, mut other) = (HostTable::new(own.to_owned()), HostTable::new(others.to_owned()));
        other.hold(rules(1)).unwrap();
        for ports in [1, 1, MAX_RULES, 3] {
            table.hold(rules(ports)).unwrap();
            assert!(exists(own));
        }
        // Another program deletes it, as `nft flush ruleset` does.
        HostTable::new(own.to_owned()).remove().unwrap();
        assert!(!exists(own));
        table.hold(rules(3)).unwrap();
        assert!(exists(own));
        // The same agent after a restart knows nothing of its table.
        HostTable::new(own.to_owned()).hold(rules(3)).unwrap();
        assert!(exists(own));
        table.hold(FirewallRules::default()).unwrap();
        assert!(!exists(own), "without rules there is no table");
        table.hold(rules(2)).unwrap();
        table.remove().unwrap();
        table.hold(rules(2)).unwrap();
        assert!(!exists(own), "nothing is written after the end");
        assert!(exists(others));
    })
    .unwrap();
}

#[test]
fn a_trial_leaves_nothing() {
    in_own_network("keeper::firewall::table::tests::a_trial_leaves_nothing", || {
        try_firewall().unwrap();
        assert!(!exists(&format!("periapt-trial-{}", std::process::id())));
    })
    .unwrap();
}
