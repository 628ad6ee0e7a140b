//! Removal, exhaustively: every order in which operators' commands, hooks, failures, crashes and time can meet in
//! models of two applications and up to three units. From every state that can be reached
//!
//! - what is dying says what it waits for;
//! - there is a way to the end without force, as long as hooks are tried again and agents come back;
//! - forced removal gets there with all agents silent.
//!
//! A search goes on from each state by each move, and knows a state again by [`Lab::standing`].

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
};

use periapt_host_api::command::Force;
use periapt_lab::Lab;

mod alike;
mod charms;
mod moves;
mod plants;
mod scenes;
mod states;

use alike::Places;
use moves::Move;
use plants::Plant;
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
    /// All states, by where the model stands.
    places: HashSet<u128>,
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

/// A scene of more states is too large to be searched.
const MOST_STATES: usize = 5_000_000;

/// After so many states a long search says how far it is.
const PROGRESS: usize = 20_000;

/// Goes everywhere, and checks each state. More than `bound` states are a scene that is too large.
///
/// # Errors
/// What is wrong with a state, and how it came about.
fn search(scene: &Scene, bound: usize) -> Result<Found, String> {
    let mut places = Places::new(scene.twins());
    search_by(scene, bound, |lab| places.of(lab))
}

/// The same, with another way to know a state again.
fn search_by(scene: &Scene, bound: usize, mut place: impl FnMut(&Lab) -> u128) -> Result<Found, String> {
    let mut found = Found::default();
    let mut known: HashMap<u128, usize> = HashMap::new();
    let beginning = scene.beginning();
    known.insert(place(&beginning), 0);
    found.reached.push(None);
    // The nearest first: the way to what is wrong is a short one, and no more models wait than are equally far.
    let mut waiting = VecDeque::from([(0, beginning)]);
    while let Some((state, lab)) = waiting.pop_front() {
        if state > 0 && state % PROGRESS == 0 {
            tell(&format!("{scene}: {state} states searched, {} waiting", waiting.len()));
        }
        found.hopeful.resize(found.reached.len(), Vec::new());
        found.ended.resize(found.reached.len(), false);
        found.ended[state] = states::nothing_is_dying(&lab);
        states::check(&lab, scene.plant())
            .map_err(|what| format!("{what}\nafter {}", found.way_to(state)))?;
        for step in scene.moves(&lab) {
            let mut next = lab.clone();
            next.forget_past();
            scene
                .perform(&mut next, &step)
                .map_err(|error| format!("{error}\nafter {}, then {step}", found.way_to(state)))?;
            let count = found.reached.len();
            let number = *known.entry(place(&next)).or_insert(count);
            if number == count {
                if count >= bound {
                    return Err(format!("more than {bound} states; the last after {}", found.way_to(state)));
                }
                found.reached.push(Some((state, step.clone())));
                found.hopeful.push(Vec::new());
                found.ended.push(false);
                waiting.push_back((number, next));
            }
            if number != state {
                *found.moves.entry(step.kind()).or_default() += 1;
                if step.is_hopeful() {
                    found.hopeful[number].push(state);
                }
            }
        }
    }
    found.places = known.into_keys().collect();
    match found.stuck().as_slice() {
        [] => Ok(found),
        stuck => Err(format!(
            "{} of {} states have no way on\nafter {}",
            stuck.len(),
            found.reached.len(),
            found.way_to(stuck[0])
        )),
    }
}

#[expect(clippy::print_stderr, reason = "how many states there are is worth knowing")]
fn tell(what: &str) {
    eprintln!("{what}");
}

