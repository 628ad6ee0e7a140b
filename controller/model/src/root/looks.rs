//! The number of models that were looked at, which tests of costs read. Other builds count nothing.

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts a look at a model.
pub(super) fn note() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

/// Returns the number of looks that an act of this thread takes.
#[cfg(test)]
pub(crate) fn count(act: impl FnOnce()) -> usize {
    let before = LOOKS.get();
    act();
    LOOKS.get() - before
}
