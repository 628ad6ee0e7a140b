//! Relations across models: `offer`, `offers`, `find-offers`, `show-offer`, `remove-offer`, `consume`, `remove-saas`,
//! `suspend-relation`, `resume-relation`.

mod consume;
mod find;
mod list;
mod make;
mod reference;
mod suspend;

pub(crate) use consume::{Consume, RemoveSaas, consume};
pub(crate) use find::{FindOffers, ShowOffer};
pub(crate) use list::Offers;
pub(crate) use make::{Offer, RemoveOffer};
pub(crate) use reference::{OfferRef, RemoteEnd};
pub(crate) use suspend::{ResumeRelation, SuspendRelation};
