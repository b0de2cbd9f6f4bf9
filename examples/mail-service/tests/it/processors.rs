//! Rounds, processors that come, go and move, the stop, the metrics and the
//! manager: on workers that really run.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::Mill;
use gristmill::contract::Handled;
use gristmill::manager::Manager;
use gristmill::worker::{BatchContext, WorkerHandle};
use mail_service::queues::{
    self, Emails, EmailsHandler, EmailsTask, Handlers, Newsletters, NewslettersHandler,
    NewslettersTask, UndeliveredHandler, UndeliveredTask,
};
use tokio::sync::Semaphore;

/// Longest any of it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Handlers that take a permit a batch, and keep a log of what they got.
#[derive(Clone)]
struct Gate {
    permits: Arc<Semaphore>,
    batches: Arc<Mutex<Vec<(&'static str, usize)>>>,
}

impl Gate {
    fn new(permits: usize) -> Self {
        Gate { permits: Arc::new(Semaphore::new(permits)), batches: Arc::default() }
    }

    async fn pass(&self, queue: &'static str, tasks: usize) -> Handled {
        self.batches.lock().unwrap().push((queue, tasks));
        self.permits.acquire().await?.forget();
        Ok(())
    }

    fn batches(&self) -> Vec<(&'static str, usize)> {
        self.batches.lock().unwrap().clone()
    }

    fn handlers(&self) -> Handlers<Gate, Gate, Gate> {
        Handlers { emails: self.clone(), newsletters: self.clone(), undelivered: self.clone() }
    }
}

impl EmailsHandler for Gate {
    async fn handle_emails(&self, tasks: Vec<EmailsTask>, _: BatchContext) -> Handled {
        self.pass("emails", tasks.len()).await
    }
}

impl NewslettersHandler for Gate {
    async fn handle_newsletters(&self, tasks: Vec<NewslettersTask>, _: BatchContext) -> Handled {
        self.pass("newsletters", tasks.len()).await
    }
}

impl UndeliveredHandler for Gate {
    async fn handle_undelivered(&self, tasks: Vec<UndeliveredTask>, _: BatchContext) -> Handled {
        self.pass("undelivered", tasks.len()).await
    }
}

async fn mill() -> Mill {
    let mill = Mill::open("memory:").await.unwrap();
    queues::declare(&mill).await.unwrap();
    mill
}

async fn put(mill: &Mill, emails: usize, newsletters: usize) {
    let to = || "a@x.org".to_owned();
    let mails = (0..emails).map(|_| Emails {
        to: to(),
        user_id: 1,
        subject: String::new(),
        body: None,
        attachment: None,
    });
    mill.put_all(mails).run().await.unwrap();
    let (readers, user_ids) = (vec![], vec![]);
    let letter = Newsletters { subject: String::new(), readers, user_ids };
    mill.put_all((0..newsletters).map(|_| letter.clone())).run().await.unwrap();
}

/// Waits for what cannot be heard, only looked at.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what} never came true");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn serving(worker: &WorkerHandle, queue: &str) -> usize {
    let stats = worker.stats();
    stats.serving.iter().flatten().filter(|name| name.as_str() == queue).count()
}

#[tokio::test]
async fn one_processor_goes_round_a_batch_from_each_queue() {
    let mill = mill().await;
    put(&mill, 100, 100).await;
    let gate = Gate::new(1_000);
    let worker = gate.handlers().worker(&mill).drain(true).start().await;
    let report = worker.unwrap().ended().await.unwrap();
    assert_eq!(report.done, 200);
    let batches = gate.batches();
    // Both queues have five batches of twenty: they alternate to the end.
    assert_eq!(batches.len(), 10, "{batches:?}");
    assert!(batches.iter().all(|(_, tasks)| *tasks == 20), "{batches:?}");
    assert!(batches.windows(2).all(|pair| pair[0].0 != pair[1].0), "{batches:?}");
}

