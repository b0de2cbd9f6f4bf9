//! Schedules as their user sees them, on a clock that the tests move.

use std::sync::Arc;
use std::time::Duration;

use gristmill::port::memory::{MemoryOptions, MemoryStore};
use gristmill::port::{
    Clock, FireAnswer, ListRequest, ManualClock, Outcome, ScheduleName, Settlement, Timestamp,
};
use gristmill::schedule::{FIRE_HEADER, Missed, Overlap, SCHEDULE_HEADER, Scheduler};
use gristmill::sqlite::{Options, SqliteStore};
use gristmill::{Mill, Put, Task, TaskType};

use crate::Mail;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A mill on each store, whose time the test owns.
pub(crate) struct Timed {
    pub(crate) mill: Mill,
    pub(crate) clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

impl Timed {
    pub(crate) fn scheduler(&self) -> Scheduler {
        Scheduler::new(&self.mill).clock(self.clock.clone())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The tasks of the queue, oldest first.
    pub(crate) async fn tasks(&self) -> Vec<Task> {
        let request = ListRequest { limit: 1_000, ..ListRequest::default() };
        self.mill.inspect().list(request).await.unwrap().tasks
    }

    /// The instants the standing tasks are for.
    async fn instants(&self) -> Vec<Timestamp> {
        let tasks = self.tasks().await;
        tasks.iter().map(|task| task.headers[FIRE_HEADER].parse().unwrap()).collect()
    }
}

pub(crate) async fn timed() -> Vec<Timed> {
    let mut all = Vec::new();
    for kind in ["memory", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let mill = if kind == "memory" {
            let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
            Mill::over(Arc::new(MemoryStore::new(options)))
        } else {
            let options = Options { clock: clock.clone(), ..Options::default() };
            let store = SqliteStore::open(folder.path().join("test.db"), options).unwrap();
            Mill::over_sqlite(Arc::new(store))
        };
        mill.declare::<Mail>().await.unwrap();
        all.push(Timed { mill, clock, _folder: folder });
    }
    all
}

#[tokio::test]
async fn a_schedule_puts_a_task_at_each_fire() {
    for t in timed().await {
        let daily =
            t.mill.schedule("daily").cron("0 7 * * *").zone("Europe/Athens").puts(Mail::to("a"));
        let mut scheduler = t.scheduler().schedule(daily);
        let mut next = scheduler.run_due().await.unwrap();
        assert_eq!(next, Some("2026-01-01T05:00:00Z".parse().unwrap()), "seven in Athens");
        assert_eq!(t.tasks().await, [], "nothing is due yet");
        for _ in 0..3 {
            t.clock.advance(next.unwrap().since(t.now()));
            next = scheduler.run_due().await.unwrap();
            scheduler.run_due().await.unwrap();
        }
        let tasks = t.tasks().await;
        assert_eq!(tasks.len(), 3);
        assert_eq!(scheduler.report().fired, 3);
        assert_eq!(tasks[0].headers[SCHEDULE_HEADER], "daily");
        assert_eq!(tasks[0].headers[FIRE_HEADER], "2026-01-01T05:00:00Z");
        assert_eq!(tasks[2].headers[FIRE_HEADER], "2026-01-03T05:00:00Z");
        let mail: Mail = serde_json::from_slice(&tasks[0].payload.bytes).unwrap();
        assert_eq!(mail, Mail::to("a"));
    }
}

#[tokio::test]
async fn missed_fires_follow_the_policy() {
    for t in timed().await {
        let start = t.now();
        for (name, missed) in [("once", Missed::Once), ("skip", Missed::Skip), ("all", Missed::All)]
        {
            let every = t.mill.schedule(name).every(10 * MINUTE).missed(missed);
            every.puts(Mail::to(name)).await.unwrap();
        }
        let mut scheduler = t.scheduler();
        // Nobody looked for 35 minutes.
        t.clock.advance(35 * MINUTE);
        scheduler.run_due().await.unwrap();
        let fires = |tasks: Vec<Task>, name: &str| -> Vec<Duration> {
            let own = tasks.into_iter().filter(|task| task.headers[SCHEDULE_HEADER] == name);
            own.map(|t| t.headers[FIRE_HEADER].parse::<Timestamp>().unwrap().since(start)).collect()
        };
        assert_eq!(fires(t.tasks().await, "once"), [30 * MINUTE]);
        assert_eq!(fires(t.tasks().await, "skip"), []);
        assert_eq!(fires(t.tasks().await, "all"), [10 * MINUTE, 20 * MINUTE, 30 * MINUTE]);
        // On time again, all three fire.
        t.clock.advance(5 * MINUTE + SECOND);
        scheduler.run_due().await.unwrap();
        for (name, count) in [("once", 2), ("skip", 1), ("all", 4)] {
            let fires = fires(t.tasks().await, name);
            assert_eq!((fires.len(), fires.last()), (count, Some(&(40 * MINUTE))), "{name}");
        }
        // Days later, `all` makes up for a hundred.
        t.clock.advance(24 * 60 * 10 * MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(fires(t.tasks().await, "all").len(), 104);
    }
}

#[tokio::test]
async fn overlap_is_passed_over_while_the_one_before_stands() {
    for t in timed().await {
        let every = t.mill.schedule("s").every(MINUTE).overlap(Overlap::Skip);
        let mut scheduler = t.scheduler().schedule(every.puts(Mail::to("a")));
        scheduler.run_due().await.unwrap();
        for _ in 0..3 {
            t.clock.advance(MINUTE);
            scheduler.run_due().await.unwrap();
        }
        assert_eq!(t.tasks().await.len(), 1);
        assert_eq!((scheduler.report().fired, scheduler.report().overlapped), (1, 2));
        finish_one(&t).await;
        scheduler.run_due().await.unwrap();
        assert_eq!(t.tasks().await.len(), 0, "what was passed over is decided");
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(t.tasks().await.len(), 1);
    }
}

pub(crate) async fn finish_one(t: &Timed) {
    let store = t.mill.store();
    let token = gristmill::port::Token::random().unwrap();
    let claim = store
        .claim(gristmill::port::ClaimRequest {
            queue: Mail::QUEUE.parse().unwrap(),
            max: 1,
            lease: None,
            worker: gristmill::port::WorkerId::random().unwrap(),
            source: None,
            token,
        })
        .await
        .unwrap();
    let id = claim.tasks[0].id;
    store.settle(vec![Settlement::new(id, token, Outcome::Done)]).await.unwrap();
}

#[tokio::test]
async fn paused_it_does_not_fire_and_resumed_it_does_not_make_up() {
    for t in timed().await {
        let every = t.mill.schedule("s").every(MINUTE).missed(Missed::All);
        let mut scheduler = t.scheduler().schedule(every.puts(Mail::to("a")));
        scheduler.run_due().await.unwrap();
        let name = ScheduleName::new("s").unwrap();
        t.mill.store().pause_schedule(&name, true, "ada").await.unwrap();
        t.clock.advance(5 * MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(t.tasks().await.len(), 0);
        t.mill.store().pause_schedule(&name, false, "ada").await.unwrap();
        scheduler.run_due().await.unwrap();
        assert_eq!(t.tasks().await.len(), 0, "the pause decided up to now");
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(t.instants().await, [t.now()]);
    }
}

#[tokio::test]
async fn by_hand_it_fires_now_and_decides_nothing() {
    for t in timed().await {
        let every = t.mill.schedule("s").every(MINUTE).puts(Mail::to("a"));
        let mut scheduler = t.scheduler().schedule(every);
        scheduler.run_due().await.unwrap();
        t.mill.store().pause_schedule(&"s".parse().unwrap(), true, "ada").await.unwrap();
        let answer = t.mill.fire_schedule("s").await.unwrap();
        assert!(matches!(answer, FireAnswer::Fired(_)), "{answer:?}");
        t.mill.store().pause_schedule(&"s".parse().unwrap(), false, "ada").await.unwrap();
        t.clock.advance(MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!(t.tasks().await.len(), 2);
        let error = t.mill.fire_schedule("t").await.unwrap_err().to_string();
        assert!(error.contains("no schedule 't'; did you mean 's'?"), "{error}");
    }
}

#[tokio::test]
async fn a_full_queue_is_a_missed_fire_and_the_policy_decides() {
    for t in timed().await {
        t.mill.declare::<Mail>().capacity(1).await.unwrap();
        t.mill.put(Mail::to("fills it")).await.unwrap();
        let once = t.mill.schedule("s").every(10 * MINUTE).puts(Mail::to("once"));
        let skip = t.mill.schedule("t").every(10 * MINUTE).missed(Missed::Skip);
        let mut scheduler = t.scheduler().schedule(once).schedule(skip.puts(Mail::to("skip")));
        scheduler.run_due().await.unwrap();
        t.clock.advance(10 * MINUTE);
        scheduler.run_due().await.unwrap();
        t.clock.advance(2 * MINUTE);
        scheduler.run_due().await.unwrap();
        assert_eq!((scheduler.report().fired, scheduler.report().missed), (0, 2));
        finish_one(&t).await;
        scheduler.run_due().await.unwrap();
        scheduler.run_due().await.unwrap();
        // `once` is made up as soon as there is room, `skip` is not.
        let tasks = t.tasks().await;
        assert_eq!(tasks.len(), 1);
        assert_eq!(tasks[0].headers[SCHEDULE_HEADER], "s");
    }
}

#[tokio::test]
async fn many_schedulers_put_one_task_an_instant() {
    for t in timed().await {
        let every = || t.mill.schedule("s").every(MINUTE).missed(Missed::All);
        let mut schedulers = Vec::new();
        for _ in 0..8 {
            schedulers.push(t.scheduler().schedule(every().puts(Mail::to("a"))));
        }
        for scheduler in &mut schedulers {
            scheduler.run_due().await.unwrap();
        }
        for _ in 0..5 {
            t.clock.advance(2 * MINUTE);
            let mut looking = tokio::task::JoinSet::new();
            for mut scheduler in schedulers.drain(..) {
                looking.spawn(async move {
                    scheduler.run_due().await.unwrap();
                    scheduler
                });
            }
            schedulers = looking.join_all().await;
        }
        let instants = t.instants().await;
        assert_eq!(instants.len(), 10);
        assert!(instants.is_sorted_by(|a, b| a < b), "{instants:?}");
    }
}

#[tokio::test]
async fn what_cannot_fire_is_an_error_at_once() {
    for t in timed().await {
        let mail = || Mail::to("a");
        let no_rule = t.mill.schedule("s").puts(mail()).await;
        let nothing = t.mill.schedule("s").every(MINUTE).await;
        let zone =
            t.mill.schedule("s").cron("0 7 * * *").zone("Europe/Atlantis").puts(mail()).await;
        let never = t.mill.schedule("s").cron("0 0 30 2 *").puts(mail()).await;
        let name = t.mill.schedule("a b").every(MINUTE).puts(mail()).await;
        let queue =
            t.mill.schedule("s").every(MINUTE).puts(Put::raw("mailz", Default::default())).await;
        for (answer, part) in [
            (no_rule, "say cron or every"),
            (nothing, "say puts or finder"),
            (zone, "time zone"),
            (never, "never fires"),
            (name, "schedule name"),
            (queue, "did you mean 'mails'?"),
        ] {
            let error = answer.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
