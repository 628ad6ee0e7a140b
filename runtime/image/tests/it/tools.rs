//! Images of other tools.
