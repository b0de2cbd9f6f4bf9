//! Reading: one task, pages of tasks by every filter, and keys.

use gristmill_core::{
    Action, KeyStanding, ListRequest, Order, Outcome, QueueName, StandingPlace, State, StoreError,
    TaskFilter, TaskId,
};

use crate::fixture::Fixture;
use crate::shape::{Shape, name, plain, secs, task};

pub(super) async fn verb_get_shows_one_task_or_none(f: &mut Fixture) {
    let q = f.queue("q").await;
    let id = f.enqueue(&q, task("x")).await;
    assert_eq!(f.get(id).await.map(|task| task.id), Some(id));
    for absent in [0, -1, id.0 + 1, i64::MAX, i64::MIN] {
        assert_eq!(f.get(TaskId(absent)).await, None);
    }
}

pub(super) async fn verb_list_pages_through_in_both_directions(f: &mut Fixture) {
    let q = f.queue("q").await;
    let ids = f.enqueue_all(&q, plain(23)).await;
    for order in [Order::Oldest, Order::Newest] {
        let mut request = ListRequest { order, limit: 5, ..ListRequest::default() };
        let mut found = Vec::new();
        let mut pages = 0;
        loop {
            let page = f.store.list(request.clone()).await.expect("a page");
            assert!(page.tasks.len() <= 5);
            found.extend(page.tasks.iter().map(|task| task.id));
            pages += 1;
            assert!(pages <= 100, "it ends");
            match page.next {
                Some(next) => request.after = Some(next),
                None => break,
            }
        }
        if order == Order::Newest {
            found.reverse();
        }
        assert_eq!(found, ids, "{order:?}: each once");
    }
}

pub(super) async fn verb_list_filters_by_every_field(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let plain = f.enqueue(&q, task("plain")).await;
    let keyed = f.enqueue(&q, task("keyed").keyed("k")).await;
    let grouped = f.enqueue(&q, task("grouped").in_group("g")).await;
    let sourced = f.enqueue(&q, task("sourced").of_source("s")).await;
    let other = f.enqueue(&r, task("other").keyed("k")).await;
    let failed = f.enqueue(&r, task("failed").at_priority(-1)).await;
    let held = f.claim_one(&r).await;
    f.end(&held, Outcome::Fail("disk 100% full_now".to_owned())).await;
    let often = f.enqueue(&r, task("often").at_priority(-1)).await;
    for _ in 0..3 {
        let held = f.claim_one(&r).await;
        f.end(&held, Outcome::Release { at: None, started: false }).await;
    }
    let running = f.enqueue(&r, task("running").at_priority(-2)).await;
    f.claim_one(&r).await;

    let ahead = f.enqueue(&q, task("ahead").keyed("b").at_priority(-9)).await;
    f.claim_one(&q).await;
    let blocked = f.enqueue(&q, task("behind").keyed("b")).await;
    let later = f.enqueue(&q, task("later").delayed(60)).await;
    let (now, soon) = (f.now(), f.now().after(secs(60)));
    let all = TaskFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (
            TaskFilter { queue: Some(q.clone()), ..all() },
            vec![plain, keyed, grouped, sourced, ahead, blocked, later],
        ),
        (all().ready(now), vec![plain, keyed, grouped, sourced, other, often]),
        (all().ready(soon), vec![plain, keyed, grouped, sourced, other, often, later]),
        (all().delayed(now), vec![later]),
        (TaskFilter { queue: Some(r.clone()), ..all() }.delayed(now), vec![]),
        (all().delayed(soon), vec![]),
        (all().blocked(), vec![blocked]),
        (TaskFilter { queue: Some(r.clone()), ..all() }.blocked(), vec![]),
        (TaskFilter { key: text("b"), ..all() }.blocked(), vec![blocked]),
        (TaskFilter { key: text("k"), ..all() }, vec![keyed, other]),
        (TaskFilter { queue: Some(r.clone()), key: text("k"), ..all() }, vec![other]),
        (TaskFilter { group: text("g"), ..all() }, vec![grouped]),
        (TaskFilter { source: text("s"), ..all() }, vec![sourced]),
        (TaskFilter { state: Some(State::Failed), ..all() }, vec![failed]),
        (TaskFilter { state: Some(State::Processing), ..all() }, vec![running, ahead]),
        (
            TaskFilter { queue: Some(r.clone()), state: Some(State::Pending), ..all() },
            vec![other, often],
        ),
        (TaskFilter { error_contains: text("100% full_"), ..all() }, vec![failed]),
        (TaskFilter { error_contains: text("100 full"), ..all() }, vec![]),
        (TaskFilter { error_contains: text("%"), ..all() }, vec![failed]),
        (TaskFilter { claims_over: Some(1), ..all() }, vec![often]),
        (TaskFilter { claims_over: Some(0), ..all() }, vec![failed, often, running, ahead]),
        (TaskFilter { queue: Some(name("absent")), ..all() }, vec![]),
        (TaskFilter { key: text("absent"), ..all() }, vec![]),
    ];
    for (filter, wanted) in cases {
        let found: Vec<_> = f.list(filter.clone()).await.iter().map(|task| task.id).collect();
        assert_eq!(found, wanted, "{filter:?}");
    }
}

