//! Log targets: which lines get where, when, and what becomes of those that do not.

use proptest::prelude::*;

use super::*;
use crate::log_push::{LogPushForm, LogPushResult, LogTargetState};

/// A target of all services, whose server is at a host.
fn target(name: &str, host: &str, services: &str) -> String {
    format!(
        "{name}: {{override: replace, type: loki, location: 'http://{host}/push', services: [{services}], \
         labels: {{unit: '$UNIT/0'}}}}"
    )
}

fn plan(targets: &[String]) -> String {
    format!(
        "services:\n  \
         a: {{override: replace, command: a, environment: {{UNIT: web}}}}\n  \
         b: {{override: replace, command: b}}\n\
         log-targets: {{{}}}",
        targets.join(", ")
    )
}

/// A pod whose services `a` and `b` run, with log targets.
fn pod(targets: &[String]) -> Pod {
    let mut pod = Pod::new(&plan(targets));
    pod.act(ServicesAction::Start, &["a", "b"]);
    pod.seconds(1.5);
    pod
}

impl Pod {
    fn says(&mut self, service: &str, text: &str) {
        let process = self.process(service);
        self.input(PodInput::Wrote(process, text.as_bytes().to_vec()));
    }

    /// Returns the one push that waits for its end, with its lines.
    fn pushed(&mut self) -> (LogPushId, LogPush) {
        assert_eq!(self.pushes.len(), 1, "{:?}", self.pushes);
        self.pushes.remove(0)
    }

    fn ends(&mut self, push: LogPushId, result: LogPushResult) {
        self.input(PodInput::Pushed(push, result));
    }

    fn warnings(&mut self) -> Vec<String> {
        let warnings = self.result(PodRequest::Warnings { all: true });
        let message = |it: &Value| it["message"].as_str().unwrap().to_owned();
        warnings.as_array().unwrap().iter().map(message).collect()
    }

    /// Returns the number of lines that are kept of a service.
    fn kept_lines(&mut self, service: &str) -> usize {
        let (services, newest, from) = (vec![service.to_owned()], None, 0);
        match self.ask(PodRequest::Logs { services, newest, from }).unwrap() {
            PodAnswer::Logs(lines, _) => lines.len(),
            other => panic!("{other:?}"),
        }
    }

    /// Takes what the operator was told of log targets.
    fn told_of_targets(&mut self) -> Vec<(String, LogTargetState)> {
        let told = std::mem::take(&mut self.others);
        let of_target = |output| match output {
            PodOutput::LogTarget(name, state) => Some((name, state)),
            _ => None,
        };
        told.into_iter().filter_map(of_target).collect()
    }
}

fn lines(push: &LogPush) -> Vec<String> {
    let of_stream = |stream: &crate::log_push::LogPushStream| {
        let service = stream.service.clone();
        stream.lines.iter().map(move |line| format!("{service}:{}", line.message)).collect::<Vec<_>>()
    };
    push.streams.iter().flat_map(of_stream).collect()
}

fn failed() -> LogPushResult {
    LogPushResult::Failed("nobody answers".to_owned())
}

fn refused() -> LogPushResult {
    LogPushResult::Refused("it answers with status 400".to_owned())
}

#[test]
fn lines_are_sent_after_a_second_or_when_there_are_a_hundred() {
    let mut pod = pod(&[target("t", "loki-0:3100", "all")]);
    pod.says("a", "one\nhalf");
    pod.says("b", "two\n");
    pod.seconds(0.9);
    assert!(pod.pushes.is_empty(), "more lines may come");
    pod.seconds(0.2);
    let (id, push) = pod.pushed();
    assert_eq!(lines(&push), ["a:one", "b:two"]);
    let [a, b] = push.streams.as_slice() else { panic!("{push:?}") };
    assert_eq!((a.labels["unit"].as_str(), b.labels["unit"].as_str()), ("web/0", "/0"));
    assert_eq!((push.form, push.path().as_str(), push.location.port), (LogPushForm::Loki, "/push", 3_100));

    // One push at a time: lines wait for its end.
    pod.says("a", &" way\nx".repeat(150));
    pod.seconds(5.0);
    assert!(pod.pushes.is_empty());
    pod.ends(id, LogPushResult::Taken);
    pod.seconds(0.0);
    let (id, push) = pod.pushed();
    assert_eq!(lines(&push)[0], "a:half way");
    assert_eq!(lines(&push).len(), 100);
    pod.ends(id, LogPushResult::Taken);
    pod.seconds(0.0);
    let (id, push) = pod.pushed();
    assert_eq!(lines(&push).len(), 50);
    pod.ends(id, LogPushResult::Taken);
    pod.seconds(10.0);
    assert!(pod.pushes.is_empty() && pod.told_of_targets().is_empty() && pod.warnings().is_empty());
    // The end of a push that is long over changes nothing.
    pod.ends(id, failed());
    assert!(pod.told_of_targets().is_empty());
}

