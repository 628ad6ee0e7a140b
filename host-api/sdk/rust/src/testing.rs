//! Tests of a charm on the host: an in-memory unit answers the charm's calls.
//!
//! ```
//! use periapt_sdk::testing::Harness;
//! # use periapt_sdk::{Charm, RelationJoined, Result, Unit, Status};
//! # #[derive(Default)] struct Server;
//! # impl Charm for Server {
//! #     fn relation_joined(&mut self, unit: &Unit, event: &RelationJoined) -> Result {
//! #         event.relation.unit_bag().set("port", 3306)?;
//! #         unit.set_status(&Status::active(""))
//! #     }
//! # }
//!
//! let mut unit = Harness::<Server>::new("mysql/0");
//! let db = unit.relate("db", "wordpress");
//! unit.join(&db, "wordpress/0", &[]).unwrap();
//! assert_eq!(unit.unit_bag(&db)["port"], "3306");
//! assert_eq!(unit.status(), Some(Status::active("")));
//! ```
//!
//! As in the sandbox, a hook's effects happen if it succeeds and not at all if it fails, only the leader may write
//! its application's bag, and an empty value removes a key. Hook tools return the results that [`Harness::tools`]
//! sets. A test that sets up an impossible state fails, and with [`Harness::declares`] also one that sets up a name
//! that the charm does not declare. [`Harness::container`] starts a container with a Pebble that a test looks into.

mod batch;
mod container;
mod declared;
mod harness;
pub(crate) mod imports;
mod later;
mod pebble;
mod possible;
pub(crate) mod secrets;
mod state;
mod streams;

pub use batch::Batch;
pub use container::{Container, WorkloadRequest};
pub use harness::{Harness, Outcome};
