//! The routes `/v1/models/MODEL/logs`, `/journal` and `/status-history`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::{Stream, stream};
use http::Version;
use periapt_host_api::{
    Refusal,
    api::{Journal, JournalQuery},
    logs::{LogLevel, LogLine, LogQuery},
    status::{StatusHistory, StatusHistoryQuery},
};
use periapt_model::{Right, Subject};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{caller::RequestCaller, failure::HandlerResult, models::readable, query::Query, streams},
    bounds::StreamOf,
    clock::Clock,
    history,
    records::{JournalReader, LogFilter, LogReader, unreadable},
    seal::SecretSealer,
    state::{Durable, Streams},
    watch::{LogOf, Subscriber},
};

fn log_query(text: Option<&str>) -> Result<LogQuery, Refusal> {
    let mut query = Query::parse(text)?;
    let level = query.one::<String>("level")?.map(|level| {
        let wrong = || format!("query level={level}: TRACE, DEBUG, INFO, WARNING or ERROR expected");
        level.parse::<LogLevel>().map_err(|()| Refusal::bad_request(wrong()))
    });
    let read = LogQuery {
        tail: query.one("tail")?,
        replay: query.flag("replay")?,
        follow: query.flag("follow")?,
        include: query.all("include")?,
        exclude: query.all("exclude")?,
        include_module: query.all("include-module")?,
        exclude_module: query.all("exclude-module")?,
        level: level.transpose()?,
    };
    query.end()?;
    Ok(read)
}

pub(crate) async fn logs(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    who: RequestCaller,
    Path(model): Path<String>,
    version: Version,
    RawQuery(query): RawQuery,
) -> HandlerResult<Response> {
    let query = log_query(query.as_deref())?;
    let (_, state) = readable(&durable, &who, &model)?;
    let permit = streams.limits.admit(StreamOf::Model(state.model().uuid), version)?;
    // Checked before the first byte, so that an unreadable store gives an error and not an empty log.
    durable.records()?;
    let reading = Reading {
        follow: query.follow,
        reader: LogReader::new(&state.model().uuid, LogFilter::new(query)),
        subscriber: streams.watches.logs.join(LogOf(state.model().uuid), durable.current(), || ()),
        durable,
        stop: streams.stop,
    };
    Ok(streams::groups(permit, reading.stream()))
}

/// A log that is being streamed.
struct Reading {
    durable: Durable,
    stop: CancellationToken,
    subscriber: Subscriber<LogOf>,
    reader: LogReader,
    follow: bool,
}

impl Reading {
    fn stream(self) -> impl Stream<Item = Result<Vec<LogLine>, Refusal>> + Send {
        stream::unfold(self, |mut reading| async move { reading.next().await.map(|lines| (lines, reading)) })
    }

    /// Returns the next lines, or none when there are no more, or the controller stops.
    async fn next(&mut self) -> Option<Result<Vec<LogLine>, Refusal>> {
        loop {
            // Taken before reading: later writes get another number.
            let shown = self.subscriber.shown().number;
            let store = match self.durable.records() {
                Ok(store) => store,
                Err(refusal) => return Some(Err(refusal)),
            };
            match self.reader.page(store).await {
                Ok(Some(lines)) if lines.is_empty() => {}
                Ok(Some(lines)) => return Some(Ok(lines)),
                Ok(None) if self.follow => {
                    while self.subscriber.shown().number == shown {
                        tokio::select! {
                            () = self.stop.cancelled() => return None,
                            () = self.subscriber.notified() => {}
                        }
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a log cannot be read further");
                    return Some(Err(unreadable(&error)));
                }
            }
        }
    }
}

fn journal_query(text: Option<&str>) -> Result<JournalQuery, Refusal> {
    let mut query = Query::parse(text)?;
    let read = JournalQuery {
        unit: query.one("unit")?,
        seq: query.one("seq")?,
        calls: query.flag("calls")?,
        secrets: query.flag("secrets")?,
        after: query.one("after")?,
    };
    query.end()?;
    match (&read.unit, read.seq.is_some() || read.calls) {
        (None, true) => Err(Refusal::bad_request("seq and calls are asked of one unit: name it")),
        _ => Ok(read),
    }
}

pub(crate) async fn journal(
    State(durable): State<Durable>,
    State(sealer): State<SecretSealer>,
    who: RequestCaller,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<Journal>> {
    let query = journal_query(query.as_deref())?;
    let (published, state) = readable(&durable, &who, &model)?;
    if query.secrets {
        who.require(&published.root, Right::AdministerModel, Subject::Model(&state))?;
    }
    let store = durable.records()?;
    let uuid = state.model().uuid;
    let mut journal = JournalReader::new(&*store, uuid, &query).page(&state).await?;
    if query.secrets {
        for entry in &mut journal.entries {
            let opened = sealer.open_journal(&uuid, entry.record.clone())?;
            entry.record = if query.calls { opened } else { opened.without_calls() };
        }
    }
    Ok(Json(journal))
}

pub(crate) async fn status_history(
    State(durable): State<Durable>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<StatusHistory>> {
    let mut query = Query::parse(query.as_deref())?;
    let entity: Option<String> = query.one("entity")?;
    let wanted = StatusHistoryQuery {
        entity: entity.ok_or_else(|| Refusal::bad_request("query entity is missing: whose history?"))?,
        kind: query.one("type")?.unwrap_or_default(),
        tail: query.one("tail")?,
        since: query.one("since")?,
    };
    query.end()?;
    let (published, state) = readable(&durable, &who, &model)?;
    let (store, now_ms) = (durable.records()?, clock.monotonic_ms());
    let entries = history::history(&*store, &published.root, &state, &wanted, now_ms).await?;
    Ok(Json(StatusHistory { entries }))
}