#[test]
fn lines_wait_for_a_target_that_fails_and_the_pauses_grow() {
    let mut pod = pod(&[target("t", "h", "all"), target("u", "other", "a")]);
    pod.says("a", "one\n");
    pod.seconds(1.0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let at = pod.pushes.iter().position(|(_, push)| push.target == "t").unwrap();
        let (id, push) = pod.pushes.remove(at);
        assert_eq!(lines(&push), ["a:one"]);
        pod.ends(id, failed());
        let failed_at = pod.now;
        while !pod.pushes.iter().any(|(_, push)| push.target == "t") {
            pod.seconds(0.1);
        }
        waits.push((pod.now - failed_at).as_secs());
    }
    assert_eq!(waits[..4], [1, 2, 4, 8]);
    assert!(waits[5..].iter().all(|wait| (30..=33).contains(wait)), "{waits:?}");
    // The other target is none the worse for it.
    let at = pod.pushes.iter().position(|(_, push)| push.target == "u").unwrap();
    let (id, push) = pod.pushes.remove(at);
    assert_eq!(lines(&push), ["a:one"]);
    pod.ends(id, LogPushResult::Taken);
    pod.says("a", "two\n");
    pod.seconds(1.0);
    let at = pod.pushes.iter().position(|(_, push)| push.target == "u").unwrap();
    assert_eq!(lines(&pod.pushes.remove(at).1), ["a:two"]);

    // One word to the operator for each change.
    let words = "lines cannot be forwarded: nobody answers";
    assert_eq!(pod.told_of_targets(), [("t".to_owned(), LogTargetState::Fails(words.to_owned()))]);
    assert_eq!(pod.warnings(), [format!("log target \"t\": {words}")]);
    let (id, _) = pod.pushed();
    pod.ends(id, LogPushResult::Taken);
    pod.seconds(1.0);
    let (_, push) = pod.pushed();
    assert_eq!((push.target.as_str(), lines(&push)), ("t", vec!["a:two".to_owned()]));
    assert_eq!(pod.told_of_targets(), [("t".to_owned(), LogTargetState::Takes { lost: 0 })]);
}

#[test]
fn lines_that_a_target_refuses_are_lost_and_the_next_ones_are_sent() {
    let mut pod = pod(&[target("t", "h", "all")]);
    pod.says("a", "bad\nworse\n");
    pod.seconds(1.0);
    let (id, _) = pod.pushed();
    pod.ends(id, refused());
    pod.seconds(100.0);
    assert!(pod.pushes.is_empty(), "they are not sent again");
    pod.says("a", "good\n");
    pod.seconds(1.0);
    let (id, push) = pod.pushed();
    assert_eq!(lines(&push), ["a:good"]);
    pod.ends(id, LogPushResult::Taken);
    let refused = LogTargetState::Fails("lines are lost: it answers with status 400".to_owned());
    let told = [("t".to_owned(), refused), ("t".to_owned(), LogTargetState::Takes { lost: 2 })];
    assert_eq!(pod.told_of_targets(), told);
    assert_eq!(pod.warnings().len(), 1);
}

#[test]
fn a_target_that_comes_and_goes_is_told_of_once_a_minute_and_its_last_state_always() {
    let mut pod = pod(&[target("t", "h", "all")]);
    let mut told = Vec::new();
    for number in 0..61 {
        pod.says("a", "line\n");
        while pod.pushes.is_empty() {
            pod.seconds(0.1);
        }
        let (id, _) = pod.pushed();
        pod.ends(id, if number % 2 == 0 { refused() } else { LogPushResult::Taken });
        told.extend(pod.told_of_targets());
    }
    assert!(told.len() <= 2, "{told:?}");
    pod.seconds(200.0);
    told.extend(pod.told_of_targets());
    assert!(matches!(told.last(), Some((_, LogTargetState::Fails(_)))), "{told:?}");
}

