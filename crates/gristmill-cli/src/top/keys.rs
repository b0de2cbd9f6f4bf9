//! What a key means, given what is on the board.

use gristmill::port::WorkerId;
use gristmill::{QueueName, TaskId};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::board::{Asked, Board, Pane};
use crate::command::Wanted;

/// What the command is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Leave,
    Pause(QueueName, bool),
    RetryQueue(QueueName),
    RetryTask(TaskId),
    Order(WorkerId, Wanted),
}

/// Does what only concerns the board, and answers with the rest.
pub(crate) fn wish(board: &mut Board, key: KeyEvent) -> Option<Wish> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if key.code == KeyCode::Char('c') && control {
        return Some(Wish::Leave);
    }
    if let Some(asked) = board.asked.take() {
        let yes = matches!(key.code, KeyCode::Char('y' | 'Y') | KeyCode::Enter);
        if !yes {
            board.said = Some("left as it is".to_owned());
            return None;
        }
        return Some(match asked {
            Asked::RetryQueue(queue, _) => Wish::RetryQueue(queue),
            Asked::RetryTask(id) => Wish::RetryTask(id),
            Asked::Stop(id) => Wish::Order(id, Wanted::Stop),
        });
    }
    board.said = None;
    match key.code {
        KeyCode::Char('q') => return Some(Wish::Leave),
        KeyCode::Esc if board.help => board.help = false,
        KeyCode::Esc => return Some(Wish::Leave),
        KeyCode::Char('?' | 'h') => board.help = !board.help,
        KeyCode::Up | KeyCode::Char('k') => board.move_by(-1),
        KeyCode::Down | KeyCode::Char('j') => board.move_by(1),
        KeyCode::Tab => board.next_pane(),
        KeyCode::Char(' ') => board.frozen = !board.frozen,
        KeyCode::Char('p') if board.pane == Pane::Workers => {
            let id = board.worker()?.report.id.clone();
            // It goes by what it was told last: a report tells of it only later.
            let wanted = if board.quieted.remove(&id) {
                Wanted::Resume
            } else {
                board.quieted.insert(id.clone());
                Wanted::Quiet
            };
            return Some(Wish::Order(id, wanted));
        }
        KeyCode::Char('s') if board.pane == Pane::Workers => {
            board.asked = board.worker().map(|view| Asked::Stop(view.report.id.clone()));
        }
        KeyCode::Char('m') => {
            let queue = board.queue()?.stats.queue.clone();
            let Some(id) = board.mover(&queue) else {
                board.said = Some(format!("no worker has a handler for {queue}"));
                return None;
            };
            return Some(Wish::Order(id, Wanted::Move(Some(queue))));
        }
        KeyCode::Char('M') => {
            let id = board.worker()?.report.id.clone();
            return Some(Wish::Order(id, Wanted::Move(None)));
        }
        KeyCode::Char('p') => {
            let line = board.queue()?;
            return Some(Wish::Pause(line.stats.queue.clone(), !line.stats.paused));
        }
        KeyCode::Char('r') if board.pane == Pane::Failures => {
            board.asked = board.failure().map(|task| Asked::RetryTask(task.id));
        }
        KeyCode::Char('r') => {
            let stats = &board.queue()?.stats;
            if stats.failed == 0 {
                board.said = Some(format!("nothing failed in {}", stats.queue));
            } else {
                board.asked = Some(Asked::RetryQueue(stats.queue.clone(), stats.failed));
            }
        }
        _ => {}
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::board::Look;
    use super::*;
    use gristmill::{Payload, QueueStats, Task, Timestamp};
    use std::time::Duration;

    fn board() -> Board {
        let at = Timestamp::from_micros(1_000_000_000_000);
        let mut board = Board::new("sqlite://a.db".to_owned(), at, false);
        let name = |name: &str| QueueName::new(name).expect("a name");
        let mut stats: Vec<QueueStats> =
            ["a", "b"].into_iter().zip(1..).map(|(q, n)| QueueStats::new(name(q), n)).collect();
        stats[1].failed = 3;
        let failed = vec![Task::new(TaskId(7), name("b"), Payload::raw("x"), at)];
        board.take(
            Look { at, stats, workers: Vec::new(), failed, quieted: HashSet::new() },
            Duration::from_secs(1),
        );
        board
    }

    fn press(board: &mut Board, keys: &str) -> Option<Wish> {
        let code = |c| if c == '\t' { KeyCode::Tab } else { KeyCode::Char(c) };
        keys.chars().map(|c| wish(board, KeyEvent::from(code(c)))).last().flatten()
    }

    #[test]
    fn what_changes_much_is_asked_before() {
        let mut board = board();
        let b = QueueName::new("b").expect("a name");
        assert_eq!(press(&mut board, "r"), None);
        assert_eq!(board.said.as_deref(), Some("nothing failed in a"));
        assert_eq!(press(&mut board, "jr"), None);
        assert_eq!(board.asked, Some(Asked::RetryQueue(b.clone(), 3)));
        assert_eq!(press(&mut board, "n"), None);
        assert_eq!((board.asked.take(), board.said.as_deref()), (None, Some("left as it is")));
        assert_eq!(press(&mut board, "ry"), Some(Wish::RetryQueue(b)));
        assert_eq!(press(&mut board, "\t\try"), Some(Wish::RetryTask(TaskId(7))));
    }

    #[test]
    fn a_queue_is_paused_and_goes_on() {
        let mut board = board();
        let a = QueueName::new("a").expect("a name");
        assert_eq!(press(&mut board, "p"), Some(Wish::Pause(a.clone(), true)));
        board.lines[0].stats.paused = true;
        assert_eq!(press(&mut board, "p"), Some(Wish::Pause(a, false)));
    }

    #[test]
    fn workers_are_quieted_stopped_and_moved() {
        use gristmill::port::{ProcessorReport, WorkerReport, WorkerView};
        let mut board = board();
        assert_eq!(press(&mut board, "m"), None);
        assert_eq!(board.said.as_deref(), Some("no worker has a handler for a"));
        let name = |name: &str| QueueName::new(name).expect("a name");
        let worker = |id: &str, queues: &[&str], processors: usize| WorkerView {
            report: WorkerReport {
                id: WorkerId::new(id).expect("a name"),
                host: String::new(),
                pid: 1,
                version: String::new(),
                queues: queues.iter().map(|queue| name(queue)).collect(),
                processors: vec![
                    ProcessorReport { queue: None, holding: 0, cycle: Duration::ZERO };
                    processors
                ],
                handled: Vec::new(),
                follows_term: None,
                stopping: false,
            },
            since: Timestamp::EPOCH,
            silent_for: Duration::ZERO,
        };
        board.workers = vec![worker("w1", &["b"], 1), worker("w2", &["a", "b"], 4)];
        let order =
            |id: &str, wanted| Some(Wish::Order(WorkerId::new(id).expect("a name"), wanted));
        // Of the chosen queue: by whoever can, the chosen worker first.
        assert_eq!(press(&mut board, "m"), order("w2", Wanted::Move(Some(name("a")))));
        assert_eq!(press(&mut board, "jm"), order("w1", Wanted::Move(Some(name("b")))));
        press(&mut board, "\t");
        assert_eq!(press(&mut board, "p"), order("w1", Wanted::Quiet));
        assert_eq!(press(&mut board, "p"), order("w1", Wanted::Resume));
        assert_eq!(press(&mut board, "js"), None);
        assert_eq!(press(&mut board, "y"), order("w2", Wanted::Stop));
        assert_eq!(press(&mut board, "M"), order("w2", Wanted::Move(None)));
    }

    #[test]
    fn what_was_chosen_stays_it_and_the_end_is_the_end() {
        let mut board = board();
        press(&mut board, "jjjj");
        assert_eq!(board.queue().map(|line| line.stats.queue.as_str()), Some("b"));
        let stats = board.lines.drain(..).rev().map(|line| line.stats).collect();
        let look = Look {
            at: board.at,
            stats,
            workers: Vec::new(),
            failed: Vec::new(),
            quieted: HashSet::new(),
        };
        board.lines = Vec::new();
        board.take(look, Duration::from_secs(1));
        assert_eq!(press(&mut board, "k"), None);
        assert!(board.failure().is_none());
        assert_eq!(press(&mut board, "?"), None);
        assert!(board.help);
        assert_eq!(press(&mut board, "q"), Some(Wish::Leave));
    }
}
