//! How long to wait before something is tried again.

pub(crate) use periapt_client::Backoff;
