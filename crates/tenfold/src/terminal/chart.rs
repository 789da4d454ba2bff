//! Lines over two axes, on a screen or as text.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::Stylize;
use ratatui::widgets::{Axis, Block, Chart, Dataset, Widget};

/// What an axis spans, and what stands at its ends.
pub struct Span {
    pub from: f64,
    pub to: f64,
    pub words: [String; 2],
}

/// The lines under a title; those that come later lie above.
pub fn chart<'a>(title: String, lines: Vec<Dataset<'a>>, x: Span, y: Span) -> Chart<'a> {
    let axis = |span: Span| Axis::default().bounds([span.from, span.to]).labels(span.words).dim();
    // Names are for those who have one: a legend would lie over the lines.
    Chart::new(lines)
        .block(Block::new().title(title))
        .x_axis(axis(x))
        .y_axis(axis(y))
        .legend_position(None)
}

/// The chart without its colours, lines of so many characters at most.
pub fn text(chart: &Chart<'_>, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut drawn = Buffer::empty(area);
    chart.render(area, &mut drawn);
    let rows = drawn.content().chunks(usize::from(width));
    let line =
        |row: &[Cell]| row.iter().map(Cell::symbol).collect::<String>().trim_end().to_owned();
    rows.map(|row| format!("  {}", line(row)).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use ratatui::symbols::Marker;

    use super::*;

    #[test]
    fn a_chart_places_points_by_their_values() {
        let points = [(0.0, 0.0), (10.0, 4.0)];
        let line = Dataset::default().marker(Marker::Custom('o')).data(&points);
        let span = |to: f64| Span { from: 0.0, to, words: ["0".to_owned(), to.to_string()] };
        let chart = chart("y".to_owned(), vec![line], span(10.0), span(4.0));
        assert_eq!(
            text(&chart, 12, 7),
            "  y\n  4│         o\n   │\n   │\n  0│o\n   └──────────\n   0        10\n"
        );
    }
}
