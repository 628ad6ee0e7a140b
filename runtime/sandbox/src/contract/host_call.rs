//! Adapters from guest calls to the hook's context.

use std::sync::Arc;

use periapt_hook::{CallAnswer, CallError, CallTime, HookContext, MAX_ASKED};
use wasmtime::{
    StoreContextMut,
    component::{ComponentNamedList, ComponentType, Lift, LinkerInstance, Lower},
};

use super::{types, weight::Weight};
use crate::state::HookState;

/// Links a function that the context answers at once.
pub(super) fn link<P, R>(
    interface: &mut LinkerInstance<'_, HookState>,
    name: &str,
    call: fn(&mut HookContext, CallTime, P) -> R,
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Weight + 'static,
    R: ComponentType + Lower + Weight + Send + Sync + 'static,
{
    interface.func_wrap(name, move |mut store: StoreContextMut<'_, HookState>, arguments: P| {
        let state = store.data();
        state.meter.call(arguments.weight())?;
        let answer = state.access.call(|context, now| call(context, now, arguments));
        state.access.check()?;
        state.meter.bytes(answer.weight());
        let meter = Arc::clone(&state.meter);
        meter.settle(&mut store)?;
        Ok((answer,))
    })
}

/// Links a function without a result.
pub(super) fn link_silent<P>(
    interface: &mut LinkerInstance<'_, HookState>,
    name: &str,
    call: fn(&mut HookContext, CallTime, P),
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Weight + 'static,
{
    interface.func_wrap(name, move |mut store: StoreContextMut<'_, HookState>, arguments: P| {
        let state = store.data();
        state.meter.call(arguments.weight())?;
        state.access.call(|context, now| call(context, now, arguments));
        state.access.check()?;
        let meter = Arc::clone(&state.meter);
        meter.settle(&mut store)
    })
}

/// Links a function that may need a lease, a secret, a resource or files. The host fetches these inputs, and calls
/// the context again.
pub(super) fn link_leader<P, R>(
    interface: &mut LinkerInstance<'_, HookState>,
    name: &str,
    call: fn(&mut HookContext, CallTime, &P) -> CallAnswer<R>,
) -> wasmtime::Result<()>
where
    P: ComponentNamedList + Lift + Weight + Send + Sync + 'static,
    R: ComponentType + Lower + Weight + Send + Sync + 'static,
{
    interface.func_wrap_async(name, move |mut store: StoreContextMut<'_, HookState>, arguments: P| {
        Box::new(async move {
            let (access, meter) = (Arc::clone(&store.data().access), Arc::clone(&store.data().meter));
            meter.call(arguments.weight())?;
            let mut asked = 0;
            let answer = loop {
                let services = Arc::clone(&store.data().services);
                let answer = access.call(|context, now| call(context, now, &arguments));
                access.check()?;
                match answer {
                    CallAnswer::Ready(answer) => break answer,
                    // A call needs at most one lease, one content and a few files.
                    _ if asked >= MAX_ASKED => return Err(wasmtime::Error::msg("a call stayed undecided")),
                    CallAnswer::NeedsLease => {
                        let lease = services.renew_lease().await;
                        access.call(|context, _| context.lease_renewed(lease));
                    }
                    CallAnswer::NeedsSecret(key) => {
                        let content = services.fetch_secret(key).await;
                        access.call(|context, _| context.secret_fetched(key, content));
                    }
                    CallAnswer::NeedsFile(request) => {
                        let answer = store.data_mut().files.answer(&request);
                        // Each file makes the context read the arguments once more.
                        let content = answer.as_ref().map_or(0, |content| content.len() as u64);
                        meter.bytes(arguments.weight().saturating_add(content));
                        meter.check(&store)?;
                        access.call(|context, _| context.file_answered(request, answer));
                    }
                    CallAnswer::NeedsResource(key) => {
                        let fetched = services.fetch_resource(key.clone()).await;
                        let filename = access.call(|context, _| {
                            context.resource_filename(&key.name).map(str::to_owned).unwrap_or_default()
                        });
                        let files = &mut store.data_mut().files;
                        let shown =
                            fetched.and_then(|file| files.show_resource(key.name.as_str(), &filename, file));
                        access.call(|context, _| context.resource_fetched(key, shown));
                    }
                }
                asked += 1;
            };
            meter.bytes(answer.weight());
            meter.settle(&mut store)?;
            Ok((answer,))
        })
    })
}

impl From<CallError> for types::Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::InvalidArgument(text) => Self::InvalidArgument(text),
            CallError::NotFound(text) => Self::NotFound(text),
            CallError::PermissionDenied(text) => Self::PermissionDenied(text),
            CallError::NotLeader(text) => Self::NotLeader(text),
            CallError::Conflict(text) => Self::Conflict(text),
            CallError::AlreadyExists(text) => Self::AlreadyExists(text),
            CallError::LimitExceeded(text) => Self::LimitExceeded(text),
            CallError::NotGranted(text) => Self::NotGranted(text),
            CallError::NotReady(text) => Self::NotReady(text),
            CallError::TryAgain(text) => Self::TryAgain(text),
            CallError::WrongContext(text) => Self::WrongContext(text),
            CallError::NotSupported(text) => Self::NotSupported(text),
            CallError::Failed(text) => Self::Failed(text),
        }
    }
}