#[test]
fn the_oldest_lines_give_way_and_are_counted_while_a_target_fails() {
    let mut pod = pod(&[target("t", "h", "a")]);
    pod.says("a", "first\n");
    pod.seconds(1.0);
    let (id, _) = pod.pushed();
    pod.ends(id, failed());
    // More than a ring keeps, of this service and of one whose lines do not go there.
    let long = format!("{}\n", "x".repeat(1_000));
    for _ in 0..300 {
        pod.says("a", &long);
        pod.says("b", &long);
    }
    let ring = pod.kept_lines("a");
    let mut taken = 0;
    while taken < ring {
        while pod.pushes.is_empty() {
            pod.seconds(0.1);
        }
        let (id, push) = pod.pushed();
        taken += lines(&push).len();
        assert!(push.body().len() < 100_000 && !lines(&push).contains(&"a:first".to_owned()));
        pod.ends(id, LogPushResult::Taken);
    }
    assert_eq!(taken, ring);
    pod.seconds(60.0);
    let told = pod.told_of_targets();
    assert_eq!(told.last(), Some(&("t".to_owned(), LogTargetState::Takes { lost: 301 - ring as u64 })));
}

#[test]
fn a_target_follows_the_plan() {
    let mut pod = pod(&[]);
    pod.says("a", "before\n");
    pod.add(&plan(&[target("t", "h", "all, -b")])).unwrap();
    pod.says("a", "one\n");
    pod.says("b", "no\n");
    pod.seconds(1.0);
    let (id, push) = pod.pushed();
    assert_eq!(lines(&push), ["a:one"], "lines of before stay behind");
    // Another place while lines are on their way: those that did not get there go to the new one.
    pod.add("log-targets: {t: {override: merge, location: 'http://g/', services: [b]}}").unwrap();
    pod.says("b", "two\n");
    pod.ends(id, failed());
    pod.seconds(1.0);
    let (id, push) = pod.pushed();
    assert_eq!(
        (push.location.host.as_str(), lines(&push)),
        ("g", vec!["a:one".to_owned(), "b:two".to_owned()])
    );
    assert!(pod.warnings().is_empty(), "the former place counts no more");
    pod.ends(id, failed());
    pod.add("log-targets: {t: {override: merge, services: [-all]}}").unwrap();
    pod.says("a", "three\n");
    pod.seconds(100.0);
    assert!(pod.pushes.is_empty(), "nothing goes to a target without services");
    pod.add("log-targets: {t: {override: merge, services: [all]}}").unwrap();
    pod.says("a", "four\n");
    pod.seconds(1.0);
    assert_eq!(lines(&pod.pushed().1), ["a:four"]);
}

#[test]
fn a_target_that_cannot_be_reached_is_a_warning_once_and_the_layer_stays() {
    let mut pod = pod(&[]);
    let other = "log-targets: {t: {override: replace, type: loki, location: 'ftp://h/', services: [all]}}";
    for _ in 0..3 {
        pod.add(other).unwrap();
        pod.says("a", "line\n");
        pod.seconds(100.0);
    }
    let words =
        "lines cannot be forwarded: its location \"ftp://h/\" is no URL that begins with http:// or https://";
    assert_eq!(pod.warnings(), [format!("log target \"t\": {words}")]);
    assert_eq!(pod.told_of_targets(), [("t".to_owned(), LogTargetState::Fails(words.to_owned()))]);
    let syslog = "log-targets: {t: {override: merge, type: syslog, location: 'tcp://h:514'}}";
    pod.add(syslog).unwrap();
    assert!(pod.warnings()[1].contains("its type is syslog"));
    assert!(pod.pushes.is_empty());
    // Once it can be reached, it gets the lines that are kept.
    pod.add("log-targets: {t: {override: merge, type: opentelemetry, location: 'https://h:4318'}}").unwrap();
    pod.seconds(0.0);
    let (_, push) = pod.pushed();
    assert_eq!((push.path().as_str(), lines(&push).len()), ("/v1/logs", 3));
}

