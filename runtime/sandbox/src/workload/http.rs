//! Workloads that serve HTTP: an instance for each request.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    Method, Request, Response,
    header::{CONTENT_LENGTH, HOST},
};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use periapt_host_api::workloads::WorkloadInterface;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};
use wasmtime_wasi_http::{
    Error, WasiBody, WasiHttpView as _,
    p2::bindings::{
        ProxyPre,
        http::types::{ErrorCode, Scheme},
    },
    p2::body::HostOutgoingBody,
};

use super::{
    body::{FailureMark, Guest, ResponseBody},
    engine::{CompiledWorkload, UnfitWorkload, WorkloadEngine},
    failure::{Bounds, RequestFailure, is_busy, reason},
    inputs::{Streams, WorkloadInputs},
    log::Form,
    state::WorkloadState,
};
use crate::Budgets;

/// The most characters of a request's path in a line of the log.
const LOGGED_PATH: usize = 200;

/// The time in which the last lines of an instance must find room in the log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The budgets of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBudgets {
    /// The CPU time, counted as fuel, as for hooks.
    pub cpu: Duration,
    /// The time from the begin of the guest to the end of its response.
    pub time: Duration,
    /// The time for which a request waits for a free instance.
    pub queue: Duration,
    /// The most bytes of the request's body.
    pub request_bytes: u64,
    /// The most bytes of the response's body.
    pub response_bytes: u64,
}

impl Default for RequestBudgets {
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(10),
            time: Duration::from_secs(60),
            queue: Duration::from_secs(10),
            request_bytes: 64 << 20,
            response_bytes: 1 << 30,
        }
    }
}

/// A workload that serves HTTP. Clones are cheap, and share the bound of instances.
#[derive(Clone)]
pub struct HttpWorkload(Arc<Inner>);

struct Inner {
    engine: WorkloadEngine,
    proxy: ProxyPre<WorkloadState>,
    inputs: WorkloadInputs,
    budgets: RequestBudgets,
    permits: Arc<Semaphore>,
}

impl HttpWorkload {
    /// Prepares a component for its requests.
    ///
    /// # Errors
    /// The component is no server, or imports what there is not.
    pub fn new(
        engine: &WorkloadEngine,
        workload: &CompiledWorkload,
        inputs: WorkloadInputs,
        budgets: RequestBudgets,
    ) -> Result<Self, UnfitWorkload> {
        let instance = engine.link(workload, WorkloadInterface::Http)?;
        let proxy = ProxyPre::new(instance).map_err(UnfitWorkload::Unfit)?;
        let permits = Arc::new(Semaphore::new(engine.pool().instances.max(1) as usize));
        Ok(Self(Arc::new(Inner { engine: engine.clone(), proxy, inputs, budgets, permits })))
    }

    /// Answers a request in an instance of its own. Dropping the future, or the response before its end, ends the
    /// instance.
    ///
    /// # Errors
    /// [`RequestFailure`], which is in the workload's log, too, unless it is the client's fault.
    pub async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, RequestFailure>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let RequestBudgets { queue, request_bytes, response_bytes, .. } = self.0.budgets;
        let title = title(&request)?;
        if request.body().size_hint().lower() > request_bytes {
            return Err(RequestFailure::TooLarge(request_bytes));
        }
        let has_no_body = request.method() == Method::HEAD;
        let limit = usize::try_from(request_bytes).unwrap_or(usize::MAX);
        let request = request.map(|body| bounded(body, limit));
        let permit = timeout(queue, Arc::clone(&self.0.permits).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else { return Err(self.noted(&title, RequestFailure::Busy)) };
        let (sender, receiver) = oneshot::channel();
        let failed = FailureMark::default();
        let run = self.clone().run(request, sender, failed.clone(), title.clone(), permit);
        let mut guest = Guest(tokio::spawn(run));
        match receiver.await {
            Ok(Ok(response)) => {
                let declared = response.headers().get(CONTENT_LENGTH);
                let declared = declared.and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
                let is_bodiless =
                    has_no_body || declared == Some(0) || matches!(response.status().as_u16(), 204 | 304);
                let response =
                    response.map(|body| ResponseBody::new(body, failed, guest, response_bytes, declared));
                Ok(match is_bodiless {
                    true => response.map(ResponseBody::without_content),
                    false => response,
                })
            }
            Ok(Err(code)) => {
                let failure = RequestFailure::Failed(format!("it answered with the error {code:?}"));
                Err(self.noted(&title, failure))
            }
            Err(_) => {
                guest.ended().await?;
                let failure = RequestFailure::Failed("it ended without an answer".to_owned());
                Err(self.noted(&title, failure))
            }
        }
    }