/// Every page of a filter, whose tasks are found once each however few are looked at for
/// one; between two pages tasks come and go.
async fn paged(f: &Fixture, filter: &TaskFilter, order: Order, other: &QueueName) -> Vec<TaskId> {
    let mut request =
        ListRequest { filter: filter.clone(), order, after: None, limit: f.store.limits().page };
    let mut found = Vec::new();
    for first in std::iter::once(true).chain([false; 2_000]) {
        let page = f.store.list(request.clone()).await.expect("a page");
        assert!(page.tasks.len() <= request.limit, "{filter:?}");
        assert!(page.tasks.len() as u64 <= page.looked, "{filter:?}: {page:?}");
        // Tables are looked through side by side, and what is under a lease besides.
        let most = 3 * f.store.limits().looks as u64 + 10;
        assert!(page.looked <= most, "{filter:?}: looked at {}", page.looked);
        assert!(page.next != request.after || page.next.is_none(), "it gets on: {filter:?}");
        found.extend(page.tasks.iter().map(|task| task.id));
        let Some(next) = page.next else { return found };
        request.after = Some(next);
        if first {
            let came = f.enqueue(other, task("between")).await;
            f.operate_one(Action::Cancel, came).await;
        }
    }
    panic!("it ends: {filter:?}")
}

pub(super) async fn verb_list_finds_each_once_however_few_it_looks_at(f: &mut Fixture) {
    for looks in [2, 8, 40] {
        f.limit(|limits| (limits.looks, limits.page) = (looks, 4)).await;
        let (q, r) = (f.queue("q").await, f.queue("r").await);
        let between = f.queue("between").await;
        let keyed = |n: i16| task("x").keyed(&format!("k{n}")).at_priority(n % 2);
        // Bursts of others before, between and behind the few that are asked for.
        f.enqueue_all(&r, plain(12)).await;
        f.enqueue_all(&q, (0..3).map(keyed).collect()).await;
        f.enqueue_all(&q, vec![task("x").in_group("g"), task("x").of_source("s")]).await;
        f.claim_held(&q, 2).await;
        f.enqueue_all(&r, plain(9)).await;
        for queue in [&q, &r] {
            f.enqueue_all(queue, vec![task("x").at_priority(-1); 5]).await;
            for held in f.claim_held(queue, 5).await {
                f.end(&held, Outcome::Fail("no route to host".to_owned())).await;
            }
        }
        // Behind those that run.
        f.enqueue_all(&q, vec![keyed(0), keyed(2)]).await;
        f.enqueue_all(&q, vec![task("x").delayed(60).in_group("g"), task("x").delayed(90)]).await;
        f.enqueue_all(&r, vec![task("x").in_group("g"); 6]).await;
        f.enqueue_all(&r, vec![task("x").delayed(70).of_source("s"); 6]).await;
        let now = f.now();
        let mut all = f.all().await;
        all.retain(|task| task.state != State::Done);
        let every = TaskFilter::default;
        let text = |text: &str| Some(text.to_owned());
        let mut filters = vec![every()];
        for queue in [None, Some(q.clone()), Some(r.clone())] {
            let of = || TaskFilter { queue: queue.clone(), ..every() };
            filters.extend([of().ready(now), of().delayed(now), of().blocked(), of()]);
            for state in [State::Pending, State::Processing, State::Failed] {
                filters.push(TaskFilter { state: Some(state), ..of() });
            }
            filters.push(TaskFilter { group: text("g"), ..of() });
            filters.push(TaskFilter { source: text("s"), ..of() }.delayed(now));
            filters.push(TaskFilter { key: text("k1"), ..of() });
            filters.push(TaskFilter { error_contains: text("route"), ..of() });
            filters.push(TaskFilter { claims_over: Some(0), ..of() });
        }
        for filter in filters {
            let meant = all.iter().filter(|task| filter.matches(task)).map(|task| task.id);
            let mut wanted: Vec<_> = meant.collect();
            for order in [Order::Oldest, Order::Newest] {
                let found = paged(f, &filter, order, &between).await;
                assert_eq!(found, wanted, "{looks} at a time, {order:?}: {filter:?}");
                wanted.reverse();
            }
        }
    }
}

