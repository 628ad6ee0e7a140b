//! Names of units and of hosts outside, as workloads look them up: each gets an address by which the gate knows it again.
//! The keeper says whether there is such a unit when a connection to it comes. The gate asks the keeper at once whether a host
//! outside is granted by its name; the keeper looks up no address of it before a connection comes.

use std::{
    collections::BTreeMap,
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::pod::{DialOrder, NAME_ASKED};
use tokio::{net::UdpSocket, sync::Semaphore, time::sleep};

use super::calls::GateCalls;

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

/// The names about which the keeper is asked at a time. Further questions get no answer, and come again.
const MAX_ASKED: usize = 16;

/// The time for the keeper to say whether a name is granted: somewhat less than those who ask wait.
const ANSWERS_WITHIN: Duration = Duration::from_secs(4);

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

/// A question for a name.
#[derive(Debug)]
struct Question {
    id: [u8; 2],
    /// The bits of the kind of question, and whether others may be asked.
    flags: u8,
    name: String,
    kind: u16,
    class: u16,
    /// The question as it came.
    bytes: Vec<u8>,
}

/// The knowledge about a host outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outside {
    Granted,
    Refused,
    /// The keeper does not answer.
    Unknown,
}

/// Answers questions for as long as it runs. Calls go to the keeper.
pub(super) async fn answer(socket: UdpSocket, names: &Arc<Mutex<HostNames>>, calls: &Arc<GateCalls>) {
    let (socket, asked) = (Arc::new(socket), Arc::new(Semaphore::new(MAX_ASKED)));
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
        let Some(question) = Question::read(buffer.get(..length).unwrap_or_default()) else { continue };
        let (socket, names) = (Arc::clone(&socket), Arc::clone(names));
        let answered = move |question: &Question, outside| {
            let answered = {
                let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
                question.answer(&mut names, outside)
            };
            let _ = socket.try_send_to(&answered, from);
        };
        if !question.may_be_outside() {
            answered(&question, Outside::Refused);
            continue;
        }
        let Ok(permit) = Arc::clone(&asked).try_acquire_owned() else { continue };
        let calls = Arc::clone(calls);
        tokio::spawn(async move {
            answered(&question, is_granted(&question.name, &calls).await);
            drop(permit);
        });
    }
}

/// Asks the keeper about a name.
async fn is_granted(name: &str, calls: &GateCalls) -> Outside {
    let order = DialOrder { host: name.to_owned(), port: NAME_ASKED };
    match calls.ask(&order, ANSWERS_WITHIN).await {
        Ok(_) => Outside::Granted,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Outside::Refused,
        Err(error) => {
            tracing::debug!("the keeper does not say whether a name is granted: {error}");
            Outside::Unknown
        }
    }
}

impl Question {
    /// Reads a message; none if it is no question.
    fn read(message: &[u8]) -> Option<Self> {
        let (header, rest) = message.split_first_chunk::<12>()?;
        let [id, id_2, flags, _, 0, 1, ..] = *header else { return None };
        let is_answer = flags & 0x80 != 0;
        if is_answer {
            return None;
        }
        let (name, length) = read_name(rest)?;
        let (&[kind, kind_2, class, class_2], _) = rest.get(length..)?.split_first_chunk::<4>()?;
        let (kind, class) = (u16::from_be_bytes([kind, kind_2]), u16::from_be_bytes([class, class_2]));
        let bytes = rest.get(..length + 4)?.to_vec();
        Some(Self { id: [id, id_2], flags, name, kind, class, bytes })
    }

    fn operation(&self) -> u8 {
        self.flags & 0x78
    }

    /// Returns true if the keeper must be asked for an answer.
    fn may_be_outside(&self) -> bool {
        self.operation() == 0
            && self.class == INTERNET
            && !is_of_unit(&self.name)
            && is_of_host_outside(&self.name)
    }

