//! Stopping: nothing more is begun, what runs may finish, and after that what
//! is left is given back.

use std::time::Duration;

use gristmill::TaskType;
use gristmill::worker::WorkReport;
use morning_deck::config::QueuePlace;
use morning_deck::item::EnrichItem;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::desk::{BOTH, Desk, MINUTE, PATIENCE, nothing_comes_within};

/// The running application, and what stops and forces it.
struct Running {
    ended: JoinHandle<morning_deck::error::Result<WorkReport>>,
    stop: Option<oneshot::Sender<()>>,
    force: Option<oneshot::Sender<()>>,
}

impl Running {
    fn start(desk: &Desk) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (force, forced) = oneshot::channel::<()>();
        let app = desk.app.clone();
        let ended = tokio::spawn(async move {
            let force = async move { drop(forced.await) };
            app.run(async move { drop(stopped.await) }, force).await
        });
        Running { ended, stop: Some(stop), force: Some(force) }
    }

    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    fn force(&mut self) {
        self.force.take().unwrap().send(()).unwrap();
    }

    async fn end(self) -> WorkReport {
        let ended = tokio::time::timeout(PATIENCE, self.ended).await.expect("it ends");
        ended.unwrap().expect("it ends well")
    }
}

/// A desk where items are in the service's hands, as many as there are workers,
/// and more wait.
async fn in_the_middle(place: QueuePlace, properties: &str) -> (Desk, Running) {
    let properties = format!("application.jobs.processing.worker-count=2\n{properties}");
    let mut desk = Desk::with(place, &properties).await;
    desk.imported(50).await;
    desk.news(&[1, 2, 3, 4, 5]).await;
    desk.tick().await;
    desk.ai.set_open(false);
    let running = Running::start(&desk);
    desk.ai.asked(2).await;
    (desk, running)
}

/// Longer than a handler that was cancelled is waited for.
const AFTER_A_CANCEL: Duration = Duration::from_secs(4);

#[tokio::test]
async fn what_runs_may_finish_and_nothing_more_is_begun() {
    let [file, memory] = BOTH.map(finishes);
    tokio::join!(file, memory);
}

async fn finishes(place: QueuePlace) {
    let (desk, mut running) = in_the_middle(place, "").await;
    running.stop();
    nothing_comes_within(AFTER_A_CANCEL).await;
    assert!(!running.ended.is_finished(), "it waits for what runs");
    assert!(!desk.ai.was_dropped());
    desk.ai.set_open(true);
    let report = running.end().await;
    assert_eq!((report.done, report.not_done), (2, 0));
    assert_eq!(desk.ai.articles().len(), 2, "the others were not begun");
    let done = desk.statuses("news_item").iter().filter(|s| *s == "DONE").count();
    assert_eq!((done, desk.credits()), (2, 48));
    assert_eq!(desk.size(EnrichItem::QUEUE).await, 3);
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cancelled_and_given_back() {
    for place in BOTH {
        let (mut desk, mut running) =
            in_the_middle(place, "application.shutdown-timeout=100").await;
        running.stop();
        running.end().await;
        assert!(desk.ai.was_dropped(), "its handler was cancelled");
        assert_eq!(desk.credits(), 50);
        let waiting = desk.waiting(EnrichItem::QUEUE).await;
        assert_eq!(waiting.len(), 5, "given back");
        assert!(waiting.iter().all(|task| task.attempts == 0), "and no attempt is lost");
        desk.ai.set_open(true);
        after_the_next_start(&mut desk).await;
    }
}

#[tokio::test]
async fn a_second_signal_forces_the_stop() {
    for place in BOTH {
        // Ten minutes: far beyond the patience of this test.
        let (mut desk, mut running) =
            in_the_middle(place, "application.shutdown-timeout=600000").await;
        running.stop();
        running.force();
        running.end().await;
        assert!(desk.ai.was_dropped());
        desk.ai.set_open(true);
        after_the_next_start(&mut desk).await;
    }
}

/// In the file the next start goes on at once; in memory recovery must help.
async fn after_the_next_start(desk: &mut Desk) {
    desk.restart().await;
    if desk.is_memory() {
        assert_eq!(desk.work().await.done, 0);
        for _ in 0..3 {
            desk.clock.advance(5 * MINUTE);
            desk.look().await;
            desk.cycle().await;
        }
    } else {
        assert!(desk.work().await.done >= 5);
    }
    assert_eq!(desk.statuses("news_item"), ["DONE"; 5]);
    assert_eq!(desk.credits(), 45, "each is paid once");
}
