//! Exhaustive search of removal: every order of operators' commands, hooks, failures, crashes and time in models of two
//! applications and up to three units. From every state that can be reached
//!
//! - a dying thing has a status that names the reason it waits;
//! - there is a path to the end without force, as long as hooks are retried and agents come back;
//! - forced removal ends with all agents silent.
//!
//! The search continues from each state by each move, and recognizes a state by [`Lab::standing`].

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

mod charms;
mod moves;
mod planted_defects;
mod scenes;
mod states;
mod symmetry;

use moves::Move;
use planted_defects::PlantedDefect;
use scenes::{Concurrency, Scene};
use symmetry::StateDigests;

/// The result of a search.
#[derive(Debug, Default)]
struct Found {
    /// The first path to each state: its predecessor and the move.
    reached: Vec<Option<(usize, Move)>>,
    /// The predecessors of each state by hopeful moves ([`Move::is_hopeful`]).
    hopeful: Vec<Vec<usize>>,
    /// True for states in which every requested removal is done.
    ended: Vec<bool>,
    /// The number of times that each kind of move changed the state.
    moves: HashMap<&'static str, usize>,
    /// The digests of all states.
    states: HashSet<u128>,
}

impl Found {
    /// Returns the moves from the beginning to a state, for a failure's message.
    fn way_to(&self, mut state: usize) -> String {
        let mut way = Vec::new();
        while let Some((before, step)) = &self.reached[state] {
            way.push(step.to_string());
            state = *before;
        }
        way.reverse();
        way.join(", then ")
    }

    /// Returns the states from which no hopeful move leads towards the end.
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

/// The most states of a scene; a search of more takes too long.
const MOST_STATES: usize = 5_000_000;

/// The number of states between two progress messages of a long search.
const PROGRESS: usize = 20_000;

/// Searches all states, and checks each. Refuses a scene with more than `bound` states.
///
/// # Errors
/// The fault of a state, and the path to it.
fn search(scene: &Scene, bound: usize) -> Result<Found, String> {
    let mut states = StateDigests::new(scene.equal_units());
    search_by(scene, bound, |lab| states.of(lab))
}

/// Searches with another digest of states.
fn search_by(scene: &Scene, bound: usize, mut place: impl FnMut(&Lab) -> u128) -> Result<Found, String> {
    let mut found = Found::default();
    let mut known: HashMap<u128, usize> = HashMap::new();
    let beginning = scene.beginning();
    known.insert(place(&beginning), 0);
    found.reached.push(None);
    // Breadth-first: the path to a fault is short, and only models of one distance wait.
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
    found.states = known.into_keys().collect();
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

/// A variable that makes each scene be searched with every move, for minutes. Without it a search takes seconds.
const EVERYTHING: &str = "PERIAPT_EXHAUSTIVE";

/// The moves that a short search of two units leaves out.
const DEAR: &[&str] = &["fail", "resolve", "kill", "revive", "restart"];
/// The moves that a short search of a larger scene leaves out.
const DEARER: &[&str] = &["fail", "resolve", "kill", "revive", "restart", "crash", "step", "pass"];

/// Lets operators remove either application, and the relation between them.
fn of_all(scene: Scene, applications: [&'static str; 2]) -> Scene {
    scene
        .with("remove the first", scenes::application(applications[0], None))
        .with("remove the second", scenes::application(applications[1], None))
        .with("remove the relation", scenes::relation(None))
}

/// Lets operators send the commands for small scenes.
fn removed(scene: Scene, applications: [&'static str; 2]) -> Scene {
    let scene = of_all(scene, applications);
    if std::env::var_os(EVERYTHING).is_none() {
        return scene.without(DEAR).concurrency(Concurrency::One);
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
        // The search starts before their first hooks.
        assert_always_ends(
            &removed(Scene::related("starting", 1, 1), ["a", "b"]).concurrency(Concurrency::One),
        );
    }
}

#[test]
fn three_related_units_always_go() {
    let scene = |name| Scene::related(name, 2, 1).at_rest().concurrency(Concurrency::One);
    if std::env::var_os(EVERYTHING).is_none() {
        assert_always_ends(&of_all(scene("two and one"), ["a", "b"]).without(DEARER));
        return;
    }
    // The roles of the two units do not matter, which halves the search. With all moves at once it would still be too
    // large: each search has other commands, and other deaths.
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

/// Checks the claim of [`alike`]: the states of a full search reduce to those of a reduced one.
#[test]
fn units_that_are_alike_are_told_apart_by_nothing() {
    let scene = Scene::crew("two alike", 2)
        .at_rest()
        .with_twins()
        .with("remove both", scenes::application("a", None))
        .with("remove a/0", scenes::unit("a/0", None))
        .with("remove a/1", scenes::unit("a/1", None))
        .without(&["fail", "resolve", "crash", "restart"])
        .concurrency(Concurrency::One);
    let reduced = assert_always_ends(&scene);
    assert_met(&reduced, &["claim", "kill", "revive"]);
    let mut images = HashSet::new();
    let (mut alike, mut apart) = (StateDigests::new(scene.equal_units()), StateDigests::new(None));
    let whole = search_by(&scene, MOST_STATES, |lab| {
        images.insert(alike.of(lab));
        apart.of(lab)
    });
    let whole = whole.unwrap_or_else(|what| panic!("{what}"));
    assert!(whole.reached.len() > reduced.reached.len());
    assert_eq!(images, reduced.states);
}

#[test]
fn a_principal_and_its_subordinate_always_go() {
    assert_always_ends(&removed(Scene::accompanied("accompanied", 1).at_rest(), ["a", "s"]));
}

fn assert_finds(plant: PlantedDefect, what: &str, way: &str) {
    let scene = Scene::alone("with a defect").at_rest().with("remove it", scenes::application("a", None));
    let scene = scene.without(DEAR).planted(plant);
    let told = search(&scene, MOST_STATES).unwrap_err();
    assert!(told.contains(what) && told.contains(way), "{told}");
}

#[test]
fn a_death_that_nobody_hears_of_is_found() {
    assert_finds(PlantedDefect::UnheardEnd("a/0"), "states have no way on", "after remove it");
}

#[test]
fn a_unit_that_keeps_its_reason_to_itself_is_found() {
    let silent = "dying, and silent about what they wait for: unit a/0";
    assert_finds(PlantedDefect::SilentUnit("a", "a/0"), silent, "after remove it");
}

#[test]
fn a_force_that_waits_for_ever_is_found() {
    assert_finds(
        PlantedDefect::StoppedClock,
        "left after forced removal: application a, unit a/0",
        "\nafter ",
    );
}