    /// Runs the guest until it returns, although its response may be complete before.
    async fn run(
        self,
        request: Request<WasiBody>,
        sender: oneshot::Sender<Result<Response<WasiBody>, ErrorCode>>,
        failed: FailureMark,
        title: String,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), RequestFailure> {
        let Inner { engine, proxy, inputs, budgets, .. } = &*self.0;
        let streams = Streams::new(Form::Lines, &inputs.log);
        let store = inputs.context(&streams).and_then(|mut context| {
            engine.store(context.build(), &inputs.outbound, Budgets::cpu(budgets.cpu))
        });
        let mut store = store.map_err(|error| {
            self.noted(&title, RequestFailure::Failed(format!("it could not be started: {error:#}")))
        })?;
        let mut has_started = false;
        let call = async {
            engine.within_quota().await;
            let mut http = store.data_mut().http();
            let request = http.new_incoming_request(Scheme::Http, request)?;
            let response = http.new_response_outparam(sender)?;
            let guest = proxy.instantiate_async(&mut store).await?;
            has_started = true;
            guest.wasi_http_incoming_handler().call_handle(&mut store, request, response).await
        };
        let ended = timeout(budgets.time, call).await;
        let limiter = &store.data().limiter;
        let mut outcome = match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if !has_started && is_busy(&error, limiter) => Err(RequestFailure::Busy),
            Ok(Err(error)) => {
                let bounds = Bounds { limiter, cpu: Some(budgets.cpu) };
                Err(RequestFailure::Failed(reason(&error, &bounds)))
            }
            Err(_) => Err(RequestFailure::TimedOut(budgets.time)),
        };
        // A body that is neither finished nor dropped would end as if it were whole.
        let is_unfinished = store.data_mut().table.iter_mut().any(|entry| entry.is::<HostOutgoingBody>());
        if outcome.is_ok() && is_unfinished {
            outcome = Err(RequestFailure::Failed("it returned before the end of a body".to_owned()));
        }
        if outcome.is_err() {
            // Before the store is dropped, and the body's end with it.
            failed.set();
        }
        drop(store);
        let _ = timeout(LAST_LINES, streams.finish()).await;
        drop(permit);
        outcome.map_err(|failure| self.noted(&title, failure))
    }

    /// Logs a failure, and returns it.
    fn noted(&self, title: &str, failure: RequestFailure) -> RequestFailure {
        self.0.inputs.log.note(&format!("{title}: {failure}"));
        failure
    }
}

impl fmt::Debug for HttpWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWorkload").field("budgets", &self.0.budgets).finish_non_exhaustive()
    }
}

/// Returns the request's method and path for the log. A request without a host in text cannot be handed to a guest.
fn title<B>(request: &Request<B>) -> Result<String, RequestFailure> {
    let host = request.headers().get(HOST);
    if request.uri().authority().is_none() && host.and_then(|host| host.to_str().ok()).is_none() {
        return Err(RequestFailure::Invalid("the request names no host"));
    }
    let path: String = request.uri().path().chars().take(LOGGED_PATH).collect();
    Ok(format!("{} {path}", request.method().as_str().chars().take(LOGGED_PATH).collect::<String>()))
}

fn bounded<B>(body: B, limit: usize) -> WasiBody
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    Limited::new(body, limit)
        .map_err(move |error| match error.is::<LengthLimitError>() {
            true => Error::HttpRequestBodySize(Some(limit as u64)),
            false => Error::HttpProtocolError,
        })
        .boxed_unsync()
}
