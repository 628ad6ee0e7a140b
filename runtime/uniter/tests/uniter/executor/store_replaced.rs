//! The view comes from another store.

use periapt_uniter::executor::{ExecutorInput, Returned, SendOutcome};

use super::bench::{Bench, fetches};

#[test]
fn a_view_of_another_store_ends_the_wait_for_a_commit() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert_eq!(
        fetches(&bench.feed(ExecutorInput::StoreReplaced)).len(),
        1,
        "config-changed is due in that one"
    );
}
