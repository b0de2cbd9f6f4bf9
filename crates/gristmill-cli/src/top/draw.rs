//! The board as a terminal shows it, whatever its size.

use gristmill::port::WorkerView;
use gristmill::{Timestamp, error_shape};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::board::{Asked, Board, Line, Pane};
use crate::command::rate_text;
use crate::output::{count, cut, last_line, time};
use gristmill_contract::duration;

/// Below this height only the pane that is looked at is shown.
const LOW: u16 = 16;

const KEYS: &str = "q quit  ↑↓ choose  tab pane  p pause/quiet  r retry  m move  ? help";

const HELP: &str = "\
↑ ↓ k j   choose a row
tab       the next of queues, workers, failures
p         pause the chosen queue, or let it go on; in workers: quiet the chosen one
s         in workers: stop the chosen one
m  M      move one more processor to the chosen queue; let all of a worker rotate again
r         retry: all failed tasks of the chosen queue, or the chosen failure
space     look no more, or again
q, esc    leave; nothing stops that does not run here

ready: due; delayed: due later; blocked: behind a task of its key; run: under a lease
wait: how long the oldest ready task has been due
done/s: since the look before; the trend is what was done at each of the last looks
proc: processors that serve the queue alone; others rotate";

/// A column: its heading, its width, from which width of the terminal it is shown, and
/// what stands in it.
type Column = (&'static str, u16, u16, fn(&Line) -> String);

const COLUMNS: [Column; 11] = [
    ("ready", 8, 0, |line| line.stats.ready.to_string()),
    ("delayed", 8, 60, |line| line.stats.delayed.to_string()),
    ("blocked", 8, 90, |line| line.stats.blocked.to_string()),
    ("run", 6, 40, |line| line.stats.processing.to_string()),
    ("failed", 7, 0, |line| line.stats.failed.to_string()),
    ("wait", 7, 50, |line| line.stats.oldest_ready.map_or_else(|| "-".to_owned(), duration::show)),
    ("put/s", 7, 80, |line| rate_text(line.rates.put)),
    ("done/s", 7, 70, |line| rate_text(line.rates.done)),
    ("fail/s", 7, 100, |line| rate_text(line.rates.failed)),
    ("proc", 5, 80, |line| line.processors.to_string()),
    ("trend", 16, 120, |line| trend(line, 15)),
];

/// Draws all of it.
pub(crate) fn draw(board: &Board, frame: &mut Frame<'_>) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(board)), head);
    frame.render_widget(Paragraph::new(footer(board)), foot);
    if board.help {
        return frame.render_widget(Paragraph::new(HELP), body);
    }
    if body.height < LOW {
        return pane(board, board.pane, frame, body);
    }
    // Title, headings, and a line between: what is left is for failures.
    let high = |pane| u16::try_from(board.rows(pane)).unwrap_or(u16::MAX).max(1).saturating_add(3);
    let workers = high(Pane::Workers).min((body.height / 3).max(4));
    let queues = high(Pane::Queues).min(body.height.saturating_sub(workers + 6));
    let parts = [Constraint::Length(queues), Constraint::Length(workers), Constraint::Min(0)];
    let [queues, workers, failures] = Layout::vertical(parts).areas(body);
    pane(board, Pane::Queues, frame, queues);
    pane(board, Pane::Workers, frame, workers);
    pane(board, Pane::Failures, frame, failures);
}

fn heading(board: &Board) -> Text<'static> {
    let mut parts = vec![
        Span::styled("gristmill top  ", Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(board.store.clone()),
    ];
    if board.frozen {
        parts.push(coloured(board, "  frozen", Color::Yellow));
    }
    if let Some(away) = &board.away {
        parts.push(coloured(board, &format!("  {}", cut(away, 200)), Color::Red));
    }
    Text::from(parts)
}

fn footer(board: &Board) -> Text<'static> {
    match (&board.asked, &board.said) {
        (Some(Asked::RetryQueue(queue, failed)), _) => {
            let tasks = count(*failed, "failed task");
            Text::from(coloured(board, &format!("retry {tasks} of {queue}? y/n"), Color::Yellow))
        }
        (Some(Asked::RetryTask(id)), _) => {
            Text::from(coloured(board, &format!("retry task {id}? y/n"), Color::Yellow))
        }
        (Some(Asked::Stop(id)), _) => {
            let words = format!("stop worker {}? what runs finishes. y/n", cut(id.as_str(), 40));
            Text::from(coloured(board, &words, Color::Yellow))
        }
        (None, Some(said)) => Text::from(cut(said, 300)),
        (None, None) => Text::from(KEYS),
    }
}

