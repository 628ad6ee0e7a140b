//! Tests of the history.

use periapt_host_api::command::{Command, ControllerCommand};
use periapt_model::{Changes, Input};

use super::*;
use crate::{api::test_state::State, published::Changed};

const STORE: StoreId = StoreId(uuid::Uuid::from_u128(1));

/// A controller's states, one after the other, and the history of them.
struct Story {
    state: State,
    now: Published,
    history: History,
}

impl Story {
    /// Begins with these models.
    fn with<const N: usize>(models: [&str; N]) -> (Self, [ModelUuid; N]) {
        let mut state = State::new();
        let models = models.map(|name| state.add_model("admin", name));
        let now = published(&state.root, Changed::at_start(Revision(1)), 1);
        let history = History::new(&now);
        (Self { state, now, history }, models)
    }

    /// Makes a change that writes in these models, and returns its revision.
    fn write(&mut self, models: &[ModelUuid], weight: usize, change: impl FnOnce(&mut State)) -> Revision {
        change(&mut self.state);
        let revision = Revision(self.now.revision().0 + 1);
        let mut changed = self.now.changed.clone();
        for model in models {
            changed.note_model(*model, revision);
        }
        if models.is_empty() {
            changed.note_outside(revision);
        }
        let next = published(&self.state.root, changed, revision.0);
        self.history.push(&self.now, &next, Weight(weight));
        self.now = next;
        revision
    }

    /// Writes in one model: each time another setting.
    fn set(&mut self, model: ModelUuid, weight: usize) -> Revision {
        let interval = format!("{}s", 60 + self.now.revision().0);
        let set = [("update-status-hook-interval".to_owned(), interval)].into();
        let set = Input::Model(model, Command::SetModelConfig { set, reset: vec![] });
        self.write(&[model], weight, |state| state.operate(set))
    }

    /// Returns the state of a model as a watcher of it that comes back with this revision has seen it; none
    /// if it gets the whole view.
    fn seen(&self, model: ModelUuid, revision: Revision) -> Option<Option<Arc<ModelState>>> {
        let root = self.history.at(STORE, &model, revision)?;
        assert_eq!(root.revision(), revision);
        Some(root.model_or_remains(&model).cloned())
    }

    fn model(&self, model: ModelUuid) -> Arc<ModelState> {
        Arc::clone(self.state.root.model_or_remains(&model).unwrap())
    }
}

fn published(root: &Root, changed: Changed, revision: u64) -> Published {
    let root = root.apply(&Changes::default(), Revision(revision));
    Published { root, store: STORE, changed, problem: None, since: Instant::now() }
}

fn is_same(seen: Option<Option<Arc<ModelState>>>, state: &Arc<ModelState>) -> bool {
    seen.flatten().is_some_and(|seen| Arc::ptr_eq(&seen, state))
}

#[test]
fn each_revision_shows_each_model_as_it_was() {
    let (mut story, [blog, shop]) = Story::with(["blog", "shop"]);
    let mut was = vec![(Revision(1), story.model(blog), story.model(shop))];
    for number in 0..1_000 {
        let at = story.set([blog, shop][number % 2], 1);
        was.push((at, story.model(blog), story.model(shop)));
    }
    for (revision, blog_was, shop_was) in &was {
        assert!(is_same(story.seen(blog, *revision), blog_was), "{revision}");
        assert!(is_same(story.seen(shop, *revision), shop_was), "{revision}");
    }
    assert!(story.seen(blog, Revision(0)).is_none() && story.seen(blog, Revision(9_999)).is_none());
    assert!(story.history.at(StoreId(uuid::Uuid::nil()), &blog, Revision(5)).is_none(), "another store");
    let unknown = ModelUuid(uuid::Uuid::from_u128(3));
    assert!(matches!(story.seen(unknown, Revision(5)), Some(None)));
}

