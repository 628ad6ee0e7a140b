//! The route `/v1/audit`.

use axum::{
    Json,
    extract::{RawQuery, State},
};
use periapt_host_api::{ErrorCode, Refusal, audit::AuditPage};
use periapt_model::RecordBody;
use periapt_store::{Order, codec, key};

use crate::{
    api::{failure::HandlerResult, query::Query},
    records::unreadable,
    state::Durable,
    tasks::{cursor, parse_cursor},
};

/// The most entries of one page.
const PAGE: usize = 500;

/// Returns a page of the audit log, the oldest entry first.
pub(crate) async fn page(
    State(durable): State<Durable>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<AuditPage>> {
    let mut query = Query::parse(query.as_deref())?;
    let after: Option<String> = query.one("after")?;
    query.end()?;
    let after = after.as_deref().map(parse_cursor).transpose()?;
    let store = durable.records()?;
    let order = Order::OldestFirst { after };
    let records = store.records(key::AUDIT, order, PAGE).await.map_err(|error| unreadable(&error))?;
    let next = records.last().filter(|_| records.len() == PAGE).map(|last| cursor(Some(last.position)));
    let mut entries = Vec::with_capacity(records.len());
    for record in &records {
        match codec::body(record) {
            Ok(RecordBody::Audit(entry)) => entries.push(*entry),
            // The reader finds the gap.
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, "an entry of the audit log cannot be read");
                let text = format!("an entry of the audit log cannot be read: {error}");
                return Err(Refusal::new(ErrorCode::Internal, text).into());
            }
        }
    }
    Ok(Json(AuditPage { entries, next }))
}