fn coloured(board: &Board, text: &str, colour: Color) -> Span<'static> {
    let style = if board.colour { Style::new().fg(colour) } else { Style::new() };
    Span::styled(text.to_owned(), style)
}

fn pane(board: &Board, which: Pane, frame: &mut Frame<'_>, area: Rect) {
    let [title, area] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let said = match which {
        Pane::Queues => count(board.lines.len() as u64, "queue"),
        Pane::Workers => {
            let rotating = match board.rotating() {
                0 => String::new(),
                n => format!(", {} rotating", count(n as u64, "processor")),
            };
            format!("{}{rotating}", count(board.workers.len() as u64, "worker"))
        }
        Pane::Failures => {
            let all = board.lines.iter().map(|line| line.stats.failed).sum();
            format!("{} failed", count(all, "task"))
        }
    };
    let mark = if board.pane == which { "▸ " } else { "  " };
    let style = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Span::styled(format!("{mark}{said}"), style)), title);
    let (rows, widths, headings) = match which {
        Pane::Queues => queues(board, area.width),
        Pane::Workers => workers(board, area.width),
        Pane::Failures => failures(board, area.width),
    };
    if rows.is_empty() {
        let hint = match which {
            Pane::Queues => "  declare one: gristmill queue add NAME",
            Pane::Workers => "  start one: gristmill work --exec CMD, or gristmill up",
            Pane::Failures => "",
        };
        return frame.render_widget(Paragraph::new(hint), area);
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    let table = Table::new(rows, widths)
        .header(Row::new(headings).style(dim))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let chosen = (board.pane == which).then(|| board.row_of(which));
    let mut state = TableState::default().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

/// Rows, widths and headings of a table.
type Shown = (Vec<Row<'static>>, Vec<Constraint>, Vec<Text<'static>>);

fn queues(board: &Board, width: u16) -> Shown {
    let shown: Vec<&Column> = COLUMNS.iter().filter(|(_, _, from, _)| width >= *from).collect();
    let longest = board.lines.iter().map(|line| line.stats.queue.as_str().chars().count()).max();
    let name = u16::try_from(longest.unwrap_or(0)).unwrap_or(u16::MAX).clamp(8, 32);
    let mut widths = vec![Constraint::Length(name + 2)];
    widths.extend(shown.iter().map(|(_, width, ..)| Constraint::Length(*width)));
    widths.push(Constraint::Min(0));
    let mut headings = vec![Text::from("  queue")];
    headings.extend(shown.iter().map(|(heading, ..)| Text::from(*heading).right_aligned()));
    headings.push(Text::from(""));
    let rows = board.lines.iter().map(|line| {
        let mut cells = vec![Cell::from(format!("  {}", line.stats.queue))];
        for (heading, _, _, value) in &shown {
            let text = value(line);
            let alarming = (*heading == "failed" && line.stats.failed > 0)
                || (*heading == "fail/s" && line.rates.failed > 0.0);
            let text = if alarming { coloured(board, &text, Color::Red) } else { Span::raw(text) };
            cells.push(Cell::from(Text::from(text).right_aligned()));
        }
        cells.push(Cell::from(coloured(board, state(line), Color::Yellow)));
        Row::new(cells)
    });
    (rows.collect(), widths, headings)
}

/// Why nothing moves.
fn state(line: &Line) -> &'static str {
    if line.stats.paused {
        "paused"
    } else if line.stats.can_accept() {
        ""
    } else {
        "full"
    }
}

