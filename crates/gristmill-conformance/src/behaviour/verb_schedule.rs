//! Schedules: declared once, paused, and each instant decided once, whoever
//! fires it.

use gristmill_core::{
    Fire, FireAnswer, Missed, NewTask, Outcome, Overlap, Payload, PutAnswer, QueueName, Refusal,
    Rule, ScheduleDeclaration, ScheduleName, StoreError, TaskOptions, TaskSettings, Timestamp,
};

use crate::fixture::Fixture;
use crate::shape::{name, plain, secs, task};

fn schedule(text: &str) -> ScheduleName {
    ScheduleName::new(text).expect("a schedule's name")
}

fn every_minute(queue: &QueueName) -> ScheduleDeclaration {
    ScheduleDeclaration {
        name: schedule("s"),
        queue: queue.clone(),
        rule: Rule::Every(secs(60)),
        zone: "Europe/Athens".to_owned(),
        payload: Some(Payload::json("{}")),
        options: Default::default(),
        missed: Missed::Once,
        overlap: Overlap::Allow,
    }
}

async fn declare(f: &Fixture, declaration: ScheduleDeclaration) {
    f.store.declare_schedule(declaration).await.expect("a schedule");
}

async fn fire(f: &Fixture, instant: Timestamp, tasks: Vec<NewTask>) -> FireAnswer {
    let fire = Fire { schedule: schedule("s"), instant, tasks, by_hand: false };
    f.store.fire(fire).await.expect("an answer")
}

fn fired(answer: FireAnswer) -> Vec<PutAnswer> {
    match answer {
        FireAnswer::Fired(answers) => answers,
        other => panic!("it did not fire: {other:?}"),
    }
}

pub(super) async fn verb_declare_schedule_keeps_what_is_said_about_its_tasks(f: &mut Fixture) {
    let q = f.queue("q").await;
    let headers = [("tenant".to_owned(), "acme".to_owned())].into();
    let mut settings = TaskSettings::default();
    settings.set_max_attempts(None);
    settings.set_timeout(secs(9));
    let options = TaskOptions {
        key: Some("7".to_owned()),
        group: Some("g".to_owned()),
        source: Some("s".to_owned()),
        priority: -3,
        delay: Some(secs(5)),
        headers,
        settings,
    };
    let declared = ScheduleDeclaration { options, ..every_minute(&q) };
    declare(f, declared.clone()).await;
    let kept = f.store.schedules().await.expect("schedules").remove(0).declared;
    assert_eq!(kept, declared);
    f.advance(secs(60));
    let task = kept.task().expect("it puts a task");
    let first = fired(fire(f, f.now(), vec![task.clone()]).await).remove(0);
    let task = f.store.get(first.id().expect("a task")).await.expect("an answer").expect("it");
    assert_eq!((task.key.as_deref(), task.group.as_deref()), (Some("7"), Some("g")));
    assert_eq!((task.source.as_deref(), task.priority), (Some("s"), -3));
    assert_eq!(task.run_at, f.now().after(secs(5)));
    assert_eq!(task.headers["tenant"], "acme");
    assert_eq!(task.settings, declared.options.settings);
}

pub(super) async fn verb_declare_schedule_keeps_what_is_decided(f: &mut Fixture) {
    let q = f.queue("q").await;
    let first = f.store.declare_schedule(every_minute(&q)).await.expect("a schedule");
    assert_eq!((first.decided_until, first.created_at), (f.now(), f.now()));
    assert_eq!((first.last_fire, first.paused), (None, false));
    f.advance(secs(60));
    let instant = f.now();
    fire(f, instant, plain(1)).await;
    f.advance(secs(60));
    let changed =
        ScheduleDeclaration { rule: Rule::Cron("0 * * * *".to_owned()), ..every_minute(&q) };
    let again = f.store.declare_schedule(changed.clone()).await.expect("a schedule");
    assert_eq!(again.declared, changed);
    assert_eq!((again.decided_until, again.last_fire), (instant, Some(instant)));
    assert_eq!(again.created_at, first.created_at);
    assert_eq!(f.store.schedules().await.expect("schedules"), [again]);
}

pub(super) async fn verb_declare_schedule_refuses_what_cannot_fire(f: &mut Fixture) {
    let q = f.queue("q").await;
    let rule = |rule| ScheduleDeclaration { rule, ..every_minute(&q) };
    let bad = [
        rule(Rule::Cron("not a cron".to_owned())),
        rule(Rule::Cron("0 0 30 2 *".to_owned())),
        rule(Rule::Every(secs(0))),
        ScheduleDeclaration { zone: "Europe/Atlantis".to_owned(), ..every_minute(&q) },
    ];
    for declaration in bad {
        let refused = f.store.declare_schedule(declaration.clone()).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{declaration:?}: {refused:?}");
    }
    let unknown = ScheduleDeclaration { queue: name("absent"), ..every_minute(&q) };
    let refused = f.store.declare_schedule(unknown).await;
    assert!(matches!(refused, Err(StoreError::UnknownQueue { .. })), "{refused:?}");
    assert!(f.store.schedules().await.expect("schedules").is_empty());
}

