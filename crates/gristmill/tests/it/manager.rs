//! The manager: on a recorded timeline with a clock that the test owns, beside
//! others of its kind, and with workers that follow it.

use std::sync::Arc;
use std::time::Duration;

use gristmill::ControlPlane;
use gristmill::manager::{Manager, ManagerLook};
use gristmill::port::{
    Assignment, ClaimRequest, HandlerStats, Outcome, ProcessorReport, Published, Settlement, Share,
    Timestamp, Token, WorkerId, WorkerReport,
};
use gristmill::testing::{ManualClock, TestMill};
use gristmill::worker::{Worker, WorkerHandle};
use gristmill::{Mill, QueueName, TaskType};
use serde::{Deserialize, Serialize};

use crate::{Mail, mills, until};

#[derive(Serialize, Deserialize)]
struct Feed(u64);

impl TaskType for Feed {
    const QUEUE: &'static str = "feeds";
}

const SECOND: Duration = Duration::from_secs(1);
/// What a processor does in a second.
const PACE: usize = 2;

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

fn given(shares: &[Share], queue: &str) -> u32 {
    let of_queue = shares.iter().filter(|share| share.queue.as_str() == queue);
    of_queue.map(|share| share.processors).sum()
}

/// A worker that does in a second what a real one would, and not by itself.
struct Puppet {
    id: WorkerId,
    processors: usize,
    handled: Vec<(QueueName, HandlerStats)>,
}

impl Puppet {
    fn new(id: &str, processors: usize) -> Self {
        Puppet { id: WorkerId::new(id).unwrap(), processors, handled: Vec::new() }
    }

    async fn do_one(&mut self, mill: &Mill, queue: &QueueName) -> bool {
        let token = Token::random().unwrap();
        let (queue, worker) = (queue.clone(), self.id.clone());
        let request =
            ClaimRequest { queue: queue.clone(), max: 1, lease: None, worker, source: None, token };
        let claim = mill.store().claim(request).await.unwrap();
        let Some(task) = claim.tasks.first() else { return false };
        mill.store().settle(vec![Settlement::new(task.id, token, Outcome::Done)]).await.unwrap();
        if !self.handled.iter().any(|(known, _)| *known == queue) {
            self.handled.push((queue.clone(), HandlerStats::default()));
        }
        let stats = self.handled.iter_mut().find(|(known, _)| *known == queue).unwrap();
        stats.1.processed += 1;
        stats.1.duration += SECOND / PACE as u32;
        true
    }

    /// One second of work: what it was told, and the rest by rotation.
    async fn work(&mut self, mill: &Mill) {
        let word = mill.inspect().assignment().await.unwrap();
        let shares = word.map_or_else(Vec::new, |word| word.shares);
        let mut spare = self.processors;
        let mine = self.id.clone();
        for share in shares.iter().filter(|share| share.worker == mine) {
            spare -= share.processors as usize;
            for _ in 0..PACE * share.processors as usize {
                self.do_one(mill, &share.queue).await;
            }
        }
        let queues = [name("mails"), name("feeds")];
        for turn in 0..PACE * spare {
            if !self.do_one(mill, &queues[turn % 2]).await {
                self.do_one(mill, &queues[(turn + 1) % 2]).await;
            }
        }
    }

    async fn report(&mut self, mill: &Mill) {
        let idle = ProcessorReport { queue: None, holding: 0, cycle: Duration::ZERO };
        let report = WorkerReport {
            id: self.id.clone(),
            host: String::new(),
            pid: 1,
            version: String::new(),
            queues: vec![name("mails"), name("feeds")],
            processors: vec![idle; self.processors],
            handled: std::mem::take(&mut self.handled),
            follows_term: None,
            stopping: false,
        };
        mill.store().report_worker(report).await.unwrap();
    }
}

async fn declared() -> (TestMill, Arc<ManualClock>) {
    let mill = TestMill::new();
    mill.declare::<Mail>().drain_within(Duration::from_secs(30)).await.unwrap();
    mill.declare::<Feed>().await.unwrap();
    let clock = Arc::new(ManualClock::default());
    (mill, clock)
}

