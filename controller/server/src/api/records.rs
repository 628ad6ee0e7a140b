//! `/v1/models/MODEL/logs` and `/journal`.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::{Stream, stream};
use http::Version;
use periapt_host_api::{
    Refusal, UnitName,
    api::{Journal, LogQuery},
    logs::{LogLevel, LogLine},
};

use crate::{
    api::{caller::Who, failure::Answer, models::readable, places::StreamOf, query::Query, streams},
    engine::Engine,
    records::{self, LogFilter, LogReader},
    watch::{LogOf, Seat},
};

/// The most hooks that one answer holds, and of each unit where all are asked for.
const MAX_HOOKS: usize = 50;
const MAX_HOOKS_OF_EACH: usize = 10;
/// The most units that an answer about all of them looks at.
const MAX_UNITS: usize = 1_000;

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
        level: level.transpose()?,
    };
    query.end()?;
    Ok(read)
}

pub(crate) async fn logs(
    State(engine): State<Engine>,
    who: Who,
    Path(model): Path<String>,
    version: Version,
    RawQuery(query): RawQuery,
) -> Answer<Response> {
    let query = log_query(query.as_deref())?;
    let (_, state) = readable(&engine, &who, &model)?;
    let place = engine.places.take(StreamOf::Model(state.model().uuid), version)?;
    // Before the first byte, so that a store that cannot be read is an error and no empty log.
    engine.records()?;
    let reading = Reading {
        follow: query.follow,
        reader: LogReader::new(&state.model().uuid, LogFilter::new(query)),
        seat: engine.watches.logs.join(LogOf(state.model().uuid), engine.current(), || ()),
        engine,
    };
    Ok(streams::groups(place, reading.stream()))
}

/// A log on its way out.
struct Reading {
    engine: Engine,
    seat: Seat<LogOf>,
    reader: LogReader,
    follow: bool,
}

impl Reading {
    fn stream(self) -> impl Stream<Item = Vec<LogLine>> + Send {
        stream::unfold(self, |mut reading| async move { reading.next().await.map(|lines| (lines, reading)) })
    }

    async fn next(&mut self) -> Option<Vec<LogLine>> {
        loop {
            // Before reading: what is written meanwhile has another number.
            let shown = self.seat.shown().number;
            let store = self.engine.records().ok()?;
            match self.reader.page(store).await {
                Ok(Some(lines)) if lines.is_empty() => {}
                Ok(Some(lines)) => return Some(lines),
                Ok(None) if self.follow => {
                    while self.seat.shown().number == shown {
                        tokio::select! {
                            () = self.engine.stop.cancelled() => return None,
                            () = self.seat.rung() => {}
                        }
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a log cannot be read further");
                    return None;
                }
            }
        }
    }
}

pub(crate) async fn journal(
    State(engine): State<Engine>,
    who: Who,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<Json<Journal>> {
    let mut query = Query::parse(query.as_deref())?;
    let unit: Option<UnitName> = query.one("unit")?;
    query.end()?;
    let (_, state) = readable(&engine, &who, &model)?;
    let (store, uuid) = (engine.records()?, state.model().uuid);
    let entries = match unit {
        // One that is gone may still have a journal.
        Some(unit) => records::journal(&*store, &uuid, &unit, MAX_HOOKS).await?,
        None => {
            let mut all = Vec::new();
            for unit in state.units().take(MAX_UNITS) {
                all.extend(records::journal(&*store, &uuid, &unit.name, MAX_HOOKS_OF_EACH).await?);
            }
            all.sort_by_key(|(position, _)| *position);
            all
        }
    };
    Ok(Json(Journal { entries: entries.into_iter().map(|(_, entry)| entry).collect() }))
}