/// What was done at each of the last looks, as little bars.
fn trend(line: &Line, looks: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = line.trend.iter().copied().fold(0.0_f64, f64::max);
    let last = line.trend.iter().skip(line.trend.len().saturating_sub(looks));
    let bar = |rate: &f64| {
        let eighths = if most > 0.0 { (rate / most * 7.0).round() as usize } else { 0 };
        BARS.get(eighths).copied().unwrap_or('█')
    };
    last.map(bar).collect()
}

fn workers(board: &Board, width: u16) -> Shown {
    let wide = width >= 80;
    let mut headings = vec!["  worker", "processors", "held"];
    let mut widths = vec![Constraint::Length(20), Constraint::Length(11), Constraint::Length(6)];
    if wide {
        headings.extend(["heard", "host"]);
        widths.extend([Constraint::Length(10), Constraint::Length(16)]);
    }
    headings.push("serves");
    widths.push(Constraint::Min(0));
    let rows = board.workers.iter().map(|view| {
        let report = &view.report;
        let held: u64 = report.processors.iter().map(|one| u64::from(one.holding)).sum();
        let name = format!("  {}", cut(report.id.as_str(), 17));
        let mut cells = vec![name, report.processors.len().to_string(), held.to_string()];
        if wide {
            let host = format!("{}:{}", cut(&report.host, 9), report.pid);
            cells.extend([format!("{} ago", duration::show(view.silent_for)), host]);
        }
        cells.push(serves(view, board.quieted.contains(&report.id)));
        Row::new(cells)
    });
    (rows.collect(), widths, headings.into_iter().map(Text::from).collect())
}

fn serves(view: &WorkerView, quiet: bool) -> String {
    let queues: Vec<&str> = view.report.queues.iter().map(|queue| queue.as_str()).collect();
    let state = match (view.report.stopping, quiet) {
        (true, _) => " (stopping)",
        (false, true) => " (quiet)",
        (false, false) => "",
    };
    format!("{}{state}", queues.join(", "))
}

