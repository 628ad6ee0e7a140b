//! Tables as Juju draws them: columns two spaces apart, a heading, no lines.

use unicode_width::UnicodeWidthStr as _;

use super::{Text, TextStyle, escape::one_line, style::styled};

/// One value in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    style: TextStyle,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: one_line(text).into_owned(), style: TextStyle::Plain }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        number.to_string().into()
    }
}

impl From<(&str, TextStyle)> for Cell {
    fn from((text, style): (&str, TextStyle)) -> Self {
        Self { style, ..text.into() }
    }
}

/// Rows under a heading. Values are untrusted texts, and are escaped.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    heading: Vec<Cell>,
    right: Vec<usize>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        let heading = heading.into_iter().map(|text| Cell::from((text, TextStyle::Heading))).collect();
        Self { heading, right: Vec::new(), rows: Vec::new() }
    }

    /// Right-aligns a column, counted from 0, for numbers.
    pub(crate) fn right(mut self, column: usize) -> Self {
        self.right.push(column);
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns true if there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Draws the lines, each with a line break and without trailing spaces.
    pub(crate) fn render(&self) -> Text {
        let all = || std::iter::once(&self.heading).chain(&self.rows);
        let width_of = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heading.len()).map(width_of).collect();
        let mut lines = String::new();
        for row in all() {
            let last = row.iter().rposition(|cell| !cell.text.is_empty());
            let used = last.map_or(0, |last| last + 1);
            for (column, (cell, wide)) in row.iter().zip(&widths).take(used).enumerate() {
                let gap = " ".repeat(wide.saturating_sub(cell.text.width()));
                let text = styled(&cell.text, cell.style);
                let is_last = column + 1 == used;
                match (self.right.contains(&column), is_last) {
                    (true, _) => lines.extend([gap.as_str(), &text]),
                    (false, true) => lines.push_str(&text),
                    (false, false) => lines.extend([text.as_str(), &gap]),
                }
                if !is_last {
                    lines.push_str("  ");
                }
            }
            lines.push('\n');
        }
        Text::clean(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(table: &Table) -> String {
        anstream::adapter::strip_str(&table.render()).to_string()
    }

    #[test]
    fn columns_are_two_spaces_apart_and_lines_have_no_space_at_their_end() {
        let mut table = Table::new(["App", "Scale", "Message"]).right(1);
        table.row(["mysql".into(), "2".into(), "".into()]);
        table.row(["wordpress".into(), 13.into(), ("ready", TextStyle::Good).into()]);
        assert_eq!(drawn(&table), "App        Scale  Message\nmysql          2\nwordpress     13  ready\n");
    }

    #[test]
    fn a_letter_takes_the_columns_that_a_terminal_gives_it() {
        let mut table = Table::new(["Message", "Unit"]);
        table.row(["日本".into(), "a/0".into()]);
        table.row(["e\u{301}te\u{301}".into(), "b/0".into()]);
        assert_eq!(drawn(&table), "Message  Unit\n日本     a/0\ne\u{301}te\u{301}      b/0\n");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal_or_add_lines() {
        let mut table = Table::new(["Message"]);
        table.row(["a\u{1b}[2Jb\nc\td\u{7}".into()]);
        assert_eq!(table.render().lines().count(), 2);
        assert!(table.render().ends_with("a\\x1b[2Jb c d\\x07\n"));
    }
}
