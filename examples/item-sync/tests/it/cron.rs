//! Drains started by cron, also while another still runs, and the worker that
//! stays until it is told to stop.

use std::collections::BTreeMap;
use std::process::Command;

use crate::shop::{Shop, until};
use crate::webhook::Webhook;

#[test]
fn two_drains_at_once_do_each_task_once() {
    let shop = Shop::new();
    let items: Vec<(i64, u32)> = (1..=60).map(|id| (id, 100)).collect();
    shop.sync(&items);
    let webhook = Webhook::start();
    let args = ["work", "--drain", "--webhook", webhook.url.as_str()];
    let drains = [shop.start(&args), shop.start(&args)];
    // Both hold a task at the same time before either is answered.
    let (first, second) = (webhook.next(), webhook.next());
    assert!(shop.stats("NEW_ITEM").processing >= 2);
    let mut told = BTreeMap::new();
    let mut answer = |post: crate::webhook::Post| {
        *told.entry(post.item).or_insert(0) += 1;
        post.answer(200);
    };
    answer(first);
    answer(second);
    until("all are told", || {
        while let Some(post) = webhook.try_next() {
            answer(post);
        }
        shop.stats("NEW_ITEM").counters.done == 60
    });
    let done: Vec<u64> = drains
        .into_iter()
        .map(|drain| {
            let ran = drain.end();
            assert!(ran.ok && ran.stdout.contains(" done, 0 not done"), "{ran:?}");
            ran.stdout.split(' ').next().expect("a number").parse().expect("a number")
        })
        .collect();
    assert!(done.iter().all(|done| *done > 0), "{done:?}");
    assert_eq!(done.iter().sum::<u64>(), 60 * 4, "each task by one of them");
    assert_eq!((told.len(), told.values().sum::<i32>()), (60, 60), "each notice once");
    assert_eq!(shop.rows("gristmill_task"), 0);
}

#[test]
fn a_drain_with_nothing_to_do_ends() {
    let shop = Shop::new();
    let ran = shop.ok(&["work", "--drain"]);
    assert!(ran.stdout.contains("0 done, 0 not done"), "{ran:?}");
}

#[test]
fn a_worker_that_stays_hears_of_syncs_and_of_the_stop() {
    let shop = Shop::new();
    let mut worker = shop.start(&["work"]);
    // The queues stand once it has declared them.
    until("it works", || shop.rows("gristmill_queue") == 4);
    shop.sync(&[(1, 100), (2, 100)]);
    until("both are told", || shop.notices().len() == 2);
    shop.sync(&[(3, 100)]);
    until("so is the third", || shop.notices().len() == 3);
    let stopped = Command::new("kill").args(["-TERM", &worker.id().to_string()]).status();
    assert!(stopped.expect("kill").success());
    let ran = worker.end();
    assert!(ran.ok && ran.stdout.contains(" done, 0 not done"), "{ran:?}");
}
