//! Columns of text, aligned to the right but for the first.

use ratatui::text::Span;

/// Rows under a head, each column as wide as its widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Leaves out the columns that hold nothing but dashes.
    pub fn without_empty_columns(mut self) -> Table {
        let columns = self.rows[0].len();
        let is_empty = |c: usize| {
            let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(c)).peekable();
            cells.peek().is_some() && cells.all(|cell| cell == "-")
        };
        let kept: Vec<bool> = (0..columns).map(|c| !is_empty(c)).collect();
        for row in &mut self.rows {
            let mut at = kept.iter();
            row.retain(|_| *at.next().unwrap_or(&true));
        }
        self
    }

    /// The head, then the rows below it.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Lines without trailing blanks, each ended by a newline and indented by two.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| columns_of(t)).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(c, (cell, width))| {
                let blanks = " ".repeat(width - columns_of(cell));
                if c == 0 { format!("{cell}{blanks}") } else { format!("{blanks}{cell}") }
            });
            text.push_str("  ");
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// On a terminal: none for an accent, two for an ideograph.
fn columns_of(cell: &str) -> usize {
    Span::raw(cell).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["n", "rate"]);
        table.row(vec!["10".into(), "1.5".into()]);
        assert_eq!(table.render(), "  n   rate\n  10   1.5\n");
    }

    #[test]
    fn columns_of_dashes_are_left_out() {
        let mut table = Table::new(&["n", "p50", "p95"]);
        table.row(vec!["1".into(), "-".into(), "2".into()]);
        table.row(vec!["2".into(), "-".into(), "-".into()]);
        assert_eq!(table.without_empty_columns().render(), "  n  p95\n  1    2\n  2    -\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(&["", "n"]);
        table.row(vec!["検索".into(), "1".into()]);
        table.row(vec!["cafe\u{301}".into(), "2".into()]);
        assert_eq!(table.render(), "        n\n  検索  1\n  cafe\u{301}  2\n");
    }
}