pub(super) async fn verb_find_says_where_keys_stand(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    let failed = f.enqueue(&q, task("x").keyed("a")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    let running = f.enqueue(&q, task("x").keyed("a")).await;
    f.claim_one(&q).await;
    let waiting = f.enqueue(&q, task("x").keyed("a")).await;
    let back = f.enqueue(&q, task("x").keyed("b")).await;
    let held = f.claim_one(&q).await;
    f.end(&held, Outcome::Error("wrong".to_owned())).await;
    f.enqueue(&q, task("x").keyed("unasked")).await;
    f.enqueue(&r, task("x").keyed("a")).await;
    let standing =
        |key: &str, id, place, state| KeyStanding { key: key.to_owned(), id, place, state };
    let wanted = [
        standing("a", failed, StandingPlace::Failed, State::Failed),
        standing("a", running, StandingPlace::InFlight, State::Processing),
        standing("a", waiting, StandingPlace::Waiting, State::Pending),
        standing("b", back, StandingPlace::InFlight, State::Pending),
    ];
    let keys = ["b", "a", "absent", "a"].map(str::to_owned);
    assert_eq!(f.store.find(&q, &keys).await.expect("a find"), wanted);
    assert_eq!(f.store.find(&q, &[]).await.expect("a find"), []);
    let unknown = f.store.find(&name("absent"), &keys).await;
    assert!(matches!(unknown, Err(StoreError::UnknownQueue { .. })), "{unknown:?}");
}

pub(super) async fn verb_stats_show_every_queue_at_a_glance(f: &mut Fixture) {
    let (q, r) = (f.queue("q").await, f.queue("r").await);
    f.advance(secs(100));
    f.enqueue(&q, task("x").keyed("k").at_priority(2)).await;
    f.advance(secs(10));
    f.enqueue_all(&q, plain(2)).await;
    f.enqueue(&q, task("later").delayed(60)).await;
    f.advance(secs(5));
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.delayed), (3, 1));
    assert_eq!(stats.oldest_ready, Some(secs(15)), "of all priorities");
    let all = f.store.stats().await.expect("stats");
    let order: Vec<_> = all.iter().map(|stats| (&stats.queue, stats.number)).collect();
    assert_eq!(order, [(&q, 10_000), (&r, 10_001)]);
    assert_eq!((all[1].total(), all[1].oldest_ready, all[1].capacity), (0, None, None));
    f.advance(secs(60));
    f.store.sweep().await.expect("a sweep");
    assert_eq!(f.stats(&q).await.ready, 4, "a task that fell due is ready");
    let held = f.claim_one(&q).await;
    f.claim_one(&q).await;
    f.end(&held, Outcome::Fail("never".to_owned())).await;
    let stats = f.stats(&q).await;
    assert_eq!((stats.ready, stats.processing, stats.failed, stats.total()), (2, 1, 1, 4));
}
