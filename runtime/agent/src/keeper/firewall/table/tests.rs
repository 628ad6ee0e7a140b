//! Tables in a real kernel. `tests/tests/hosts/firewall.rs` sends packets.

use periapt_netlink::testing::in_own_network;

use super::*;
use crate::keeper::firewall::rules::MAX_RULES;

/// Returns rules for so many ports, which no sender may reach.
fn rules(ports: usize) -> FirewallRules {
    let governed = (0..ports).map(|number| interval(u16::try_from(2 * number).unwrap())).collect();
    FirewallRules { governed, ..FirewallRules::default() }
}

fn interval(port: u16) -> PortInterval {
    PortInterval { transport: Transport::Udp, first: port, last: port }
}

fn exists(name: &str) -> bool {
    table(name).exists().unwrap()
}

/// Has a table hold rules, and checks what the kernel has then.
fn hold(table: &mut HostTable, rules: &FirewallRules) -> TableChange {
    let change = table.hold(rules).unwrap();
    assert!(has(super::table(&table.name), rules), "{change:?}");
    assert_eq!(table.hold(rules).unwrap(), TableChange::Nothing, "the same rules again");
    change
}

/// Lets another program change a table.
fn interfere(name: &str, change: impl FnOnce(&mut FilterTransaction, FilterTable<'_>)) {
    let mut transaction = FilterTransaction::default();
    change(&mut transaction, table(name));
    transaction.commit().unwrap();
}

#[test]
fn a_table_has_the_last_rules_whatever_other_programs_do_and_other_tables_stay() {
    let name = "keeper::firewall::table::tests::a_table_has_the_last_rules_whatever_other_programs_do_and_other_tables_stay";
    in_own_network(name, || {
        let (own, others) = ("periapt-one-1", "periapt-two-2");
        let (mut table, mut other) = (HostTable::new(own.to_owned()), HostTable::new(others.to_owned()));
        hold(&mut other, &rules(1));
        for ports in [1, 1, MAX_RULES, 3] {
            hold(&mut table, &rules(ports));
        }
        // Another program deletes it, as `nft flush ruleset` does; or deletes its rules or an element, or adds some.
        let [first, odd] = [4, 5].map(|port| element(interval(port), None));
        interfere(own, |transaction, table| transaction.delete_table(table));
        assert_eq!(hold(&mut table, &rules(3)), TableChange::Whole);
        interfere(own, |transaction, table| transaction.delete_elements(table, GOVERNED, &[first]));
        assert_eq!(hold(&mut table, &rules(3)), TableChange::Whole);
        interfere(own, |transaction, table| transaction.add_elements(table, GOVERNED, &[odd]));
        assert_eq!(hold(&mut table, &rules(3)), TableChange::Whole);
        interfere(own, |transaction, table| transaction.add_rule(table, INPUT, vec![accept()]));
        assert_eq!(hold(&mut table, &rules(2)), TableChange::Whole);
        interfere(own, |transaction, table| {
            transaction.delete_table(table);
            transaction.create_table(table);
        });
        assert_eq!(hold(&mut table, &rules(3)), TableChange::Whole);
        // The same agent after a restart knows nothing of its table.
        let mut table = HostTable::new(own.to_owned());
        assert_eq!(hold(&mut table, &rules(3)), TableChange::Whole);
        assert_eq!(hold(&mut table, &FirewallRules::default()), TableChange::Whole);
        assert!(!exists(own), "without rules there is no table");
        assert_eq!(hold(&mut table, &rules(2)), TableChange::Whole);
        table.remove().unwrap();
        table.hold(&rules(2)).unwrap();
        assert!(!exists(own), "nothing is written after the end");
        assert!(has(super::table(others), &rules(1)));
    })
    .unwrap();
}

#[test]
fn a_change_writes_the_elements_that_differ_whatever_the_table_has_beside_them() {
    let name = "keeper::firewall::table::tests::a_change_writes_the_elements_that_differ_whatever_the_table_has_beside_them";
    in_own_network(name, || {
        let mut table = HostTable::new("periapt-one-1".to_owned());
        let mut other = HostTable::new("periapt-two-2".to_owned());
        let elements = |added, deleted| TableChange::Elements { added, deleted };
        for ports in [10, MAX_RULES - 2] {
            hold(&mut table, &rules(ports));
            assert_eq!(hold(&mut table, &rules(ports + 1)), elements(1, 0));
            // Transactions of others that leave the table alone are no reason to make it anew.
            hold(&mut other, &rules(ports));
            assert_eq!(hold(&mut table, &rules(ports - 1)), elements(0, 2));
            let mut wanted = rules(ports);
            // The new interval overlaps the one whose place it takes.
            wanted.governed[1].last += 1;
            let subnets = ["10.0.0.0/8", "fd00::/8"].map(|subnet| subnet.parse::<Subnet>().unwrap());
            wanted.admitted = subnets.map(|subnet| (interval(0), subnet)).to_vec();
            assert_eq!(hold(&mut table, &wanted), elements(4, 1));
            wanted.admitted.pop();
            assert_eq!(hold(&mut table, &wanted), elements(0, 1));
            // Pings have chains.
            wanted.pings = Some(Vec::new());
            assert_eq!(hold(&mut table, &wanted), TableChange::Whole);
            wanted.pings = Some(subnets.to_vec());
            assert_eq!(hold(&mut table, &wanted), elements(2, 0));
            wanted.pings = None;
            assert_eq!(hold(&mut table, &wanted), TableChange::Whole);
        }
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
