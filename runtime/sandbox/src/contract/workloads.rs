//! The interface `workloads`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use periapt_hook::{CallError, HookContext, Received as HookReceived, ReplayedAnswer};
use wasmtime::{StoreContextMut, component::LinkerInstance};

use super::{
    bindings::periapt::charm::workloads::{Received, Target},
    types::Error,
    weight::Weight as _,
};
use crate::state::HookState;

type State<'a> = StoreContextMut<'a, HookState>;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    interface.func_wrap_async("connect", |mut store: State<'_>, (target,): (Target,)| {
        Box::new(async move {
            begin(&store, target.weight())?;
            let shown = match &target {
                Target::Pebble(container) => container.clone(),
                Target::Port(port) => port.to_string(),
            };
            let recorded = replayed(&store, |context| context.replayed_connect(&shown))?;
            let answer = match recorded {
                Some(answer) => answer,
                None => {
                    let began = Instant::now();
                    let answer = connect(&mut store, &target).await;
                    let waited = waited(&store, began);
                    let access = &store.data().access;
                    access.call(|context, _| context.workload_connected(&shown, &answer, waited));
                    answer
                }
            };
            end(&mut store, 0)?;
            Ok((answer.map_err(Error::from),))
        })
    })?;
    interface.func_wrap_async(
        "read",
        |mut store: State<'_>, (number, most, timeout): (u32, u32, Option<u32>)| {
            Box::new(async move {
                begin(&store, 0)?;
                let recorded = replayed(&store, |context| context.replayed_read((number, most)))?;
                let answer = match recorded {
                    Some(answer) => answer,
                    None => {
                        let began = Instant::now();
                        let answer = read(&mut store, number, most, timeout).await;
                        let waited = waited(&store, began);
                        let access = &store.data().access;
                        access.call(|context, _| context.workload_read((number, most), &answer, waited));
                        answer
                    }
                };
                let answer = answer.map(Received::from).map_err(Error::from);
                end(&mut store, answer.weight())?;
                Ok((answer,))
            })
        },
    )?;
    interface.func_wrap_async(
        "write",
        |mut store: State<'_>, (number, bytes, timeout): (u32, Vec<u8>, Option<u32>)| {
            Box::new(async move {
                begin(&store, bytes.weight())?;
                let recorded = replayed(&store, |context| context.replayed_write((number, &bytes)))?;
                let answer = match recorded {
                    Some(answer) => answer,
                    None => {
                        let began = Instant::now();
                        let answer = write(&mut store, number, &bytes, timeout).await;
                        let waited = waited(&store, began);
                        let access = &store.data().access;
                        access.call(|context, _| context.workload_written((number, &bytes), &answer, waited));
                        answer
                    }
                };
                end(&mut store, 0)?;
                Ok((answer.map_err(Error::from),))
            })
        },
    )?;
    interface.func_wrap_async("shutdown", |mut store: State<'_>, (number,): (u32,)| {
        Box::new(async move {
            begin(&store, 0)?;
            let access = Arc::clone(&store.data().access);
            let recorded = access.call(|context, _| context.replayed_shutdown(number));
            access.check()?;
            let answer = match recorded {
                Some(answer) => answer,
                None => {
                    let answer = shutdown(&mut store, number).await;
                    access.call(|context, _| context.workload_shut(number, &answer));
                    answer
                }
            };
            end(&mut store, 0)?;
            Ok((answer.map_err(Error::from),))
        })
    })?;
    interface.func_wrap("close", |mut store: State<'_>, (number,): (u32,)| {
        begin(&store, 0)?;
        store.data().access.call(|context, _| context.workload_closed(number));
        store.data_mut().connections.close(number);
        end(&mut store, 0)
    })
}

async fn connect(store: &mut State<'_>, target: &Target) -> Result<u32, CallError> {
    store.data().connections.check_room()?;
    let (access, services) = (Arc::clone(&store.data().access), Arc::clone(&store.data().services));
    let target = access.call(|context, _| match target {
        Target::Pebble(container) => context.pebble_target(container),
        Target::Port(port) => context.port_target(*port),
    })?;
    let connected = services.connect(target.clone()).await?;
    let number = store.data_mut().connections.add(connected)?;
    access.call(|context, _| context.workload_opened(number, &target));
    Ok(number)
}

async fn read(
    store: &mut State<'_>,
    number: u32,
    most: u32,
    timeout: Option<u32>,
) -> Result<HookReceived, CallError> {
    let mut connection = store.data_mut().connections.take(number)?;
    let answer = connection.read(most, timeout).await;
    store.data_mut().connections.put_back(number, connection);
    answer
}

async fn write(
    store: &mut State<'_>,
    number: u32,
    bytes: &[u8],
    timeout: Option<u32>,
) -> Result<u32, CallError> {
    let mut connection = store.data_mut().connections.take(number)?;
    let answer = connection.write(bytes, timeout).await;
    store.data_mut().connections.put_back(number, connection);
    answer
}

async fn shutdown(store: &mut State<'_>, number: u32) -> Result<(), CallError> {
    let mut connection = store.data_mut().connections.take(number)?;
    let answer = connection.shutdown().await;
    store.data_mut().connections.put_back(number, connection);
    answer
}

/// Returns the recorded answer of a replay, and moves the hook's clock by the time that the call waited.
fn replayed<T>(
    store: &State<'_>,
    answer: impl FnOnce(&mut HookContext) -> Option<ReplayedAnswer<T>>,
) -> wasmtime::Result<Option<Result<T, CallError>>> {
    let state = store.data();
    let recorded = state.access.call(|context, _| answer(context));
    state.access.check()?;
    Ok(recorded.map(|(answer, waited)| {
        state.clock.waited(waited);
        answer
    }))
}

/// Counts a call with its bytes.
fn begin(store: &State<'_>, bytes: u64) -> wasmtime::Result<()> {
    Ok(store.data().meter.call(bytes)?)
}

/// Settles a call whose answer has these bytes.
fn end(store: &mut State<'_>, bytes: u64) -> wasmtime::Result<()> {
    let meter = Arc::clone(&store.data().meter);
    meter.bytes(bytes);
    meter.settle(store)
}

/// Returns the time that a call waited, by which it moves the hook's clock: whole milliseconds, as the journal has it.
fn waited(store: &State<'_>, began: Instant) -> Duration {
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let waited = Duration::from_millis(milliseconds);
    store.data().clock.waited(waited);
    waited
}

impl From<HookReceived> for Received {
    fn from(received: HookReceived) -> Self {
        match received {
            HookReceived::Bytes(bytes) => Self::Bytes(bytes),
            HookReceived::End => Self::End,
            HookReceived::Nothing => Self::Nothing,
        }
    }
}