pub(super) async fn verb_fire_decides_an_instant_once(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    // What lies before its declaration is decided.
    let early = fire(f, f.now(), plain(1)).await;
    assert_eq!(early, FireAnswer::AlreadyDecided);
    f.advance(secs(120));
    let (first, second) = (f.now().before(secs(60)), f.now());
    let answers = fired(fire(f, first, plain(2)).await);
    assert!(answers.iter().all(PutAnswer::is_enqueued), "{answers:?}");
    assert_eq!(fire(f, first, plain(2)).await, FireAnswer::AlreadyDecided);
    let known = f.store.schedules().await.expect("schedules").remove(0);
    assert_eq!((known.last_fire, known.decided_until), (Some(first), first));
    assert_eq!(known.last_tasks, answers.iter().filter_map(PutAnswer::id).collect::<Vec<_>>());
    fired(fire(f, second, plain(1)).await);
    assert_eq!(fire(f, first, plain(2)).await, FireAnswer::AlreadyDecided, "nor an older one");
    assert_eq!(f.stats(&q).await.total(), 3);
}

pub(super) async fn verb_fire_decides_nothing_ahead_of_the_stores_clock(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    f.advance(secs(60));
    let (due, ahead) = (f.now(), f.now().after(secs(3600)));
    assert_eq!(fire(f, ahead, plain(1)).await, FireAnswer::NotYet(secs(3600)));
    fired(fire(f, due, plain(1)).await);
    f.advance(secs(3600));
    fired(fire(f, ahead, plain(1)).await);
    assert_eq!(f.stats(&q).await.total(), 2);
}

pub(super) async fn verb_fire_that_races_puts_one_task(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    let handles = f.handles().await;
    for round in 1..=5 {
        f.advance(secs(60));
        let instant = f.now();
        let mut racing = Vec::new();
        for n in 0..16 {
            let handle = handles[n % handles.len()].clone();
            racing.push(tokio::spawn(async move {
                let fire =
                    Fire { schedule: schedule("s"), instant, tasks: plain(1), by_hand: false };
                handle.store.fire(fire).await.expect("an answer")
            }));
        }
        let mut winners = 0;
        for racer in racing {
            match racer.await.expect("a fire") {
                FireAnswer::Fired(_) => winners += 1,
                other => assert_eq!(other, FireAnswer::AlreadyDecided),
            }
        }
        assert_eq!(winners, 1);
        assert_eq!(f.stats(&q).await.total(), round);
    }
}

pub(super) async fn verb_fire_without_tasks_decides_the_instant(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    f.advance(secs(60));
    assert_eq!(fire(f, f.now(), Vec::new()).await, FireAnswer::Fired(Vec::new()));
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::AlreadyDecided);
    let known = f.store.schedules().await.expect("schedules").remove(0);
    assert_eq!((known.decided_until, known.last_fire), (f.now(), None));
}

pub(super) async fn verb_fire_that_meets_a_full_queue_has_missed(f: &mut Fixture) {
    let q = f.queue_with("q", |s| s.capacity = Some(Some(1))).await;
    declare(f, every_minute(&q)).await;
    f.enqueue(&q, task("fills it")).await;
    f.advance(secs(60));
    let answers = fired(fire(f, f.now(), plain(1)).await);
    assert_eq!(answers, [PutAnswer::Refused(Refusal::QueueFull { capacity: 1 })]);
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::AlreadyDecided);
}

pub(super) async fn verb_fire_skips_while_the_one_before_stands(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, ScheduleDeclaration { overlap: Overlap::Skip, ..every_minute(&q) }).await;
    f.advance(secs(60));
    let first = fired(fire(f, f.now(), plain(1)).await)[0].id().expect("an id");
    f.advance(secs(60));
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::Overlapped(first), "pending");
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::AlreadyDecided);
    let held = f.claim_one(&q).await;
    f.advance(secs(60));
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::Overlapped(first), "running");
    f.end(&held, Outcome::Done).await;
    f.advance(secs(60));
    fired(fire(f, f.now(), plain(1)).await);
}

