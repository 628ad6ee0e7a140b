//! Defects that are planted between executors and the world, so that the laboratory is seen to find their like.

/// What is wrong with every executor, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// It does not wait for the answer to the commit of a hook before the next one runs.
    NextBeforeAnswer,
    /// It takes a hook's commit for accepted that it never sent.
    LosesACommit,
    /// It does not wait until the view shows its last commit.
    ActsOnAnOldView,
}
