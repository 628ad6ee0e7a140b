//! Offers across models, and what consumes them.

mod consume;
mod consumers;
mod find;
mod list;
mod make;

use super::{Verb, verbs};

verbs! {
    /// Offers across models, and what consumes them.
    Offers {
        make::Offer,
        list::Offers,
        find::ShowOffer,
        find::FindOffers,
        make::RemoveOffer,
        consume::Consume,
        consume::RemoveSaas,
    }
}
