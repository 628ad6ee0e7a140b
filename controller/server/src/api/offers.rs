//! The routes `/v1/offers` and `/v1/models/MODEL/offers`.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
};
use periapt_host_api::{
    ApplicationName, InterfaceName, ModelName, UserName,
    offer::{OfferDetails, OfferUrl},
};
use periapt_model::{Right, models_with_offers, offer_details, offers_of_model};

use crate::{
    api::{
        caller::{RequestCaller, denied},
        failure::HandlerResult,
        models::readable,
        query::Query,
    },
    state::Durable,
};

/// Returns the offers of all models that the caller has access to.
pub(crate) async fn find(
    State(durable): State<Durable>,
    who: RequestCaller,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<Vec<OfferDetails>>> {
    let mut query = Query::parse(query.as_deref())?;
    let url: Option<OfferUrl> = query.one("url")?;
    let owner: Option<UserName> = query.one("owner")?;
    let model: Option<ModelName> = query.one("model")?;
    let offer: Option<ApplicationName> = query.one("offer")?;
    let interface: Option<InterfaceName> = query.one("interface")?;
    query.end()?;
    let published = durable.current();
    let root = &published.root;
    let found = match url {
        Some(url) => {
            let found = offer_details(root, &who.caller, &url)?;
            let owner = found.url.owner.as_ref();
            let model = owner.and_then(|owner| root.model_named(owner, &found.url.model));
            let uuid = model.map(|state| state.model().uuid);
            match who.admits(Right::FindOffer, uuid.as_ref()) {
                true => vec![found],
                false => return Err(denied().into()),
            }
        }
        None => {
            let models = models_with_offers(root, &who.caller).into_iter().filter(|state| {
                let it = state.model();
                who.admits(Right::FindOffer, Some(&it.uuid))
                    && owner.as_ref().is_none_or(|owner| it.owner == *owner)
                    && model.as_ref().is_none_or(|model| it.name == *model)
            });
            models.flat_map(|state| offers_of_model(root, state, &who.caller)).collect()
        }
    };
    let fits = |found: &OfferDetails| {
        let mut endpoints = found.endpoints.values();
        offer.as_ref().is_none_or(|offer| found.name == *offer)
            && interface.as_ref().is_none_or(|wanted| endpoints.any(|it| it.interface == *wanted))
    };
    Ok(Json(found.into_iter().filter(fits).collect()))
}

/// Returns the offers of one model.
pub(crate) async fn of_model(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<Vec<OfferDetails>>> {
    let (published, state) = readable(&durable, &who, &model)?;
    Ok(Json(offers_of_model(&published.root, &state, &who.caller)))
}