pub(super) async fn verb_pause_schedule_decides_nothing_meanwhile(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    let s = schedule("s");
    assert_eq!(f.store.pause_schedule(&s, true, "ada").await, Ok(true));
    let known = f.store.schedules().await.expect("schedules").remove(0);
    assert_eq!((known.paused, known.paused_by.as_deref()), (true, Some("ada")));
    f.advance(secs(60));
    let missed = f.now();
    assert_eq!(fire(f, missed, plain(1)).await, FireAnswer::Paused);
    // By hand it fires all the same, and that decides nothing.
    let by_hand = Fire { schedule: s.clone(), instant: missed, tasks: plain(1), by_hand: true };
    fired(f.store.fire(by_hand).await.expect("an answer"));
    f.advance(secs(60));
    assert_eq!(f.store.pause_schedule(&s, false, "ada").await, Ok(true));
    assert_eq!(fire(f, missed, plain(1)).await, FireAnswer::AlreadyDecided, "up to now");
    f.advance(secs(60));
    fired(fire(f, f.now(), plain(1)).await);
    assert_eq!(f.stats(&q).await.total(), 2);
}

pub(super) async fn verb_fire_by_hand_neither_asks_nor_decides(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    f.advance(secs(60));
    let instant = f.now();
    for _ in 0..2 {
        let fire = Fire { schedule: schedule("s"), instant, tasks: plain(1), by_hand: true };
        fired(f.store.fire(fire).await.expect("an answer"));
    }
    fired(fire(f, instant, plain(1)).await);
    assert_eq!(f.stats(&q).await.total(), 3);
}

pub(super) async fn verb_fire_by_hand_asks_for_a_run_of_a_finder(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, ScheduleDeclaration { payload: None, ..every_minute(&q) }).await;
    let known = async || f.store.schedules().await.expect("schedules").remove(0);
    let ask =
        || Fire { schedule: schedule("s"), instant: f.now(), tasks: Vec::new(), by_hand: true };
    f.store.pause_schedule(&schedule("s"), true, "me").await.expect("paused");
    assert_eq!(known().await.asked(), None);
    assert_eq!(f.store.fire(ask()).await, Ok(FireAnswer::Asked));
    let asked = known().await.asked().expect("it is remembered");
    f.advance(secs(30));
    // The run decides what was asked for, paused or not, and nothing else is
    // decided while the schedule is paused.
    assert_eq!(fire(f, f.now(), Vec::new()).await, FireAnswer::Paused);
    assert_eq!(fire(f, asked, Vec::new()).await, FireAnswer::Fired(Vec::new()));
    assert_eq!(known().await.asked(), None);
    assert_eq!(fire(f, asked, Vec::new()).await, FireAnswer::Paused);
    // At once, too, however near to the last decided instant.
    f.store.pause_schedule(&schedule("s"), false, "me").await.expect("resumed");
    assert_eq!(f.store.fire(ask()).await, Ok(FireAnswer::Asked));
    let asked = known().await.asked().expect("it is remembered");
    assert_eq!(fire(f, asked, Vec::new()).await, FireAnswer::Fired(Vec::new()));
    assert_eq!(known().await.asked(), None);
    // A pause that ends does not take it back.
    f.store.pause_schedule(&schedule("s"), true, "me").await.expect("paused");
    assert_eq!(f.store.fire(ask()).await, Ok(FireAnswer::Asked));
    f.advance(secs(30));
    f.store.pause_schedule(&schedule("s"), false, "me").await.expect("resumed");
    let asked = known().await.asked().expect("it is remembered");
    assert_eq!(fire(f, asked, Vec::new()).await, FireAnswer::Fired(Vec::new()));
    assert_eq!(known().await.asked(), None);
    // A run by the rule that comes later answers it as well.
    assert_eq!(f.store.fire(ask()).await, Ok(FireAnswer::Asked));
    f.advance(secs(60));
    assert_eq!(fire(f, f.now(), Vec::new()).await, FireAnswer::Fired(Vec::new()));
    assert_eq!(known().await.asked(), None);
    assert_eq!(f.stats(&q).await.total(), 0);
}

pub(super) async fn verb_remove_schedule_leaves_its_tasks(f: &mut Fixture) {
    let q = f.queue("q").await;
    declare(f, every_minute(&q)).await;
    f.advance(secs(60));
    fired(fire(f, f.now(), plain(1)).await);
    let s = schedule("s");
    assert_eq!(f.store.remove_schedule(&s).await, Ok(true));
    assert_eq!(f.store.remove_schedule(&s).await, Ok(false));
    assert_eq!(f.store.pause_schedule(&s, true, "ada").await, Ok(false));
    f.advance(secs(60));
    assert_eq!(fire(f, f.now(), plain(1)).await, FireAnswer::Unknown);
    assert_eq!(f.stats(&q).await.total(), 1);
}
