//! Goal state in a whole model: a charm sees the operator's wishes before its relation hooks.

use crate::bench::{Related, does};

#[test]
fn units_at_the_other_end_are_wanted_before_they_joined() {
    let mut bench = Related::unheard(2);
    bench.lab.script("a/0", "db-relation-created", does("goal-state --format json")).unwrap();
    bench.lab.release("a/0").unwrap();
    bench.run();
    let created =
        bench.lab.trace().iter().find(|traced| traced.to_string() == "db-relation-created").unwrap();
    let goal: serde_json::Value =
        serde_json::from_str(&created.output_of("goal-state").unwrap().stdout).unwrap();
    let names: Vec<&String> = goal["relations"]["db"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["b", "b/0", "b/1"]);
    assert_eq!(goal["units"].as_object().unwrap().len(), 1);
}
