//! A part of a report, which the text and the page render.

use super::table::Table;

/// A heading, a table, and lines below it.
pub struct Section {
    pub heading: String,
    pub table: Option<Table>,
    /// Sentences.
    pub lines: Vec<String>,
}

impl Section {
    /// The part as text, with an empty line at its end.
    pub fn text(&self) -> String {
        let table = self.table.as_ref().map_or_else(String::new, Table::render);
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        format!("{}\n{table}{lines}\n", self.heading)
    }
}
