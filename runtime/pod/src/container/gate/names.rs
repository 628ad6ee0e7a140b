//! Names of units, as workloads look them up: each gets an address by which the gate knows it again. Whether there is such a
//! unit is for the keeper to say, when a connection to it comes.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{net::UdpSocket, time::sleep};

/// The network of the addresses of names, and the first one. Those before it are the name server's.
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const NETWORK_MASK: u32 = u32::from_be_bytes([255, 254, 0, 0]);
const FIRST: u32 = 256;

/// The most names of a container. Further ones are told to be unknown for now.
const MAX_NAMES: usize = 4_096;

/// The pause after a question could not be received.
const PAUSE: Duration = Duration::from_millis(100);

/// The most bytes of a question.
const MAX_QUESTION: usize = 512;

/// The most bytes of a name, without a dot at its end.
const MAX_NAME: usize = 253;

/// The seconds for which an answer may be kept. A name keeps its address.
const KEPT: u32 = 60;

/// The kinds and the class of records.
const ADDRESS: u16 = 1;
const INTERNET: u16 = 1;

/// The codes of answers.
const DONE: u8 = 0;
const FAILED: u8 = 2;
const UNKNOWN: u8 = 3;
const NOT_DONE: u8 = 4;

/// The names that were looked up, with their addresses.
#[derive(Debug, Default)]
pub(super) struct HostNames {
    numbers: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl HostNames {
    /// Returns the host that a workload means by an address: a name, or the address itself. None for addresses of names that
    /// nobody has looked up.
    pub(super) fn host(&self, address: Ipv4Addr) -> Option<String> {
        let bits = address.to_bits();
        if bits & NETWORK_MASK != NETWORK {
            return Some(address.to_string());
        }
        let number = (bits & !NETWORK_MASK).checked_sub(FIRST)?;
        self.names.get(usize::try_from(number).ok()?).cloned()
    }

    /// Returns the address of a name, unless there are too many.
    fn address(&mut self, name: &str) -> Option<Ipv4Addr> {
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if self.names.len() < MAX_NAMES => {
                let number = u32::try_from(self.names.len()).ok()?;
                self.numbers.insert(name.to_owned(), number);
                self.names.push(name.to_owned());
                number
            }
            None => return None,
        };
        Some(Ipv4Addr::from_bits(NETWORK | (FIRST + number)))
    }
}

/// Answers questions for as long as it runs.
pub(super) async fn answer(socket: UdpSocket, names: &Arc<Mutex<HostNames>>) {
    let mut buffer = vec![0; MAX_QUESTION];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!("a question for a name could not be received: {error}");
                sleep(PAUSE).await;
                continue;
            }
        };
        let question = buffer.get(..length).unwrap_or_default();
        let answered = {
            let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
            answer_to(question, &mut names)
        };
        if let Some(answered) = answered {
            let _ = socket.try_send_to(&answered, from);
        }
    }
}

/// Returns the answer to a question; none to what is no question.
fn answer_to(message: &[u8], names: &mut HostNames) -> Option<Vec<u8>> {
    let (header, rest) = message.split_first_chunk::<12>()?;
    let [id, id_2, flags, _, 0, 1, ..] = *header else { return None };
    let (is_answer, operation, wants_recursion) = (flags & 0x80 != 0, flags & 0x78, flags & 1);
    if is_answer {
        return None;
    }
    let (name, question) = read_name(rest)?;
    let (&[kind, kind_2, class, class_2], _) = rest.get(question..)?.split_first_chunk::<4>()?;
    let (kind, class) = (u16::from_be_bytes([kind, kind_2]), u16::from_be_bytes([class, class_2]));
    let question = rest.get(..question + 4)?;
    let (code, address) = if operation != 0 {
        (NOT_DONE, None)
    } else if class != INTERNET || !is_of_unit(&name) {
        (UNKNOWN, None)
    } else if kind != ADDRESS {
        // A unit has an address of version 4 alone.
        (DONE, None)
    } else {
        let address = names.address(&name);
        (if address.is_some() { DONE } else { FAILED }, address)
    };
    let authoritative = 0x80 | 0x04 | operation | wants_recursion;
    let answers = u8::from(address.is_some());
    let mut answer = vec![id, id_2, authoritative, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0];
    answer.extend(question);
    if let Some(address) = address {
        // The name is that of the question, after the header.
        answer.extend([0xc0, 12]);
        answer.extend(ADDRESS.to_be_bytes());
        answer.extend(INTERNET.to_be_bytes());
        answer.extend(KEPT.to_be_bytes());
        answer.extend([0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// Reads a name in the form of questions, in lower case and without a dot at its end. Returns it with its length there.
fn read_name(bytes: &[u8]) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = 0;
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        // A longer one is a reference to another place, which a question does not have.
        match length {
            0 => return (name.len() <= MAX_NAME).then_some((name, at)),
            1..64 => {}
            _ => return None,
        }
        let label = bytes.get(at..at + length)?;
        at += length;
        if !name.is_empty() {
            name.push('.');
        }
        let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match label.iter().all(is_known) {
            true => name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase()))),
            // No unit has such a name.
            false => name.push('?'),
        }
    }
}

