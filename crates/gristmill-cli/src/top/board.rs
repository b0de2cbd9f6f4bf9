//! What the live view knows: the last look at a store, what moved since the one before,
//! and what the person before it has chosen.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use gristmill::port::{WorkerId, WorkerReport, WorkerView};
use gristmill::{QueueName, QueueStats, Task, TaskId, Timestamp};

use crate::command::Rates;

/// How many looks back the trend shows.
const TREND: usize = 30;

/// One look at a store.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) at: Timestamp,
    pub(crate) stats: Vec<QueueStats>,
    pub(crate) workers: Vec<WorkerView>,
    /// Failed tasks, the newest.
    pub(crate) failed: Vec<Task>,
    /// Workers that are quiet because somebody wanted it.
    pub(crate) quieted: HashSet<WorkerId>,
}

/// A queue, and what moves on it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) stats: QueueStats,
    pub(crate) rates: Rates,
    /// What was done a second at each of the last looks.
    pub(crate) trend: VecDeque<f64>,
    /// Processors that serve it alone.
    pub(crate) processors: usize,
}

/// What is looked at closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Queues,
    Workers,
    Failures,
}

/// What has to be answered with yes before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Retry all failed tasks of a queue.
    RetryQueue(QueueName, u64),
    /// Retry this one.
    RetryTask(TaskId),
    /// Have this worker stop.
    Stop(WorkerId),
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) store: String,
    pub(crate) at: Timestamp,
    pub(crate) lines: Vec<Line>,
    pub(crate) workers: Vec<WorkerView>,
    pub(crate) failed: Vec<Task>,
    pub(crate) pane: Pane,
    /// The chosen row of each pane.
    chosen: [usize; 3],
    pub(crate) asked: Option<Asked>,
    /// Workers that are quiet because somebody wanted it.
    pub(crate) quieted: HashSet<WorkerId>,
    /// What was done last, or why it was not.
    pub(crate) said: Option<String>,
    /// Why the store was not heard of.
    pub(crate) away: Option<String>,
    pub(crate) help: bool,
    pub(crate) frozen: bool,
    pub(crate) colour: bool,
}

/// Which queue each processor of a worker serves alone; none where it rotates over several.
fn alone(report: &WorkerReport) -> impl Iterator<Item = Option<&QueueName>> {
    let only = match report.queues.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    report.processors.iter().map(move |processor| processor.queue.as_ref().or(only))
}

impl Board {
    pub(crate) fn new(store: String, at: Timestamp, colour: bool) -> Self {
        Board {
            store,
            at,
            lines: Vec::new(),
            workers: Vec::new(),
            failed: Vec::new(),
            pane: Pane::Queues,
            chosen: [0; 3],
            asked: None,
            quieted: HashSet::new(),
            said: None,
            away: None,
            help: false,
            frozen: false,
            colour,
        }
    }

    /// Takes a look in, so long after the one before.
    pub(crate) fn take(&mut self, look: Look, took: Duration) {
        let chosen = self.queue().map(|line| line.stats.queue.clone());
        let mut before: HashMap<QueueName, Line> =
            self.lines.drain(..).map(|line| (line.stats.queue.clone(), line)).collect();
        let serving = |queue: &QueueName| {
            let all = look.workers.iter().flat_map(|view| alone(&view.report));
            all.filter(|served| *served == Some(queue)).count()
        };
        self.lines = look
            .stats
            .into_iter()
            .map(|stats| {
                let (rates, mut trend) = match before.remove(&stats.queue) {
                    Some(line) => {
                        let (then, now) = (&line.stats.counters, &stats.counters);
                        (Rates::between(then, now, took), line.trend)
                    }
                    None => (Rates::default(), VecDeque::new()),
                };
                trend.push_back(rates.done);
                while trend.len() > TREND {
                    trend.pop_front();
                }
                Line { processors: serving(&stats.queue), stats, rates, trend }
            })
            .collect();
        (self.at, self.workers, self.failed) = (look.at, look.workers, look.failed);
        self.quieted = look.quieted;
        self.away = None;
        // Rows come and go; the one that was chosen stays it.
        let place = |name| self.lines.iter().position(|line| line.stats.queue == name);
        if let Some(place) = chosen.and_then(place) {
            self.choose(Pane::Queues, place);
        }
        for pane in [Pane::Queues, Pane::Workers, Pane::Failures] {
            let last = self.rows(pane).saturating_sub(1);
            let row = self.row_of(pane);
            self.choose(pane, row.min(last));
        }
    }

    /// Processors that serve whatever comes.
    pub(crate) fn rotating(&self) -> usize {
        let all = self.workers.iter().flat_map(|view| alone(&view.report));
        all.filter(Option::is_none).count()
    }

    pub(crate) fn rows(&self, pane: Pane) -> usize {
        match pane {
            Pane::Queues => self.lines.len(),
            Pane::Workers => self.workers.len(),
            Pane::Failures => self.failed.len(),
        }
    }

    /// The chosen row.
    pub(crate) const fn row_of(&self, pane: Pane) -> usize {
        let [queues, workers, failures] = self.chosen;
        match pane {
            Pane::Queues => queues,
            Pane::Workers => workers,
            Pane::Failures => failures,
        }
    }

    const fn choose(&mut self, pane: Pane, row: usize) {
        let [queues, workers, failures] = &mut self.chosen;
        match pane {
            Pane::Queues => *queues = row,
            Pane::Workers => *workers = row,
            Pane::Failures => *failures = row,
        }
    }

    /// Up or down in the pane that is looked at.
    pub(crate) fn move_by(&mut self, by: isize) {
        let last = self.rows(self.pane).saturating_sub(1);
        let row = self.row_of(self.pane).saturating_add_signed(by).min(last);
        self.choose(self.pane, row);
    }

    pub(crate) const fn next_pane(&mut self) {
        self.pane = match self.pane {
            Pane::Queues => Pane::Workers,
            Pane::Workers => Pane::Failures,
            Pane::Failures => Pane::Queues,
        };
    }

    /// The queue that is chosen.
    pub(crate) fn queue(&self) -> Option<&Line> {
        self.lines.get(self.row_of(Pane::Queues))
    }

    /// The worker that is chosen.
    pub(crate) fn worker(&self) -> Option<&WorkerView> {
        self.workers.get(self.row_of(Pane::Workers))
    }

    /// Whose processor is to serve a queue from now on: the chosen worker's, if it has a
    /// handler, else that of the one with the most processors elsewhere.
    pub(crate) fn mover(&self, queue: &QueueName) -> Option<WorkerId> {
        let can = |view: &&WorkerView| view.report.queues.contains(queue);
        let elsewhere = |view: &&WorkerView| {
            let others = view.report.processors.iter();
            others.filter(|processor| processor.queue.as_ref() != Some(queue)).count()
        };
        let chosen = self.worker().filter(|view| can(view) && elsewhere(view) > 0);
        let most = self.workers.iter().filter(can).max_by_key(elsewhere);
        chosen.or(most).map(|view| view.report.id.clone())
    }

    /// The failure that is chosen.
    pub(crate) fn failure(&self) -> Option<&Task> {
        self.failed.get(self.row_of(Pane::Failures))
    }
}
