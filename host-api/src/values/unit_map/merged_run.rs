//! Several lists of runs side by side.

use super::UnitRun;

/// Consecutive numbers with the same value in each list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergedRun<'a, A, B, C> {
    /// The first number.
    pub first: u32,
    /// The last number.
    pub last: u32,
    /// Their value in the first list.
    pub one: Option<&'a A>,
    /// Their value in the second list.
    pub two: Option<&'a B>,
    /// Their value in the third list.
    pub three: Option<&'a C>,
}

/// Returns the numbers with a value in at least one of three lists, in order. The cost is proportional to the runs.
pub fn merged_runs<'a, A, B, C>(
    one: &'a [UnitRun<A>],
    two: &'a [UnitRun<B>],
    three: &'a [UnitRun<C>],
) -> impl Iterator<Item = MergedRun<'a, A, B, C>> {
    let (mut one, mut two, mut three) = (List(one), List(two), List(three));
    let mut next = Some(0_u32);
    std::iter::from_fn(move || {
        let from = next?;
        let starts = [one.from(from), two.from(from), three.from(from)];
        let first = starts.into_iter().flatten().min()?;
        let ends = [one.until(first), two.until(first), three.until(first)];
        let last = ends.into_iter().min()?;
        next = last.checked_add(1);
        Some(MergedRun { first, last, one: one.at(first), two: two.at(first), three: three.at(first) })
    })
}

/// The rest of a list of runs.
struct List<'a, V>(&'a [UnitRun<V>]);

impl<'a, V> List<'a, V> {
    /// Returns the first number from this one on that has a value, and drops the runs before it.
    fn from(&mut self, number: u32) -> Option<u32> {
        while let [run, rest @ ..] = self.0 {
            if run.last >= number {
                return Some(run.first.max(number));
            }
            self.0 = rest;
        }
        None
    }

    /// Returns the last number up to which the list has the same value as for this number.
    fn until(&self, number: u32) -> u32 {
        match self.0.first() {
            Some(run) if run.first <= number => run.last,
            Some(run) => run.first.saturating_sub(1),
            None => u32::MAX,
        }
    }

    /// Returns the value of this number.
    fn at(&self, number: u32) -> Option<&'a V> {
        self.0.first().filter(|run| run.first <= number).map(|run| &run.value)
    }
}
