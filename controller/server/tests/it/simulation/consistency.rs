//! The histories of a simulation before a checker that knows nothing of logs.
//!
//! Commands are linearizable: the names of models are registers that are written once, and who is told that a name is
//! taken was told so after another client had taken it. Reads are not: a follower may show a state that is some moments
//! old. With them, the history is sequentially consistent: there is one order of all operations in which each client's
//! stand as it sent them, and each read shows what was written last.

use std::collections::{BTreeMap, BTreeSet};

use stateright::semantics::{
    ConsistencyTester, LinearizabilityTester, SequentialConsistencyTester,
    register::{Register, RegisterOp, RegisterRet},
    write_once_register::{WORegister, WORegisterOp, WORegisterRet},
};

use super::sessions::{Ended, Operation, Outcome};

/// The threads of operations whose end is not known begin here: they stand for no client.
const UNKNOWN: usize = 1_000;

/// Checks all histories, key by key.
///
/// # Errors
/// A key whose history has no order.
pub(super) fn check(history: &[Ended]) -> Result<(), String> {
    let names: BTreeSet<_> = history.iter().filter_map(|ended| ended.operation.added()).collect();
    for name in names {
        let of_name: Vec<_> = history.iter().filter(|ended| ended.operation.added() == Some(name)).collect();
        names_are_linearizable(&of_name).map_err(|error| format!("linearizability of {name}: {error}"))?;
    }
    let registers: BTreeSet<_> = history.iter().filter_map(|ended| ended.operation.register()).collect();
    for register in registers {
        let of_register: Vec<_> =
            history.iter().filter(|ended| ended.operation.register() == Some(register)).collect();
        registers_are_sequential(&of_register).map_err(|error| format!("order of {register}: {error}"))?;
    }
    Ok(())
}

/// Returns the moments of calls and answers in their order, with the index of the operation.
fn moments(history: &[&Ended]) -> impl Iterator<Item = (usize, bool)> {
    let mut moments = BTreeMap::new();
    for (index, ended) in history.iter().enumerate() {
        if ended.outcome != Outcome::Nothing {
            moments.insert(ended.called, (index, false));
        }
        if !matches!(ended.outcome, Outcome::Nothing | Outcome::Unknown) {
            moments.insert(ended.returned, (index, true));
        }
    }
    moments.into_values()
}

fn names_are_linearizable(history: &[&Ended]) -> Result<(), String> {
    let mut tester = LinearizabilityTester::new(WORegister(None));
    for (index, is_answer) in moments(history) {
        match is_answer {
            false => tester.on_invoke(index, WORegisterOp::Write(index))?,
            true if history[index].outcome == Outcome::Done => {
                tester.on_return(index, WORegisterRet::WriteOk)?
            }
            true => tester.on_return(index, WORegisterRet::WriteFail)?,
        };
    }
    if tester.is_consistent() { Ok(()) } else { Err(format!("{history:#?}")) }
}

fn registers_are_sequential(history: &[&Ended]) -> Result<(), String> {
    let mut tester = SequentialConsistencyTester::new(Register(String::new()));
    for (index, is_answer) in moments(history) {
        let ended = history[index];
        let thread = if ended.outcome == Outcome::Unknown { UNKNOWN + index } else { ended.client };
        match (&ended.operation, &ended.outcome, is_answer) {
            (Operation::Write(_, value), _, false) => {
                tester.on_invoke(thread, RegisterOp::Write(value.clone()))?;
            }
            (Operation::Write(..), _, true) => drop(tester.on_return(thread, RegisterRet::WriteOk)?),
            (_, _, false) => drop(tester.on_invoke(thread, RegisterOp::Read)?),
            (_, Outcome::Value(value), true) => {
                tester.on_return(thread, RegisterRet::ReadOk(value.clone()))?;
            }
            _ => return Err(format!("no read: {ended:?}")),
        }
    }
    if tester.is_consistent() { Ok(()) } else { Err(format!("{history:#?}")) }
}

impl Operation {
    fn added(&self) -> Option<&str> {
        match self {
            Self::Add(name) => Some(name),
            _ => None,
        }
    }

    fn register(&self) -> Option<&str> {
        match self {
            Self::Write(register, _) | Self::Read(register) => Some(register),
            Self::Add(_) | Self::List => None,
        }
    }
}
