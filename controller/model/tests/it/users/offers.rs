//! Access to offers, by grants and within the scopes of tokens.

use periapt_host_api::{
    ErrorCode,
    access::ModelAccess,
    command::{Command, ControllerCommand},
    offer::OfferAccess,
    user::TokenScope,
};
use periapt_model::{Input, offer_details, scope_admits_request};

use super::{registered, user};
use crate::world::World;

#[test]
fn an_offer_is_seen_and_consumed_by_those_who_were_granted_it() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    let offer = Command::Offer {
        application: "db".parse().unwrap(),
        endpoints: ["server".parse().unwrap()].into(),
        name: None,
        description: None,
    };
    world.run(offer).unwrap();
    registered(&mut world, "jane");
    let url: periapt_host_api::offer::OfferUrl = "admin/m.db".parse().unwrap();
    let change = |access| ControllerCommand::GrantOffer {
        offer: "admin/m.db".parse().unwrap(),
        user: "jane".parse().unwrap(),
        access,
    };
    let jane = user("jane");
    assert_eq!(offer_details(&world.root, &jane, &url).unwrap_err().code, ErrorCode::NotFound);
    let foreign = world.ask(&jane, &Input::Controller(change(OfferAccess::Admin))).unwrap_err();
    assert_eq!(foreign.message, "offer \"admin/m.db\" not found");
    world.control(change(OfferAccess::Read)).unwrap();
    let seen = offer_details(&world.root, &jane, &url).unwrap();
    assert_eq!((seen.access, seen.connections.len()), (OfferAccess::Read, 0));
    let refused = world.ask(&jane, &Input::Controller(change(OfferAccess::Admin))).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PermissionDenied, "to read an offer is not to grant it");
    // A model in which jane may write, to consume the offer from.
    let other = world.add_model("shop");
    let write = Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Write };
    world.ask(&user("admin"), &Input::Model(other, write)).unwrap();
    let consume = Input::Model(other, Command::Consume { offer: url.clone(), application: None });
    assert_eq!(world.ask(&jane, &consume).unwrap_err().code, ErrorCode::PermissionDenied);
    world.control(change(OfferAccess::Consume)).unwrap();
    world.ask(&jane, &consume).unwrap();
    let revoke = ControllerCommand::RevokeOffer {
        offer: url.clone(),
        user: "jane".parse().unwrap(),
        access: OfferAccess::Read,
    };
    world.control(revoke).unwrap();
    assert_eq!(offer_details(&world.root, &jane, &url).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn the_scope_of_a_token_holds_for_the_models_of_offers() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    world.offer("db", &["server"]).unwrap();
    let (own, shop) = (world.model, world.add_model("shop"));
    let url = |text: &str| text.parse::<periapt_host_api::offer::OfferUrl>().unwrap();
    let jane = || "jane".parse().unwrap();
    let access = OfferAccess::Read;
    let granted = |offer| Input::Controller(ControllerCommand::GrantOffer { offer, user: jane(), access });
    let revoked = |offer| Input::Controller(ControllerCommand::RevokeOffer { offer, user: jane(), access });
    let consumed = |offer| Input::Model(shop, Command::Consume { offer, application: None });
    for offer in ["admin/m.db", "m.db"] {
        for input in [granted(url(offer)), revoked(url(offer)), consumed(url(offer))] {
            let admits = |models| {
                let scope = TokenScope { access: ModelAccess::Admin, models };
                scope_admits_request(&world.root, &user("admin"), &scope, &input)
            };
            assert!(!admits(vec![shop]), "{input:?}");
            assert!(admits(vec![shop, own]) && admits(vec![]), "{input:?}");
        }
    }
    let scope = TokenScope { access: ModelAccess::Write, models: vec![own] };
    let input = granted(url("admin/m.db"));
    assert!(!scope_admits_request(&world.root, &user("admin"), &scope, &input), "a grant needs admin");
}
