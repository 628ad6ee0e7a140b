//! A server that speaks S3, for tests, and a proxy before it that fails on demand.

mod proxy;
mod server;

pub use self::{
    proxy::{Proxy, S3Fault},
    server::TestS3,
};