fn failures(board: &Board, width: u16) -> Shown {
    let wide = width >= 60;
    let mut headings = vec!["  id", "queue"];
    let mut widths = vec![Constraint::Length(10), Constraint::Length(16)];
    if wide {
        headings.extend(["failed", "attempts"]);
        widths.extend([Constraint::Length(12), Constraint::Length(9)]);
    }
    headings.push("error");
    widths.push(Constraint::Min(0));
    let rows = board.failed.iter().map(|task| {
        let mut cells = vec![format!("  {}", task.id), task.queue.to_string()];
        if wide {
            let at: Timestamp = task.failed_at.unwrap_or(task.run_at);
            cells.extend([time::relative(at, board.at), task.attempts.to_string()]);
        }
        let error = task.error.as_deref().unwrap_or_default();
        let said = last_line(error);
        let said = if said.is_empty() { error_shape(error) } else { said.to_owned() };
        cells.push(cut(&said, 200));
        Row::new(cells)
    });
    (rows.collect(), widths, headings.into_iter().map(Text::from).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::board::Look;
    use super::*;
    use gristmill::port::{ProcessorReport, WorkerId, WorkerReport};
    use gristmill::{Payload, QueueName, QueueStats, Task, TaskId};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Duration;

    fn look(at: Timestamp, done: u64) -> Look {
        let name = |name: &str| QueueName::new(name).expect("a name");
        let mut emails = QueueStats::new(name("emails"), 1);
        (emails.ready, emails.delayed, emails.processing, emails.failed) = (1200, 30, 4, 7);
        emails.oldest_ready = Some(Duration::from_secs(95));
        (emails.counters.done, emails.counters.put) = (done, 2 * done);
        let mut reports = QueueStats::new(name("reports"), 2);
        reports.paused = true;
        let mut task = Task::new(TaskId(42), name("emails"), Payload::raw("x"), at);
        (task.error, task.attempts) = (Some("a\u{1b}[31m\nno route to host".to_owned()), 3);
        task.failed_at = Some(at.before(Duration::from_secs(60)));
        let processor = |queue: Option<&str>| ProcessorReport {
            queue: queue.map(name),
            holding: 2,
            cycle: Duration::ZERO,
        };
        let report = WorkerReport {
            id: WorkerId::new("0123456789abcdef").expect("a name"),
            host: "mill".to_owned(),
            pid: 17,
            version: "0.1.0".to_owned(),
            queues: vec![name("emails"), name("reports")],
            processors: vec![processor(Some("emails")), processor(None)],
            handled: Vec::new(),
            follows_term: None,
            stopping: false,
        };
        let view = WorkerView { report, since: at, silent_for: Duration::from_millis(900) };
        let (workers, failed) = (vec![view], vec![task]);
        Look { at, stats: vec![emails, reports], workers, failed, quieted: HashSet::new() }
    }

    fn board(colour: bool) -> Board {
        let at = Timestamp::from_micros(1_000_000_000_000);
        let mut board = Board::new("sqlite://gristmill.db".to_owned(), at, colour);
        board.take(look(at, 1000), Duration::from_secs(1));
        board.take(look(at, 1050), Duration::from_secs(2));
        board
    }

    fn shown(board: &Board, width: u16, height: u16) -> (Vec<String>, bool) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(board, frame)).expect("drawn");
        let buffer = terminal.backend().buffer();
        let cells = buffer.content();
        let lines = cells.chunks(usize::from(width)).map(|line| {
            line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
        });
        let coloured = cells.iter().any(|cell| cell.fg != Color::Reset);
        (lines.collect(), coloured)
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        let (lines, coloured) = shown(&board(true), 120, 30);
        let said = |line: &str| lines.iter().any(|shown| shown == line);
        assert!(said("gristmill top  sqlite://gristmill.db"), "{lines:#?}");
        let queue = lines.iter().find(|line| line.starts_with("  emails")).expect("a queue");
        let words: Vec<&str> = queue.split_whitespace().collect();
        assert_eq!(
            words,
            ["emails", "1200", "30", "0", "4", "7", "1m35s", "50", "25", "0", "1", "▁█"]
        );
        assert!(lines.iter().any(|line| line.contains("reports") && line.ends_with("paused")));
        assert!(said("  1 worker, 1 processor rotating"), "{lines:#?}");
        let worker = lines.iter().find(|line| line.contains("0123456789abcdef")).expect("one");
        let words: Vec<&str> = worker.split_whitespace().skip(1).collect();
        assert_eq!(words, ["2", "4", "900ms", "ago", "mill:17", "emails,", "reports"]);
        let failure = lines.iter().find(|line| line.starts_with("  42")).expect("a failure");
        assert!(failure.contains("1m ago") && failure.ends_with("no route to host"), "{failure}");
        assert!(said(KEYS) && coloured);
        assert!(!lines.iter().any(|line| line.contains('\u{1b}')));
    }

    #[test]
    fn narrow_and_low_ones_show_what_matters() {
        for (width, height) in [(200, 60), (80, 24), (60, 20), (40, 12), (20, 6), (10, 3), (1, 1)] {
            let (lines, coloured) = shown(&board(false), width, height);
            assert!(!coloured, "NO_COLOR at {width}");
            if width >= 40 {
                let queue = lines.iter().find(|line| line.starts_with("  emails")).expect("one");
                assert!(queue.contains("1200") && queue.contains('7'), "{width}: {queue}");
            }
        }
        let (lines, _) = shown(&board(false), 40, 12);
        assert!(!lines.iter().any(|line| line.contains("worker")), "only one pane: {lines:#?}");
    }

    #[test]
    fn a_question_and_an_outage_are_seen() {
        let mut board = board(false);
        board.asked = Some(Asked::RetryTask(TaskId(42)));
        board.away = Some("the store did not answer".to_owned());
        let (lines, _) = shown(&board, 80, 24);
        assert_eq!(lines.last().map(String::as_str), Some("retry task 42? y/n"));
        assert!(lines[0].ends_with("the store did not answer"));
        board.help = true;
        assert!(shown(&board, 80, 24).0.iter().any(|line| line.starts_with("tab ")));
    }
}