#[tokio::test]
async fn processors_move_to_the_queue_that_misses_its_target_and_come_back() {
    let (mill, clock) = declared().await;
    let mut manager = Manager::new(&mill).clock(clock.clone());
    let mut puppets = [Puppet::new("one", 4), Puppet::new("two", 4)];
    let mut timeline = Vec::new();
    let (mut last, mut drained) = (0, None);
    for second in 0..180u32 {
        // A trickle for both at all times, and once a flood of mails.
        mill.put(Feed(u64::from(second))).await.unwrap();
        if second % 2 == 0 {
            mill.put(Mail::to(second)).await.unwrap();
        }
        if second == 20 {
            mill.put_all((0..300).map(Mail::to)).run().await.unwrap();
        }
        for puppet in &mut puppets {
            puppet.work(&mill).await;
            if second % 3 == 0 {
                puppet.report(&mill).await;
            }
        }
        if second % 2 == 1 {
            let ManagerLook::Leads { shares, .. } = manager.look().await.unwrap() else {
                panic!("nobody else leads")
            };
            assert_eq!(given(&shares, "feeds"), 0, "feeds has no target");
            let has = given(&shares, "mails");
            if has != last {
                let ready = mill.inspect().queue("mails").await.unwrap().ready;
                timeline.push(format!("{second} s: {has} for mails, {ready} ready"));
                last = has;
            }
        }
        if second > 20 && drained.is_none() {
            let ready = mill.inspect().queue("mails").await.unwrap().ready;
            drained = (ready <= 1).then_some(second - 20);
        }
        let feeds = mill.inspect().queue("feeds").await.unwrap();
        assert!(feeds.ready <= 4, "feeds starves behind the flood: {feeds:?}");
        mill.clock().advance(SECOND);
        clock.advance(SECOND);
    }
    println!("{timeline:#?}");
    assert_eq!(timeline, RECORDED, "the recorded timeline");
    assert!(drained.is_some_and(|drained| drained <= 30), "{drained:?}");
}

/// Up once, down once, nothing between.
const RECORDED: [&str; 3] =
    ["21 s: 5 for mails, 271 ready", "39 s: 1 for mails, 10 ready", "45 s: 0 for mails, 0 ready"];

#[tokio::test]
async fn one_of_two_managers_leads_and_the_other_takes_over() {
    let (mill, clock) = declared().await;
    mill.declare::<Mail>().processors(2, None, 1).await.unwrap();
    let mut puppet = Puppet::new("one", 4);
    let manager = || Manager::new(&mill).clock(clock.clone()).hold(10 * SECOND);
    let (mut first, mut second) = (manager(), manager());
    puppet.report(&mill).await;
    let led = first.look().await.unwrap();
    let ManagerLook::Leads { term: 1, shares } = &led else { panic!("{led:?}") };
    assert_eq!(given(shares, "mails"), 2);
    assert!(matches!(second.look().await.unwrap(), ManagerLook::Waits { term: 1, .. }));
    mill.clock().advance(9 * SECOND);
    puppet.report(&mill).await;
    assert_eq!(first.look().await.unwrap(), led, "renewed in time");
    mill.clock().advance(9 * SECOND);
    puppet.report(&mill).await;
    assert!(matches!(second.look().await.unwrap(), ManagerLook::Waits { term: 1, .. }));
    // The first one is dead: it does not renew.
    mill.clock().advance(2 * SECOND);
    let took = second.look().await.unwrap();
    let ManagerLook::Leads { term: 2, shares: taken } = &took else { panic!("{took:?}") };
    assert_eq!(taken, shares, "what stood is not turned over");
    // Not quite dead: it speaks no more.
    assert!(matches!(first.look().await.unwrap(), ManagerLook::Waits { term: 2, .. }));
    assert_eq!(mill.inspect().assignment().await.unwrap().unwrap().term, 2);
    // Workers that fell silent are not counted on.
    mill.clock().advance(9 * SECOND);
    second.look().await.unwrap();
    mill.clock().advance(9 * SECOND);
    let alone = second.look().await.unwrap();
    assert_eq!(alone, ManagerLook::Leads { term: 2, shares: Vec::new() });
}

