//! A [`View`] on a screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Dataset, GraphType, Paragraph, Row, Table};

use super::keys::HELP;
use super::{Capacity, Figures, View};
use crate::document::verdict::Verdict;
use crate::terminal::chart;
use crate::words::number::{rate, time};

/// Whether the keys are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    Shown,
    Hidden,
}

/// Everything, as far as the screen has room: figures first, charts last.
pub fn draw(frame: &mut Frame<'_>, view: &View, help: Help) {
    let [title, demand, table, errors, generator, charts, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(self::title(view), title);
    frame.render_widget(self::demand(view), demand);
    frame.render_widget(figures(view), table);
    frame.render_widget(self::errors(view), errors);
    frame.render_widget(self::generator(view), generator);
    if charts.height >= 5 {
        // Labels of one chart end where the other begins.
        let halves = Layout::horizontal([Constraint::Fill(1); 2]).spacing(GAP);
        let [left, right] = halves.areas(charts);
        draw_chart(frame, left, "requests/s", &view.throughput, Color::Green, rate);
        draw_chart(frame, right, "p95", &view.p95_ms, Color::Magenta, |ms| time(ms / 1e3));
    }
    frame.render_widget(self::footer(view), footer);
    if help == Help::Shown {
        draw_help(frame);
    }
}

/// Columns between the charts.
const GAP: u16 = 3;

fn footer(view: &View) -> Paragraph<'_> {
    match view.typed.as_str() {
        "" => Paragraph::new("+ - 0-9 load   p pause   q stop   ? help").dim(),
        typed => Paragraph::new(format!("load: {typed}_   Enter sets it, Esc forgets it")),
    }
}

fn title(view: &View) -> Paragraph<'_> {
    Paragraph::new(Line::from(vec!["tenfold load ".bold(), Span::raw(&view.target)]))
}

fn demand(view: &View) -> Paragraph<'_> {
    let seconds = view.elapsed.as_secs();
    let time = view.length.map_or_else(
        || format!("{seconds} s"),
        |length| format!("{seconds} s of {} s", length.as_secs()),
    );
    let mut words = vec![Span::raw(time), Span::raw("   "), Span::raw(&view.demand)];
    if let Some(phase) = &view.phase {
        words.push(format!("   phase {phase}").into());
    }
    if let Some(word) = view.motion.word() {
        words.push(format!("   {word}").yellow().bold());
    }
    words.push(format!("   {} requests", view.requests).dim());
    Paragraph::new(Line::from(words))
}

fn figures(view: &View) -> Table<'_> {
    let row = |name: &'static str, figures: &Figures| {
        let t = &figures.response_ms;
        let cell = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| time(ms / 1e3));
        let times = [t.p50, t.p90, t.p95, t.p99, t.max].map(cell);
        let rates = [rate(figures.throughput), rate(figures.errors)];
        let cells = std::iter::once(name.to_owned()).chain(rates).chain(times);
        Row::new(cells.collect::<Vec<_>>())
    };
    let head = ["", "requests/s", "errors/s", "p50", "p90", "p95", "p99", "max"];
    let widths = [10, 11, 9, 8, 8, 8, 8, 8].map(Constraint::Length);
    Table::new([row("last 5 s", &view.now), row("in total", &view.total)], widths)
        .header(Row::new(head).style(Style::new().add_modifier(Modifier::DIM)))
}

fn errors(view: &View) -> Paragraph<'_> {
    if view.errors.is_empty() {
        return Paragraph::new("no errors".dim());
    }
    let kinds = view.errors.iter().map(|(kind, count)| format!("{kind} {count}"));
    Paragraph::new(format!("errors: {}", kinds.collect::<Vec<_>>().join(", ")).red())
}

fn generator(view: &View) -> Paragraph<'_> {
    let (word, color) = match view.verdict {
        Verdict::Valid => ("valid", Color::Green),
        Verdict::Suspect => ("suspect", Color::Yellow),
        Verdict::Invalid => ("invalid", Color::Red),
    };
    let first = Line::from(vec![
        Span::raw(format!(
            "generator {:.2} cores, busiest thread {:.0} %   so far ",
            view.generator_cores,
            view.busiest_thread * 100.0
        )),
        Span::styled(word, color),
    ]);
    let overload = (view.capacity == Capacity::Overloaded).then(|| {
        Line::from("the target is overloaded: requests come faster than they are answered".red())
    });
    let reasons = view.reasons.iter().map(|reason| Line::from(format!("  {reason}").dim()));
    Paragraph::new(std::iter::once(first).chain(overload).chain(reasons).collect::<Vec<_>>())
}

fn draw_chart(
    frame: &mut Frame<'_>,
    area: Rect,
    name: &str,
    points: &[(f64, f64)],
    color: Color,
    word: impl Fn(f64) -> String,
) {
    if points.is_empty() {
        let words = format!("{name}: no second has enough answers for it yet");
        return frame.render_widget(Paragraph::new(words).dim(), area);
    }
    let first = points.first().map_or(0.0, |(x, _)| *x);
    let last = points.last().map_or(1.0, |(x, _)| *x).max(first + 10.0);
    let top = points.iter().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9) * 1.1;
    let line = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(color)
        .data(points);
    let seconds = [first, last].map(|seconds| format!("{seconds:.0} s"));
    let x = chart::Span { from: first, to: last, words: seconds };
    let y = chart::Span { from: 0.0, to: top, words: ["0".to_owned(), word(top)] };
    let chart = chart::chart(name.to_owned(), vec![line], x, y);
    frame.render_widget(chart, area);
}

fn draw_help(frame: &mut Frame<'_>) {
    let lines = HELP.map(|(keys, meaning)| Line::from(format!(" {keys:<8}{meaning}")));
    let area = frame.area();
    let height = (lines.len() as u16 + 2).min(area.height);
    let width = 72.min(area.width);
    let area = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    frame
        .render_widget(Paragraph::new(lines.to_vec()).block(Block::bordered().title("keys")), area);
}