#[test]
fn the_last_lines_are_sent_before_a_pod_ends_unless_their_target_fails() {
    for (result, waits) in [(Some(LogPushResult::Taken), false), (Some(failed()), false), (None, true)] {
        let mut pod = pod(&[target("t", "h", "all")]);
        pod.says("a", "last\nwords");
        pod.input(PodInput::End(0));
        for name in ["a", "b"] {
            assert!(pod.others.is_empty(), "{:?}", pod.others);
            pod.exit(name, 0);
        }
        let (id, push) = pod.pushed();
        assert_eq!(lines(&push), ["a:last", "a:words"]);
        assert!(!pod.others.contains(&PodOutput::Shutdown(0)));
        if let Some(result) = result.clone() {
            pod.ends(id, result);
        }
        assert_eq!(pod.others.contains(&PodOutput::Shutdown(0)), !waits, "{result:?}");
        // A target that does not answer does not keep a pod from ending.
        pod.seconds(3.1);
        assert!(pod.others.contains(&PodOutput::Shutdown(0)));
    }
}

/// An act of services, of targets, or of an operator.
#[derive(Debug, Clone)]
enum Act {
    Say(bool, usize, usize),
    End(usize, u8),
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (any::<bool>(), 0..300_usize, 0..40_usize).prop_map(|(is_a, length, count)| Act::Say(is_a, length, count)),
        3 => (0..3_usize, 0..3_u8).prop_map(|(at, result)| Act::End(at, result)),
        3 => (0..3_000_u64).prop_map(Act::Pass),
    ]
}

proptest! {
    #[test]
    fn each_line_is_taken_in_order_or_counted_as_lost_and_nothing_grows(
        acts in proptest::collection::vec(act(), 0..80),
    ) {
        let limits = PodLimits { log_ring: 5_000, ..PodLimits::default() };
        let options = PodSettings { version: String::new(), boot_id: String::new(), seed: 3, limits };
        let mut pod = Pod::with(options, &plan(&[target("t", "h", "all"), target("u", "g", "b")]));
        pod.act(ServicesAction::Start, &["a", "b"]);
        pod.seconds(1.5);
        let mut said = BTreeMap::from([("a", 0_u64), ("b", 0)]);
        let mut next: BTreeMap<(String, String), u64> = BTreeMap::new();
        let (mut taken, mut lost) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
        // Whatever has happened, all that is left is taken in the end.
        let last = (0..200).flat_map(|_| [Act::End(0, 0), Act::Pass(2_000)]);
        for act in acts.into_iter().chain(last) {
            match act {
                Act::Say(is_a, length, count) => {
                    let service = if is_a { "a" } else { "b" };
                    for _ in 0..count {
                        let number = said.get_mut(service).unwrap();
                        pod.says(service, &format!("{number} {}\n", "x".repeat(length)));
                        *number += 1;
                    }
                }
                Act::End(at, result) if at < pod.pushes.len() => {
                    let (id, push) = pod.pushes.remove(at);
                    let result = match result {
                        0 => LogPushResult::Taken,
                        1 => refused(),
                        _ => failed(),
                    };
                    if result != failed() {
                        for stream in &push.streams {
                            let next = next.entry((push.target.clone(), stream.service.clone())).or_default();
                            for line in &stream.lines {
                                let number: u64 = line.message.split(' ').next().unwrap().parse().unwrap();
                                prop_assert!(number >= *next, "a line is taken twice or out of order");
                                *next = number + 1;
                            }
                        }
                    }
                    if result == LogPushResult::Taken {
                        *taken.entry(push.target.clone()).or_default() += lines(&push).len() as u64;
                    }
                    pod.ends(id, result);
                }
                Act::End(..) => {}
                Act::Pass(time) => pod.pass(Duration::from_millis(time)),
            }
            for (name, state) in pod.told_of_targets() {
                if let LogTargetState::Takes { lost: more } = state {
                    *lost.entry(name).or_default() += more;
                }
            }
            let mut open: Vec<&str> = pod.pushes.iter().map(|(_, push)| push.target.as_str()).collect();
            open.sort_unstable();
            prop_assert!(open.windows(2).all(|two| two[0] != two[1]), "a target has two pushes: {open:?}");
            for (_, push) in &pod.pushes {
                prop_assert!(lines(push).len() <= 100);
                prop_assert!(push.target == "t" || push.streams.iter().all(|stream| stream.service == "b"));
            }
        }
        for (name, expected) in [("t", said["a"] + said["b"]), ("u", said["b"])] {
            let untold = pod.supervisor.forwards[name].lost;
            let found = taken.get(name).unwrap_or(&0) + lost.get(name).unwrap_or(&0) + untold;
            prop_assert_eq!(found, expected, "lines of {}", name);
        }
    }
}