#[test]
fn a_model_that_is_written_all_the_time_leaves_the_others_their_past() {
    let (mut story, [blog, shop]) = Story::with(["blog", "shop"]);
    let before = story.model(blog);
    story.set(blog, 1);
    let after = story.model(blog);
    let mut last = Revision(0);
    for _ in 0..100 {
        last = story.set(shop, MAX_BYTES / 10);
        assert!(story.history.weight <= MAX_BYTES);
    }
    assert!(is_same(story.seen(blog, Revision(1)), &before));
    assert!(is_same(story.seen(blog, last), &after));
    assert!(story.seen(shop, Revision(20)).is_none(), "the oldest of the heaviest go first");
    assert!(is_same(story.seen(shop, last), &story.model(shop)));
    assert!(story.seen(shop, Revision(last.0 - 5)).is_some_and(|seen| seen.is_some()));
    // What is heavier than all that is kept is not kept.
    let large = story.set(shop, 2 * MAX_BYTES);
    assert!(story.history.weight <= MAX_BYTES);
    assert!(story.seen(shop, last).is_none());
    assert!(is_same(story.seen(shop, large), &story.model(shop)));
    assert!(is_same(story.seen(blog, Revision(1)), &before));
}

#[test]
fn settings_for_all_models_are_a_change_of_each() {
    let (mut story, [blog, shop]) = Story::with(["blog", "shop"]);
    let before = (story.model(blog), story.model(shop));
    let set = [("development".to_owned(), "true".to_owned())].into();
    let set = Input::Controller(ControllerCommand::SetModelDefaults { set, reset: vec![] });
    let at = story.write(&[], 1, |state| state.operate(set));
    assert!(!Arc::ptr_eq(&before.0, &story.model(blog)));
    assert!(is_same(story.seen(blog, Revision(1)), &before.0));
    assert!(is_same(story.seen(shop, Revision(1)), &before.1));
    assert!(is_same(story.seen(shop, at), &story.model(shop)));
}

#[test]
fn a_model_that_came_was_not_there_before() {
    let (mut story, [blog]) = Story::with(["blog"]);
    let (was, shop) = (story.model(blog), story.state.add_model("admin", "shop"));
    let came = story.write(&[shop], 1, |_| {});
    assert!(matches!(story.seen(shop, Revision(1)), Some(None)));
    assert!(is_same(story.seen(shop, came), &story.model(shop)));
    assert!(is_same(story.seen(blog, Revision(1)), &was));
}

#[tokio::test(start_paused = true)]
async fn what_was_replaced_is_kept_for_its_time_and_no_longer() {
    let (mut story, [blog, shop]) = Story::with(["blog", "shop"]);
    let before = story.model(blog);
    let first = story.set(blog, 1);
    tokio::time::advance(LONGEST_PAUSE).await;
    let second = story.set(shop, 1);
    story.history.forget_old(Instant::now());
    assert!(is_same(story.seen(blog, Revision(1)), &before));
    tokio::time::advance(KEPT_FOR - LONGEST_PAUSE).await;
    story.history.forget_old(Instant::now());
    assert!(story.seen(blog, Revision(1)).is_none() && story.seen(shop, Revision(1)).is_none());
    assert!(story.seen(blog, first).is_some() && story.seen(shop, first).is_some(), "newer than that");
    tokio::time::advance(LONGEST_PAUSE).await;
    story.history.forget_old(Instant::now());
    assert!(story.seen(shop, first).is_none());
    for model in [blog, shop] {
        assert!(is_same(story.seen(model, second), &story.model(model)), "it is the newest");
    }
    let History { models, by_age, by_weight, weight, .. } = &story.history;
    assert!(models.is_empty() && by_age.is_empty() && by_weight.is_empty() && *weight == 0);
}

#[tokio::test(start_paused = true)]
async fn what_was_too_heavy_is_forgotten_in_the_end_too() {
    let (mut story, [blog]) = Story::with(["blog"]);
    for _ in 0..3 {
        story.set(blog, 2 * MAX_BYTES);
    }
    assert_eq!(story.history.models.len(), 1, "it is known that there was more");
    tokio::time::advance(KEPT_FOR).await;
    story.history.forget_old(Instant::now());
    assert!(story.history.models.is_empty() && story.history.by_age.is_empty());
}

#[test]
fn a_store_that_was_read_again_begins_another_history() {
    let (mut story, [blog]) = Story::with(["blog"]);
    let second = story.set(blog, 1);
    let third = story.set(blog, 1);
    // It lost the last write.
    let again = published(&story.state.root, Changed::at_start(second), second.0);
    story.history.push(&story.now, &again, Weight::default());
    story.now = again;
    assert!(story.seen(blog, Revision(1)).is_none() && story.seen(blog, third).is_none());
    assert!(is_same(story.seen(blog, second), &story.model(blog)));
}
