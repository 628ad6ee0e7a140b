//! The names of models that the clients of all hosts compete for, before a checker of linearizability that knows nothing
//! of logs: each name is a register that is written once, and a client is told that a name is taken only after another
//! one may have taken it.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{anyhow, ensure};
use parking_lot::Mutex;
use stateright::semantics::{
    ConsistencyTester as _, LinearizabilityTester,
    write_once_register::{WORegister, WORegisterOp, WORegisterRet},
};

/// The attempts to take names, by name.
#[derive(Default)]
pub(crate) struct Contested {
    moments: AtomicUsize,
    attempts: Mutex<BTreeMap<String, Vec<Attempt>>>,
}

/// An attempt to take a name.
#[derive(Debug)]
struct Attempt {
    called: usize,
    returned: usize,
    told: Option<Told>,
}

/// The answer to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The client has the name.
    Taken,
    /// Another client has it.
    Exists,
}

impl Contested {
    /// Returns the present moment. Moments of all clients are ordered as they happened.
    pub(crate) fn moment(&self) -> usize {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    /// Adds an attempt that has ended, and may have had an effect. None: its client was not told which.
    pub(crate) fn ended(&self, name: String, called: usize, told: Option<Told>) {
        let returned = self.moment();
        self.attempts.lock().entry(name).or_default().push(Attempt { called, returned, told });
    }

    /// Checks the history of each name, and returns the number of names.
    pub(crate) fn check(&self) -> anyhow::Result<usize> {
        let attempts = self.attempts.lock();
        for (name, attempts) in &*attempts {
            ensure!(is_linearizable(attempts)?, "the history of {name} is not linearizable: {attempts:#?}");
        }
        Ok(attempts.len())
    }
}

fn is_linearizable(attempts: &[Attempt]) -> anyhow::Result<bool> {
    let mut moments = BTreeMap::new();
    for (index, Attempt { called, returned, told }) in attempts.iter().enumerate() {
        moments.insert(called, (index, None));
        if told.is_some() {
            moments.insert(returned, (index, *told));
        }
    }
    let mut tester = LinearizabilityTester::new(WORegister(None));
    for (index, told) in moments.into_values() {
        let added = match told {
            None => tester.on_invoke(index, WORegisterOp::Write(index)),
            Some(Told::Taken) => tester.on_return(index, WORegisterRet::WriteOk),
            Some(Told::Exists) => tester.on_return(index, WORegisterRet::WriteFail),
        };
        added.map_err(|error| anyhow!(error))?;
    }
    Ok(tester.is_consistent())
}

#[test]
fn a_name_that_two_clients_have_or_that_nobody_can_have_is_found() -> anyhow::Result<()> {
    let attempt = |called, returned, told| Attempt { called, returned, told };
    let (taken, exists) = (Some(Told::Taken), Some(Told::Exists));
    let holds = |attempts: &[Attempt]| is_linearizable(attempts);
    ensure!(holds(&[attempt(0, 3, taken), attempt(1, 2, exists), attempt(4, 5, exists)])?);
    ensure!(holds(&[attempt(0, 1, None), attempt(2, 3, exists)])?);
    ensure!(!holds(&[attempt(0, 1, taken), attempt(2, 3, taken)])?, "two have it");
    ensure!(!holds(&[attempt(0, 1, exists), attempt(2, 3, taken)])?, "it was refused before it was taken");
    Ok(())
}
