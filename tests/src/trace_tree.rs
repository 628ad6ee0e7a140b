//! The spans of one trace as a tree.

use std::fmt::Write as _;

use crate::Collected;

/// The attributes that a line of the tree shows, in this order.
const SHOWN: [&str; 11] = [
    "verb",
    "method",
    "route",
    "command",
    "unit",
    "operation",
    "event",
    "revision",
    "commands",
    "fuel",
    "outcome",
];

/// A span with those that it caused.
#[derive(Debug, Clone)]
pub struct TraceTree {
    /// The span.
    pub span: Collected,
    /// The spans below it, in the order in which they began.
    pub children: Vec<TraceTree>,
}

impl TraceTree {
    /// Returns the trees of a trace: one, if no parent is missing.
    pub fn of(spans: &[Collected], trace: u128) -> Vec<Self> {
        let spans: Vec<_> = spans.iter().filter(|span| span.trace == trace).collect();
        let is_known = |id: u64| spans.iter().any(|span| span.id == id);
        let roots = spans.iter().filter(|span| !span.parent.is_some_and(is_known));
        sorted(roots.map(|root| Self::below(&spans, root)).collect())
    }

    fn below(spans: &[&Collected], span: &Collected) -> Self {
        // A span is its own ancestor in no trace that is a tree.
        let children = spans.iter().filter(|child| child.parent == Some(span.id) && child.id != span.id);
        Self {
            span: span.clone(),
            children: sorted(children.map(|child| Self::below(spans, child)).collect()),
        }
    }

    /// Returns the first span, in this tree, at the end of a path of names; the path begins below the root.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        self.all_at(path).into_iter().next()
    }

    /// Returns all spans at the end of a path of names; the path begins below the root.
    pub fn all_at(&self, path: &[&str]) -> Vec<&Self> {
        let Some((name, rest)) = path.split_first() else { return vec![self] };
        let named = self.children.iter().filter(|child| child.span.name == *name);
        named.flat_map(|child| child.all_at(rest)).collect()
    }

    /// Returns all spans of a name, this one included.
    pub fn all_named(&self, name: &str) -> Vec<&Self> {
        let mut found: Vec<&Self> = self.children.iter().flat_map(|child| child.all_named(name)).collect();
        if self.span.name == name {
            found.insert(0, self);
        }
        found
    }

    /// Returns the tree as text: each span with its begin after that of the root and its duration, in milliseconds.
    pub fn render(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, self.span.began_ns, 0);
        text
    }

    fn write(&self, text: &mut String, zero: u64, depth: usize) {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let attributes: Vec<String> = SHOWN
            .iter()
            .filter(|name| !self.span.attribute(name).is_empty())
            .map(|name| format!("{name}={}", self.span.attribute(name)))
            .collect();
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "{:>9.3} ms {:>9.3} ms  {:width$}{} {} ({})",
            milliseconds(self.span.began_ns.saturating_sub(zero)),
            milliseconds(self.span.took_ns),
            "",
            self.span.name,
            attributes.join(" "),
            self.span.service,
            width = 2 * depth
        );
        for child in &self.children {
            child.write(text, zero, depth + 1);
        }
    }
}

fn sorted(mut trees: Vec<TraceTree>) -> Vec<TraceTree> {
    trees.sort_by_key(|tree| (tree.span.began_ns, tree.span.id));
    trees
}
