//! Tables that a real kernel makes, replaces and deletes.

use std::collections::BTreeSet;

use super::*;
use crate::{
    FilterExpression, FilterRegister, FilterVerdict, SetField, SetInterval, testing::in_own_network,
};

const FIRST: FilterRegister = FilterRegister::FIRST;

fn table(name: &str) -> FilterTable<'_> {
    FilterTable { family: FilterFamily::Inet, name }
}

/// Returns elements with one port each.
fn ports(number: u16) -> Vec<SetInterval> {
    let of_port = |port: u16| {
        let (tcp, port) = ([6], port.to_be_bytes());
        SetInterval::new(&[(&tcp, &tcp), (&port, &port)])
    };
    (0..number).map(|port| of_port(2 * port)).collect()
}

/// Returns a transaction that makes a table anew, with a set of so many elements and a rule that looks it up.
fn replaced(table: FilterTable<'_>, elements: u16) -> FilterTransaction {
    let mut transaction = FilterTransaction::default();
    transaction.delete_table_if_any(table);
    transaction.create_table(table);
    let fields = &[SetField::Protocol, SetField::Port];
    transaction.create_set(table, FilterSet { name: "ports", fields }, &ports(elements));
    transaction.create_base_chain(table, "input", ChainPlace::Input);
    let rule = vec![
        FilterExpression::protocol(FIRST),
        FilterExpression::value(&1_u16.to_be_bytes(), FIRST.after(1)),
        FilterExpression::is_in("ports", FIRST),
        FilterExpression::verdict(FilterVerdict::Drop),
    ];
    transaction.add_rule(table, "input", rule);
    transaction
}

#[test]
fn a_table_is_made_replaced_and_deleted_and_no_other_with_it() {
    in_own_network("transaction::tests::a_table_is_made_replaced_and_deleted_and_no_other_with_it", || {
        let (one, other) = (table("one"), table("other"));
        assert!(!one.exists().unwrap());
        for elements in [0, 1_000, 1_000, 3] {
            replaced(one, elements).commit().unwrap();
            replaced(other, elements).commit().unwrap();
            assert!(one.exists().unwrap() && other.exists().unwrap());
        }
        for _ in 0..2 {
            let mut transaction = FilterTransaction::default();
            transaction.delete_table_if_any(one);
            transaction.commit().unwrap();
            assert!(!one.exists().unwrap() && other.exists().unwrap());
        }
        assert!(!FilterTable { family: FilterFamily::Ipv4, name: "other" }.exists().unwrap());
    })
    .unwrap();
}

#[test]
fn a_transaction_of_which_one_order_is_refused_changes_nothing() {
    in_own_network("transaction::tests::a_transaction_of_which_one_order_is_refused_changes_nothing", || {
        let (one, other) = (table("one"), table("other"));
        replaced(one, 3).commit().unwrap();
        let mut transaction = replaced(other, 3);
        transaction.delete_table(one);
        let into_nowhere = FilterExpression::verdict(FilterVerdict::Jump("nowhere"));
        transaction.add_rule(other, "input", vec![into_nowhere]);
        assert_eq!(transaction.commit().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(one.exists().unwrap() && !other.exists().unwrap());
    })
    .unwrap();
}

#[test]
fn elements_are_added_and_deleted_without_the_others_and_read_back() {
    in_own_network(
        "transaction::tests::elements_are_added_and_deleted_without_the_others_and_read_back",
        || {
            let one = table("one");
            assert_eq!(one.elements("ports").unwrap(), None);
            assert_eq!(one.rules().unwrap(), [""; 0]);
            replaced(one, 1_000).commit().unwrap();
            let mut present: BTreeSet<_> = ports(1_000).into_iter().collect();
            assert_eq!(one.elements("ports").unwrap().as_ref(), Some(&present));
            assert_eq!(one.elements("others").unwrap(), None);
            assert_eq!(one.rules().unwrap(), ["input"]);
            // The range of three ports takes the place of two ports.
            let (gone, came) = (ports(2), [SetInterval::new(&[(&[6], &[6]), (&[0, 0], &[0, 2])])]);
            let mut transaction = FilterTransaction::default();
            transaction.delete_elements(one, "ports", &gone);
            transaction.add_elements(one, "ports", &came);
            transaction.commit().unwrap();
            present.retain(|element| !gone.contains(element));
            present.extend(came);
            assert_eq!(one.elements("ports").unwrap().as_ref(), Some(&present));
            // One that is not there takes all others of the transaction with it.
            let mut transaction = FilterTransaction::default();
            transaction.delete_elements(one, "ports", &ports(4)[3..]);
            transaction.delete_elements(one, "ports", &gone);
            assert_eq!(transaction.commit().unwrap_err().kind(), io::ErrorKind::NotFound);
            assert_eq!(one.elements("ports").unwrap(), Some(present));
        },
    )
    .unwrap();
}

#[test]
fn a_transaction_for_a_generation_is_refused_once_another_one_came() {
    in_own_network(
        "transaction::tests::a_transaction_for_a_generation_is_refused_once_another_one_came",
        || {
            let (one, other) = (table("one"), table("other"));
            let before = FilterGeneration::now().unwrap();
            replaced(one, 3).commit_at(before).unwrap();
            let then = FilterGeneration::now().unwrap();
            assert_eq!(then, before.after_one());
            let refused = replaced(other, 3).commit_at(before).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::Interrupted, "{refused}");
            assert!(!other.exists().unwrap());
            assert_eq!(FilterGeneration::now().unwrap(), then);
            replaced(other, 3).commit_at(then).unwrap();
            assert!(one.exists().unwrap() && other.exists().unwrap());
        },
    )
    .unwrap();
}
