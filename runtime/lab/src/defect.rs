//! Deliberate defects between executors and the world, which show that the laboratory finds their like.

/// A defect of every executor, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// A run of the next hook before the last one's commit is answered.
    NextBeforeAnswer,
    /// A hook's commit that counts as accepted and was never sent.
    LosesACommit,
    /// An action before the view shows the last commit.
    ActsOnAnOldView,
}