#[tokio::test]
async fn a_manager_that_ends_gives_its_role_up_at_once() {
    for (mill, _folder) in mills().await {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let first = Manager::new(&mill).hold(Duration::from_secs(3600));
        let running = tokio::spawn(first.run(async { drop(stopped.await) }));
        until("the first leads", async || mill.inspect().assignment().await.unwrap().is_some())
            .await;
        let mut second = Manager::new(&mill);
        assert!(matches!(second.look().await.unwrap(), ManagerLook::Waits { .. }));
        stop.send(()).unwrap();
        running.await.unwrap().unwrap();
        assert!(matches!(second.look().await.unwrap(), ManagerLook::Leads { term: 2, .. }));
    }
}

/// A worker on both queues, which believes a word for a short while only.
async fn follower(mill: &Mill) -> WorkerHandle {
    let worker = Worker::new(mill)
        .handle(|_: Mail| async { Ok::<(), String>(()) })
        .handle(|_: Feed| async { Ok::<(), String>(()) })
        .processors(4)
        .word_holds(Duration::from_millis(600));
    worker.start().await.unwrap()
}

/// Publishes so many processors of a worker for feeds. Only a word that is renewed is
/// believed: say it again and again.
async fn say(mill: &Mill, worker: &WorkerId, processors: u32) {
    let (store, boss) = (mill.store(), WorkerId::new("boss").unwrap());
    let shares = vec![Share { worker: worker.clone(), queue: name("feeds"), processors }];
    let term = store.campaign("manager", &boss, 3600 * SECOND).await.unwrap().term;
    let word = Assignment { term, shares, published_at: Timestamp::EPOCH };
    assert_eq!(store.publish_assignment(word).await.unwrap(), Published::Accepted);
}

#[tokio::test]
async fn workers_follow_the_word_and_rotate_when_it_is_stale() {
    for (mill, _folder) in mills().await {
        mill.declare::<Feed>().await.unwrap();
        let worker = follower(&mill).await;
        let posts = async || {
            let stats = worker.stats();
            let served = stats.serving.into_iter().flatten().map(|queue| queue.to_string());
            (stats.follows_term, served.collect::<Vec<_>>())
        };
        let feeds = |processors: usize| (Some(1), vec!["feeds".to_owned(); processors]);
        until("it follows", async || {
            say(&mill, worker.id(), 3).await;
            posts().await == feeds(3)
        })
        .await;
        until("it reports so", async || {
            say(&mill, worker.id(), 3).await;
            mill.inspect().workers().await.unwrap()[0].report.follows_term == Some(1)
        })
        .await;
        until("another word", async || {
            say(&mill, worker.id(), 1).await;
            posts().await == feeds(1)
        })
        .await;
        mill.put(Mail::to("x")).await.unwrap();
        mill.put(Feed(1)).await.unwrap();
        until("both are served", async || {
            say(&mill, worker.id(), 1).await;
            worker.stats().report.done == 2
        })
        .await;
        // Nobody renews the word any more, but it stands in the store.
        until("it rotates", async || posts().await == (None, Vec::new())).await;
        assert!(mill.inspect().assignment().await.unwrap().is_some());
        worker.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_can_bring_its_manager_along() {
    for (mill, _folder) in mills().await {
        mill.declare::<Mail>().processors(1, None, 1).await.unwrap();
        let worker = Worker::new(&mill)
            .handle(|_: Mail| async { Ok::<(), String>(()) })
            .processors(2)
            .manager(Manager::new(&mill).every(Duration::from_millis(50)))
            .start()
            .await
            .unwrap();
        until("it follows itself", async || worker.stats().follows_term == Some(1)).await;
        worker.stop().await.unwrap();
        // It gave the role up with its end.
        let look = Manager::new(&mill).look().await.unwrap();
        assert_eq!(look, ManagerLook::Leads { term: 2, shares: Vec::new() });
    }
}
