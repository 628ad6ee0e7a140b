//! Removal, exhaustively: every order in which operators' commands, hooks, failures, crashes and time can meet in
//! models of two applications and up to three units. From every state that can be reached
//!
//! - what is dying says what it waits for;
//! - there is a way to the end without force, as long as hooks are tried again and agents come back;
//! - forced removal gets there with all agents silent.
//!
//! A search goes on from each state by each move, and knows a state again by [`Lab::standing`].

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    fmt,
    hash::{Hash, Hasher},
};

use periapt_host_api::command::Force;
use periapt_lab::Lab;

mod moves;
mod scenes;
mod states;

use moves::Move;
use scenes::{Crowd, Scene};

/// What a search came to.
#[derive(Debug, Default)]
struct Found {
    /// How each state was reached first: from which, by which move.
    reached: Vec<Option<(usize, Move)>>,
    /// From which states a move leads here that needs neither an operator nor luck.
    hopeful: Vec<Vec<usize>>,
    /// States in which all that was asked for is done.
    ended: Vec<bool>,
    /// How often each kind of move led anywhere.
    moves: HashMap<&'static str, usize>,
}

impl Found {
    /// The moves from the beginning to a state, for a failure's message.
    fn way_to(&self, mut state: usize) -> String {
        let mut way = Vec::new();
        while let Some((before, step)) = &self.reached[state] {
            way.push(step.to_string());
            state = *before;
        }
        way.reverse();
        way.join(", then ")
    }

    /// States from which no hopeful move leads towards the end.
    fn stuck(&self) -> Vec<usize> {
        let mut can_end = self.ended.clone();
        let mut waiting: Vec<usize> = (0..can_end.len()).filter(|state| can_end[*state]).collect();
        while let Some(state) = waiting.pop() {
            for before in &self.hopeful[state] {
                if !std::mem::replace(&mut can_end[*before], true) {
                    waiting.push(*before);
                }
            }
        }
        (0..can_end.len()).filter(|state| !can_end[*state]).collect()
    }
}

/// Two hashes of where a model stands: 128 bits, so that no two of a million states are taken for one.
fn place(lab: &Lab) -> u128 {
    let standing = lab.standing().unwrap();
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, &standing).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(1) << 64 | hash(2)
}

/// A scene of more states is too large to be searched.
const MOST_STATES: usize = 3_000_000;

/// Goes everywhere, and checks each state. More than `bound` states are a scene that is too large.
fn search(scene: &Scene, bound: usize) -> Found {
    let mut found = Found::default();
    let mut known: HashMap<u128, usize> = HashMap::new();
    let beginning = scene.beginning();
    known.insert(place(&beginning), 0);
    found.reached.push(None);
    let mut waiting = vec![(0, beginning)];
    while let Some((state, lab)) = waiting.pop() {
        found.hopeful.resize(found.reached.len(), Vec::new());
        found.ended.resize(found.reached.len(), false);
        found.ended[state] = states::nothing_is_dying(&lab);
        if let Err(what) = states::check(&lab) {
            panic!("{what}\nafter {}", found.way_to(state));
        }
        for step in scene.moves(&lab) {
            let mut next = lab.clone();
            next.forget_past();
            if let Err(error) = scene.perform(&mut next, &step) {
                panic!("{error}\nafter {}, then {step}", found.way_to(state));
            }
            let count = found.reached.len();
            let number = *known.entry(place(&next)).or_insert(count);
            if number == count {
                assert!(count < bound, "more than {bound} states; the last after {}", found.way_to(state));
                found.reached.push(Some((state, step.clone())));
                found.hopeful.push(Vec::new());
                found.ended.push(false);
                waiting.push((number, next));
            }
            if number != state {
                *found.moves.entry(step.kind()).or_default() += 1;
                if step.is_hopeful() {
                    found.hopeful[number].push(state);
                }
            }
        }
    }
    found
}

#[expect(clippy::print_stderr, reason = "how many states there are is worth knowing")]
fn assert_always_ends(scene: &Scene) -> Found {
    let found = search(scene, MOST_STATES);
    let stuck = found.stuck();
    assert!(
        stuck.is_empty(),
        "{} of {} states have no way on; the first after {}",
        stuck.len(),
        found.reached.len(),
        found.way_to(stuck[0])
    );
    eprintln!("{scene}: {} states, {:?}", found.reached.len(), found.moves);
    found
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Set, each scene is searched with every move, for minutes; else so far as seconds allow.
const EVERYTHING: &str = "PERIAPT_EXHAUSTIVE";

/// What a search of two units leaves out where seconds count, ...
const DEAR: &[&str] = &["fail", "resolve", "kill", "revive", "restart"];
/// ... and a larger one beside it.
const DEARER: &[&str] = &["fail", "resolve", "kill", "revive", "restart", "crash", "step", "pass"];

/// What operators may ask in every scene.
fn removed(scene: Scene, applications: [&'static str; 2], left_out: &'static [&'static str]) -> Scene {
    let scene = scene
        .with("remove the first", scenes::application(applications[0], None))
        .with("remove the second", scenes::application(applications[1], None))
        .with("remove the relation", scenes::relation(None));
    if std::env::var_os(EVERYTHING).is_none() {
        return scene.without(left_out).crowd(Crowd::One);
    }
    let force = Some(Force { max_wait: 60 });
    scene
        .with("remove a unit", scenes::unit("a/0", None))
        .with("force a unit", scenes::unit("a/0", force))
        .with("force the relation", scenes::relation(force))
}

fn assert_met(found: &Found, kinds: &[&str]) {
    for kind in kinds {
        assert!(found.moves.contains_key(kind), "nothing was ever changed by: {kind}");
    }
}

#[test]
fn a_unit_alone_always_goes_whatever_fails_and_dies() {
    let scene = Scene::alone("alone").with("remove it", scenes::application("a", None));
    let found = assert_always_ends(&scene);
    let hooks = ["begin", "fail", "finish", "tend", "pass", "resolve"];
    assert_met(&found, &hooks);
    assert_met(&found, &["crash", "kill", "revive", "remove it"]);
}

#[test]
fn two_related_units_always_go() {
    let found = assert_always_ends(&removed(Scene::related("one and one", 1, 1).at_rest(), ["a", "b"], DEAR));
    assert_met(&found, &["begin", "finish", "step", "tend", "pass", "crash", "remove the relation"]);
    if std::env::var_os(EVERYTHING).is_some() {
        // From before their first hooks.
        assert_always_ends(&removed(Scene::related("starting", 1, 1), ["a", "b"], DEAR).crowd(Crowd::One));
    }
}

#[test]
fn three_related_units_always_go() {
    let scene = removed(Scene::related("two and one", 2, 1).at_rest(), ["a", "b"], DEARER).crowd(Crowd::One);
    assert_always_ends(&scene);
}

#[test]
fn a_principal_and_its_subordinate_always_go() {
    assert_always_ends(&removed(Scene::accompanied("accompanied", 1).at_rest(), ["a", "s"], DEAR));
}