/// Returns true for the names that units and applications may have: `app-0`, `app`, `app-0.app-endpoints`, and names in the
/// domain of services, `app.MODEL.svc` and `app-0.app-endpoints.MODEL.svc.cluster.local`.
fn is_of_unit(name: &str) -> bool {
    let is_label = |label: &&str| !label.is_empty() && !label.contains(['?', '_']);
    let labels: Vec<&str> = name.split('.').collect();
    let service = match labels.as_slice() {
        [service @ .., _model, "svc"] | [service @ .., _model, "svc", "cluster", "local"] => service,
        all => all,
    };
    let is_service = match service {
        ["localhost"] => false,
        [_] => true,
        [_, headless] => headless.ends_with("-endpoints"),
        _ => false,
    };
    is_service && labels.iter().all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(u8::try_from(label.len()).unwrap());
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend(INTERNET.to_be_bytes());
        message
    }

    /// Returns the code of an answer, and the address that it has.
    fn asked(names: &mut HostNames, name: &str, kind: u16) -> (u8, Option<Ipv4Addr>) {
        let question = question(name, kind);
        let answer = answer_to(&question, names).unwrap();
        assert_eq!((answer[..2].to_vec(), answer[2] & 0x80), (vec![7, 8], 0x80));
        assert_eq!(answer[12..question.len()], question[12..]);
        let address = answer.get(question.len()..).and_then(|record| record.last_chunk::<4>());
        assert_eq!(answer[7], u8::from(address.is_some()));
        (answer[3] & 0xf, address.map(|address| Ipv4Addr::from(*address)))
    }

    #[test]
    fn a_name_keeps_the_address_by_which_it_is_known_again() {
        let mut names = HostNames::default();
        let (_, db) = asked(&mut names, "db-0", ADDRESS);
        let (_, web) = asked(&mut names, "Web.lab.svc.cluster.local.", ADDRESS);
        assert_ne!(db, web);
        assert_eq!(asked(&mut names, "DB-0", ADDRESS), (DONE, db));
        assert_eq!(names.host(db.unwrap()).as_deref(), Some("db-0"));
        assert_eq!(names.host(web.unwrap()).as_deref(), Some("web.lab.svc.cluster.local"));
        assert_eq!(names.host(Ipv4Addr::new(10, 0, 0, 1)).as_deref(), Some("10.0.0.1"));
        for nobody in [[198, 18, 0, 1], [198, 18, 0, 255], [198, 18, 1, 2], [198, 19, 255, 255]] {
            assert_eq!(names.host(nobody.into()), None, "{nobody:?}");
        }
        // The address of version 6 is none, which is no reason to give up.
        assert_eq!(asked(&mut names, "db-0", 28), (DONE, None));
    }

    #[test]
    fn names_that_no_unit_has_are_unknown() {
        let mut names = HostNames::default();
        for name in ["db", "db-0.db-endpoints", "db.lab.svc", "db-0.db-endpoints.lab.svc.cluster.local"] {
            assert_eq!(asked(&mut names, name, ADDRESS).0, DONE, "{name}");
        }
        for name in
            ["", "localhost", "example.com", "db.lab", "a.b.lab.svc", "svc.cluster.local", "d b", "d_b"]
        {
            assert_eq!(asked(&mut names, name, ADDRESS), (UNKNOWN, None), "{name}");
        }
        for number in 0..MAX_NAMES + 2 {
            asked(&mut names, &format!("app-{number}"), ADDRESS);
        }
        assert_eq!(names.names.len(), MAX_NAMES);
        assert_eq!(asked(&mut names, "one-more", ADDRESS), (FAILED, None));
        assert_eq!(asked(&mut names, "app-1", ADDRESS).0, DONE);
    }

    #[test]
    fn what_is_no_question_gets_no_answer_and_harms_nothing() {
        let mut names = HostNames::default();
        let whole = question("db-0", ADDRESS);
        for length in 0..whole.len() {
            assert_eq!(answer_to(&whole[..length], &mut names), None, "{length}");
        }
        let changed = |at: usize, byte: u8| {
            let mut message = whole.clone();
            message[at] = byte;
            message
        };
        assert_eq!(answer_to(&changed(2, 0x81), &mut names), None, "an answer");
        assert_eq!(answer_to(&changed(5, 2), &mut names), None, "two questions");
        assert_eq!(answer_to(&changed(12, 0xc0), &mut names), None, "a reference");
        assert_eq!(answer_to(&changed(2, 0x28), &mut names).unwrap()[3] & 0xf, NOT_DONE);
        let long = format!("{}.a", vec!["a".repeat(63); 4].join("."));
        assert_eq!(answer_to(&question(&long, ADDRESS), &mut names), None);
    }
}