    /// Returns the answer. `outside` counts for names that no unit has.
    fn answer(&self, names: &mut HostNames, outside: Outside) -> Vec<u8> {
        let (code, address) = if self.operation() != 0 {
            (NOT_DONE, None)
        } else if self.class != INTERNET {
            (UNKNOWN, None)
        } else {
            match outside {
                Outside::Unknown => (FAILED, None),
                Outside::Refused if !is_of_unit(&self.name) => (UNKNOWN, None),
                // There are addresses of version 4 alone.
                _ if self.kind != ADDRESS => (DONE, None),
                _ => {
                    let address = names.address(&self.name);
                    (if address.is_some() { DONE } else { FAILED }, address)
                }
            }
        };
        let wants_recursion = self.flags & 1;
        let authoritative = 0x80 | 0x04 | self.operation() | wants_recursion;
        let [id, id_2] = self.id;
        let answers = u8::from(address.is_some());
        let mut answer = vec![id, id_2, authoritative, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0];
        answer.extend(&self.bytes);
        if let Some(address) = address {
            // The name is that of the question, after the header.
            answer.extend([0xc0, 12]);
            answer.extend(ADDRESS.to_be_bytes());
            answer.extend(INTERNET.to_be_bytes());
            answer.extend(KEPT.to_be_bytes());
            answer.extend([0, 4]);
            answer.extend(address.octets());
        }
        answer
    }
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

/// Returns true for the names that hosts outside may have: with a domain, whose last part is no number.
fn is_of_host_outside(name: &str) -> bool {
    let last = name.rsplit_once('.').map(|(_, last)| last);
    let is_domain = last.is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic()));
    is_domain && last != Some("localhost") && !name.contains('?')
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use periapt_helper::DescriptorLines;
    use periapt_host_api::pod::{OPENED, REFUSED};
    use tokio::{io::Interest, net::UnixStream};

    use super::*;

    fn answer_to(message: &[u8], names: &mut HostNames) -> Option<Vec<u8>> {
        Question::read(message).map(|question| question.answer(names, Outside::Refused))
    }

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
    fn a_granted_name_has_an_address_and_others_are_unknown() {
        let mut names = HostNames::default();
        let asked = |names: &mut HostNames, kind, outside| {
            let question = Question::read(&question("API.example.com", kind)).unwrap();
            assert!(question.may_be_outside());
            let answer = question.answer(names, outside);
            (answer[3] & 0xf, answer[7])
        };
        assert_eq!(asked(&mut names, ADDRESS, Outside::Refused), (UNKNOWN, 0));
        assert_eq!(asked(&mut names, ADDRESS, Outside::Unknown), (FAILED, 0), "it is asked for again");
        assert_eq!(asked(&mut names, 28, Outside::Granted), (DONE, 0));
        assert!(names.names.is_empty());
        assert_eq!(asked(&mut names, ADDRESS, Outside::Granted), (DONE, 1));
        assert_eq!(names.names, ["api.example.com"]);
        for name in ["db-0", "db", "db.lab.svc", "db-0.db-endpoints", "a.localhost", "host.1", "d b.com", ""]
        {
            assert!(!Question::read(&question(name, ADDRESS)).unwrap().may_be_outside(), "{name}");
        }
    }

    #[tokio::test]
    async fn the_keeper_is_asked_about_names_outside_and_about_no_others() {
        let names = Arc::<Mutex<HostNames>>::default();
        let gate = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = gate.local_addr().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let answering = Arc::clone(&names);
        let calls = Arc::<GateCalls>::default();
        calls.add(ours);
        tokio::spawn(async move { answer(gate, &answering, &calls).await });
        let keeper = tokio::spawn(async move {
            let mut lines = DescriptorLines::new(4 << 10);
            let mut asked = Vec::new();
            while asked.len() < 2 {
                theirs.async_io(Interest::READABLE, || lines.receive(&theirs)).await.unwrap();
                while let Some(line) = lines.line().unwrap() {
                    let order: DialOrder = serde_json::from_slice(&line).unwrap();
                    let stream = std::os::unix::net::UnixStream::from(lines.descriptor().unwrap());
                    let word = if order.host == "api.example.com" { OPENED } else { REFUSED };
                    (&stream).write_all(&[word]).unwrap();
                    asked.push((order.host, order.port));
                }
            }
            asked
        });
        let workload = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut codes = Vec::new();
        for name in ["db-0", "www.example.com", "api.example.com"] {
            workload.send_to(&question(name, ADDRESS), at).await.unwrap();
            let mut buffer = [0; MAX_QUESTION];
            let received = tokio::time::timeout(Duration::from_secs(30), workload.recv(&mut buffer));
            received.await.unwrap().unwrap();
            codes.push(buffer[3] & 0xf);
        }
        assert_eq!(codes, [DONE, UNKNOWN, DONE]);
        let expected = ["www.example.com", "api.example.com"].map(|name| (name.to_owned(), NAME_ASKED));
        assert_eq!(keeper.await.unwrap(), expected);
        assert_eq!(names.lock().unwrap().names, ["db-0", "api.example.com"]);
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
