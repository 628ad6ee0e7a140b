//! The principal's log as far as it was read, in the unit's stored state.

use periapt_sdk::{Bag, Result, Unit};

#[derive(Default)]
pub(crate) struct Log {
    /// The number of the last line that was read, and so the number of lines so far.
    pub(crate) count: u64,
    /// The number of lines that were gone before they were read.
    pub(crate) missed: u64,
    /// The newest lines.
    pub(crate) lines: Vec<String>,
}

impl Log {
    pub(crate) fn load(unit: &Unit) -> Result<Self> {
        let state = unit.state();
        let number = |key| state.get(key).map_or(Ok(0), |text| text.parse());
        let lines = state.get("lines").unwrap_or_default();
        let lines = lines.lines().map(str::to_owned).collect();
        Ok(Self { count: number("count")?, missed: number("missed")?, lines })
    }

    pub(crate) fn store(&self, unit: &Unit) -> Result {
        unit.state().set_all([
            ("count", self.count.to_string()),
            ("missed", self.missed.to_string()),
            ("lines", self.lines.join("\n")),
        ])
    }

    /// Reads the principal's new lines, and keeps so many of the newest.
    pub(crate) fn read(&mut self, bag: &Bag, keep: usize) -> Result {
        let (last, log): (Option<u64>, Option<String>) = (bag.get("log-last")?, bag.get("log")?);
        let (Some(last), Some(log)) = (last, log) else { return Ok(()) };
        let there: Vec<&str> = log.lines().collect();
        let new = last.saturating_sub(self.count);
        let read = there.len().min(usize::try_from(new).unwrap_or(usize::MAX));
        self.missed += new.saturating_sub(u64::try_from(read)?);
        self.count = self.count.max(last);
        self.lines.extend(there.iter().skip(there.len() - read).map(|line| (*line).to_owned()));
        self.lines.drain(..self.lines.len().saturating_sub(keep));
        Ok(())
    }
}