fn assert_always_ends(scene: &Scene) -> Found {
    let found = search(scene, MOST_STATES).unwrap_or_else(|what| panic!("{what}"));
    tell(&format!("{scene}: {} states, {:?}", found.reached.len(), found.moves));
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

/// Operators may remove either application, and what relates them.
fn of_all(scene: Scene, applications: [&'static str; 2]) -> Scene {
    scene
        .with("remove the first", scenes::application(applications[0], None))
        .with("remove the second", scenes::application(applications[1], None))
        .with("remove the relation", scenes::relation(None))
}

/// What operators may ask of small scenes.
fn removed(scene: Scene, applications: [&'static str; 2]) -> Scene {
    let scene = of_all(scene, applications);
    if std::env::var_os(EVERYTHING).is_none() {
        return scene.without(DEAR).crowd(Crowd::One);
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
    let found = assert_always_ends(&removed(Scene::related("one and one", 1, 1).at_rest(), ["a", "b"]));
    assert_met(&found, &["begin", "finish", "tend", "pass", "crash", "remove the relation"]);
    if std::env::var_os(EVERYTHING).is_some() {
        // From before their first hooks.
        assert_always_ends(&removed(Scene::related("starting", 1, 1), ["a", "b"]).crowd(Crowd::One));
    }
}

#[test]
fn three_related_units_always_go() {
    let scene = |name| Scene::related(name, 2, 1).at_rest().crowd(Crowd::One);
    if std::env::var_os(EVERYTHING).is_none() {
        assert_always_ends(&of_all(scene("two and one"), ["a", "b"]).without(DEARER));
        return;
    }
    // Which of the two units is which tells nothing, and halves what is to be searched. With all moves at once it would
    // still be too much: what is asked for here differs from search to search, and so does what dies.
    let force = Some(Force { max_wait: 60 });
    let scene = |name| scene(name).with_twins();
    let of_the_other = |scene: Scene| scene.with("remove the second", scenes::application("b", None));
    let each = |scene: Scene, names: [&'static str; 2], force| {
        scene.with(names[0], scenes::unit("a/0", force)).with(names[1], scenes::unit("a/1", force))
    };
    let searches = [
        of_all(scene("two and one, all removed"), ["a", "b"]).without(&["kill", "revive"]),
        of_all(scene("two and one, on a host that dies"), ["a", "b"]).without(&["fail", "resolve"]),
        of_the_other(each(scene("two and one, each removed"), ["remove a/0", "remove a/1"], None))
            .without(&["kill", "revive", "restart"]),
        of_the_other(each(scene("two and one, each forced"), ["force a/0", "force a/1"], force))
            .without(&["kill", "revive", "restart"]),
        of_the_other(scene("two and one, forced"))
            .with("force the first", scenes::application("a", force))
            .with("force the relation", scenes::relation(force))
            .without(&["kill", "revive", "restart"]),
    ];
    for scene in searches {
        assert_always_ends(&scene);
    }
}

/// What [`alike`] says is so: all states, told apart, come to the same as those that a reduced search visits.
#[test]
fn units_that_are_alike_are_told_apart_by_nothing() {
    let scene = Scene::crew("two alike", 2)
        .at_rest()
        .with_twins()
        .with("remove both", scenes::application("a", None))
        .with("remove a/0", scenes::unit("a/0", None))
        .with("remove a/1", scenes::unit("a/1", None))
        .without(&["fail", "resolve", "crash", "restart"])
        .crowd(Crowd::One);
    let reduced = assert_always_ends(&scene);
    assert_met(&reduced, &["claim", "kill", "revive"]);
    let mut images = HashSet::new();
    let (mut alike, mut apart) = (Places::new(scene.twins()), Places::new(None));
    let whole = search_by(&scene, MOST_STATES, |lab| {
        images.insert(alike.of(lab));
        apart.of(lab)
    });
    let whole = whole.unwrap_or_else(|what| panic!("{what}"));
    assert!(whole.reached.len() > reduced.reached.len());
    assert_eq!(images, reduced.places);
}

#[test]
fn a_principal_and_its_subordinate_always_go() {
    assert_always_ends(&removed(Scene::accompanied("accompanied", 1).at_rest(), ["a", "s"]));
}

fn assert_finds(plant: Plant, what: &str, way: &str) {
    let scene = Scene::alone("with a defect").at_rest().with("remove it", scenes::application("a", None));
    let scene = scene.without(DEAR).planted(plant);
    let told = search(&scene, MOST_STATES).unwrap_err();
    assert!(told.contains(what) && told.contains(way), "{told}");
}

#[test]
fn a_death_that_nobody_hears_of_is_found() {
    assert_finds(Plant::UnheardEnd("a/0"), "states have no way on", "after remove it");
}

#[test]
fn a_unit_that_keeps_its_reason_to_itself_is_found() {
    let silent = "dying, and silent about what they wait for: unit a/0";
    assert_finds(Plant::SilentUnit("a", "a/0"), silent, "after remove it");
}

#[test]
fn a_force_that_waits_for_ever_is_found() {
    assert_finds(Plant::StoppedClock, "left after forced removal: application a, unit a/0", "\nafter ");
}