#[tokio::test]
async fn processors_are_changed_and_moved_while_they_run() {
    let mill = mill().await;
    put(&mill, 400, 400).await;
    let gate = Gate::new(0);
    let worker = gate.handlers().worker(&mill).start().await.unwrap();
    eventually("the default of one processor", || worker.stats().processors == 1).await;
    eventually("a first batch", || gate.batches().len() == 1).await;

    worker.set_processors(4);
    eventually("four processors", || worker.stats().processors == 4).await;
    eventually("four batches at once", || gate.batches().len() == 4).await;

    for processor in 0..4 {
        worker.move_processor(processor, Some("newsletters")).unwrap();
    }
    gate.permits.add_permits(4);
    eventually("all on newsletters", || serving(&worker, "newsletters") == 4).await;
    // What was claimed ahead before the move may still come; nothing after it.
    gate.permits.add_permits(8);
    eventually("more batches", || gate.batches().len() >= 14).await;
    let last = gate.batches().split_off(10);
    assert!(last.iter().all(|(queue, _)| *queue == "newsletters"), "{:?}", gate.batches());
    assert!(worker.move_processor(0, Some("letters")).is_err(), "there is no such queue");

    worker.set_processors(1);
    gate.permits.add_permits(1_000);
    eventually("one processor again", || worker.stats().processors == 1).await;
    worker.stop().await.unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_what_runs_and_gives_back_the_rest() {
    let mill = mill().await;
    put(&mill, 60, 0).await;
    let gate = Gate::new(0);
    let worker = gate.handlers().worker(&mill).start().await.unwrap();
    eventually("a batch", || gate.batches().len() == 1).await;
    let permits = gate.permits.clone();
    let (report, ()) = tokio::join!(worker.stop(), async {
        // It has heard of the stop, and waits.
        let start = Instant::now();
        while !mill.inspect().workers().await.unwrap()[0].report.stopping {
            assert!(start.elapsed() < PATIENCE, "it hears no stop");
            tokio::task::yield_now().await;
        }
        permits.add_permits(1);
    });
    assert_eq!(report.unwrap().done, 20, "the batch that ran");
    let stats = mill.inspect().queue("emails").await.unwrap();
    assert_eq!((stats.ready, stats.processing), (40, 0));
    assert_eq!(gate.batches().len(), 1);
}

#[tokio::test]
async fn the_metrics_have_their_names() {
    let mill = mill().await;
    put(&mill, 40, 0).await;
    let gate = Gate::new(1);
    let worker = gate.handlers().worker(&mill).start().await.unwrap();
    // One batch is over and one is in hand.
    eventually("a second batch", || gate.batches().len() == 2).await;
    let line = |name: &str| {
        let text = mill.metrics().text();
        let found = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        found.unwrap_or_else(|| format!("no {name}:\n{text}"))
    };
    assert_eq!(line("queue_running_workers"), "queue_running_workers 1");
    assert_eq!(line("queue_running_job_processors"), "queue_running_job_processors 1");
    let in_progress = "queue_tasks_in_progress{queue=\"emails\",queue_num=\"1\"}";
    assert_eq!(line(in_progress), format!("{in_progress} 20"));
    let cycles =
        "queue_job_processor_cycle_duration_seconds_count{queue=\"emails\",queue_num=\"1\"}";
    assert_eq!(line(cycles), format!("{cycles} 1"));
    assert!(mill.metrics().text().contains("cycle_duration_seconds histogram"));
    gate.permits.add_permits(100);
    worker.stop().await.unwrap();
    assert_eq!(line("queue_running_workers"), "queue_running_workers 0");
    assert_eq!(line(in_progress), format!("{in_progress} 0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manager_moves_processors_to_the_longer_queue() {
    let mill = mill().await;
    let gate = Gate::new(0);
    let manager = Manager::new(&mill).every(Duration::from_millis(200));
    let worker = gate.handlers().worker(&mill).processors(6).manager(manager);
    let worker = worker.start().await.unwrap();
    // A permit every few milliseconds: far too slow for what comes.
    let pace = gate.permits.clone();
    let pacing = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            pace.add_permits(1);
        }
    });
    put(&mill, 20, 50_000).await;
    eventually("most processors on newsletters", || serving(&worker, "newsletters") >= 4).await;
    assert_eq!(serving(&worker, "emails"), 0);
    // One always goes round, so that the short queue is not forgotten.
    assert!(worker.stats().serving.iter().any(Option::is_none));
    eventually("the few mails", || gate.batches().iter().any(|(q, _)| *q == "emails")).await;
    pacing.abort();
    gate.permits.add_permits(100_000);
    worker.stop().await.unwrap();
}
