//! Deliberate defects between executors and the world, which show that the laboratory finds their like.

/// A defect of every executor, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// It runs the next hook before its commit is answered.
    NextBeforeAnswer,
    /// It takes a hook's commit for accepted without sending it.
    LosesACommit,
    /// It acts before its view shows its last commit.
    ActsOnAnOldView,
}
