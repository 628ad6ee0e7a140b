//! Two controllers that lead one after the other, and clients that send each request to both.

mod actions;
mod laws;
mod state;
mod steps;

use crate::{
    breaks, explored,
    writers::state::{Bounds, Mutation, Request, Trimming, Writers},
};

/// Takeovers with unanswered calls: a request that writes and one that reads, each sent twice.
fn takeovers(mutation: Mutation) -> Writers {
    let requests = vec![Request::Write, Request::Read];
    let bounds = Bounds { terms: 2, losses: 2, crashes: 0, sends: 2 };
    Writers { mutation, requests, bounds, trimming: Trimming::Never }
}

/// Trimming beside crashes of machines, which take what is not on the disk.
fn trimming(mutation: Mutation) -> Writers {
    let bounds = Bounds { terms: 2, losses: 0, crashes: 1, sends: 1 };
    Writers { mutation, requests: vec![Request::Write], bounds, trimming: Trimming::Unneeded }
}

/// A log that has room for one entry.
fn bounded(mutation: Mutation, losses: u8, crashes: u8) -> Writers {
    let bounds = Bounds { terms: 2, losses, crashes, sends: 1 };
    Writers { mutation, requests: vec![Request::Write], bounds, trimming: Trimming::Bounded(1) }
}

#[test]
fn whatever_two_writers_the_log_and_clients_do_no_answer_is_wrong_and_no_request_is_carried_out_twice() {
    assert!(explored(takeovers(Mutation::None)) > 10_000);
}

#[test]
fn whatever_is_lost_what_was_trimmed_is_on_two_disks_and_every_controller_comes_back() {
    assert!(explored(trimming(Mutation::None)) > 1_000);
}

#[test]
fn whatever_the_bound_of_the_log_cuts_off_a_disk_has_it_and_every_controller_comes_back() {
    assert!(explored(bounded(Mutation::None, 0, 1)) > 1_000);
}

#[test]
fn a_writer_whose_unanswered_entry_was_trimmed_carries_no_request_out_twice() {
    assert!(explored(bounded(Mutation::None, 1, 0)) > 1_000);
}

#[test]
fn without_the_confirmation_of_the_term_an_answer_is_stale() {
    breaks(takeovers(Mutation::NoConfirmation), &[laws::H2]);
}

#[test]
fn an_append_that_asks_for_neither_term_nor_position_breaks_the_log() {
    breaks(takeovers(Mutation::NoFence), &[laws::H3]);
}

#[test]
fn an_append_that_asks_for_no_position_breaks_the_log() {
    breaks(takeovers(Mutation::NoPosition), &[laws::H3]);
}

#[test]
fn an_append_that_asks_for_no_term_is_one_after_another_controller_leads() {
    breaks(takeovers(Mutation::NoTerm), &[laws::H3]);
}

#[test]
fn a_request_without_its_id_is_carried_out_twice() {
    breaks(takeovers(Mutation::NoRequestId), &[laws::H4]);
}

#[test]
fn trimming_of_what_is_applied_but_not_durable_is_found() {
    breaks(trimming(Mutation::TrimsApplied), &[laws::H8]);
}

#[test]
fn trimming_beyond_the_bound_of_what_is_applied_but_not_durable_is_found() {
    breaks(bounded(Mutation::TrimsApplied, 0, 0), &[laws::H8]);
}
