//! The size of values that cross between guest and host, in bytes. The meter charges calls by it.

use super::{
    bindings::periapt::charm::{
        config::Value,
        events::{Condition, Later, PendingEvent},
        goal_state::{GoalRelation, GoalState, GoalStatus},
        hook_tools::Output,
        log::Level,
        network::{InterfaceAddress, NetworkInfo, NetworkInterface},
        pebble::{Request, Response},
        ports::{OpenedPorts, Ports},
        relations::{Bag, OwnBag},
        resources::ResourceFile,
        secrets::{Access, Details, Metadata, Owner, RevisionMode},
        status::{ApplicationStatus, StatusInfo, WorkloadStatus},
        storage::StorageInfo,
        workloads::{Received, Target},
    },
    types::Error,
};

/// A value with a size: the bytes of its texts, and a few for each part.
pub(super) trait Weight {
    fn weight(&self) -> u64;
}

/// The size of a text, a list or an element beside its content: length and pointer.
const PART: u64 = 8;

impl Weight for String {
    fn weight(&self) -> u64 {
        PART + self.len() as u64
    }
}

impl Weight for u8 {
    fn weight(&self) -> u64 {
        1
    }
}

impl<T: Weight> Weight for Vec<T> {
    fn weight(&self) -> u64 {
        PART + self.iter().map(Weight::weight).sum::<u64>()
    }
}

impl<T: Weight> Weight for Option<T> {
    fn weight(&self) -> u64 {
        self.as_ref().map_or(0, Weight::weight)
    }
}

impl<T: Weight, E: Weight> Weight for Result<T, E> {
    fn weight(&self) -> u64 {
        match self {
            Ok(value) => value.weight(),
            Err(error) => error.weight(),
        }
    }
}

macro_rules! constant {
    ($($type:ty),*) => {
        $(impl Weight for $type {
            fn weight(&self) -> u64 {
                PART
            }
        })*
    };
}

constant!((), bool, u32, u64, Level, OwnBag, Owner, Ports, RevisionMode, WorkloadStatus);

macro_rules! tuple {
    ($($part:ident)*) => {
        impl<$($part: Weight),*> Weight for ($($part,)*) {
            #[expect(non_snake_case, reason = "the parts are named after their types")]
            fn weight(&self) -> u64 {
                let ($($part,)*) = self;
                0 $(+ $part.weight())*
            }
        }
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);

impl Weight for Metadata {
    fn weight(&self) -> u64 {
        2 * PART + self.label.weight() + self.description.weight() + self.expire.weight()
    }
}

impl Weight for Details {
    fn weight(&self) -> u64 {
        let texts = self.uri.weight() + self.label.weight() + self.description.weight();
        let times = self.rotates.weight() + self.expiry.weight();
        4 * PART + texts + times + self.access.weight()
    }
}

impl Weight for Access {
    fn weight(&self) -> u64 {
        PART + self.reader.weight()
    }
}

impl Weight for Later {
    fn weight(&self) -> u64 {
        PART + self.name.weight() + self.json.weight() + self.conditions.weight()
    }
}

impl Weight for PendingEvent {
    fn weight(&self) -> u64 {
        2 * PART + self.name.weight() + self.json.weight() + self.conditions.weight()
    }
}

impl Weight for Condition {
    fn weight(&self) -> u64 {
        PART + match self {
            Self::Config(option) => option.weight(),
            Self::Relation(found) => found.bag.weight() + found.key.weight(),
            Self::Leader => 0,
        }
    }
}

impl Weight for Value {
    fn weight(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Secret(text) => text.weight(),
            Self::Integer(_) | Self::Number(_) | Self::Boolean(_) => PART,
        }
    }
}

impl Weight for Bag {
    fn weight(&self) -> u64 {
        match self {
            Self::Unit(name) | Self::Application(name) => name.weight(),
        }
    }
}

impl Weight for OpenedPorts {
    fn weight(&self) -> u64 {
        self.ports.weight() + self.endpoints.weight()
    }
}

impl Weight for InterfaceAddress {
    fn weight(&self) -> u64 {
        self.address.weight() + self.cidr.weight()
    }
}

impl Weight for NetworkInterface {
    fn weight(&self) -> u64 {
        self.name.weight() + self.mac.weight() + self.addresses.weight()
    }
}

impl Weight for NetworkInfo {
    fn weight(&self) -> u64 {
        self.bind_addresses.weight() + self.ingress_addresses.weight() + self.egress_subnets.weight()
    }
}

impl Weight for GoalStatus {
    fn weight(&self) -> u64 {
        self.status.weight() + self.since.weight()
    }
}

impl Weight for GoalRelation {
    fn weight(&self) -> u64 {
        self.endpoint.weight() + self.applications.weight() + self.units.weight()
    }
}

impl Weight for GoalState {
    fn weight(&self) -> u64 {
        self.units.weight() + self.relations.weight()
    }
}

impl Weight for StorageInfo {
    fn weight(&self) -> u64 {
        PART + self.location.weight()
    }
}

impl Weight for ResourceFile {
    fn weight(&self) -> u64 {
        2 * PART + self.path.weight() + self.sha256.weight()
    }
}

impl Weight for Request {
    fn weight(&self) -> u64 {
        self.method.weight() + self.target.weight() + self.headers.weight() + self.body.len() as u64
    }
}

impl Weight for Response {
    fn weight(&self) -> u64 {
        PART + self.headers.weight() + self.body.len() as u64
    }
}

impl Weight for Target {
    fn weight(&self) -> u64 {
        match self {
            Self::Pebble(container) => container.weight(),
            Self::Port(_) => PART,
        }
    }
}

impl Weight for Received {
    fn weight(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => PART + bytes.len() as u64,
            Self::End | Self::Nothing => PART,
        }
    }
}

impl Weight for StatusInfo {
    fn weight(&self) -> u64 {
        PART + self.message.weight() + self.data.weight()
    }
}

impl Weight for ApplicationStatus {
    fn weight(&self) -> u64 {
        self.application.weight() + self.units.weight()
    }
}

impl Weight for Output {
    fn weight(&self) -> u64 {
        PART + self.stdout.len() as u64 + self.stderr.len() as u64
    }
}

impl Weight for Error {
    fn weight(&self) -> u64 {
        match self {
            Self::InvalidArgument(text)
            | Self::NotFound(text)
            | Self::PermissionDenied(text)
            | Self::NotLeader(text)
            | Self::Conflict(text)
            | Self::AlreadyExists(text)
            | Self::LimitExceeded(text)
            | Self::NotGranted(text)
            | Self::NotReady(text)
            | Self::TryAgain(text)
            | Self::WrongContext(text)
            | Self::NotSupported(text)
            | Self::Failed(text) => text.weight(),
            Self::Other((code, text)) => code.weight() + text.weight(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_every_text_counts() {
        let changes = (7_u32, OwnBag::Unit, vec![("key".to_owned(), "x".repeat(1000))]);
        assert!(changes.weight() > 1003);
        let answer: Result<Vec<String>, Error> = Err(Error::Failed("y".repeat(500)));
        assert!(answer.weight() > 500);
        let output = Output { exit_code: 0, stdout: vec![0; 300], stderr: vec![0; 200] };
        assert!(output.weight() > 500);
    }

    #[test]
    fn empty_elements_are_not_free() {
        assert!(vec![String::new(); 1000].weight() >= 8000);
    }
}
