//! Two services on one PostgreSQL: one leads at a time, and when it is killed the other one
//! goes on, without a fire too many or too few.

use gristmill::ControlPlane;
use gristmill::Mill;
use rustix::process::Signal;

use crate::place::{Place, Running, eventually};
use crate::postgres::migrated;

const CONFIG: &str = "
queues:
  - {name: beats, exec: 'true', settings: {lease: 2s}}
  - {name: others, exec: 'true', settings: {lease: 2s}}
manager: {every: 1s}
schedules:
  - {name: tick, queue: beats, every: 1s, missed: all, payload: 1}
";

/// How many seconds after 1970 it fired last, how many tasks were put, and the term of the
/// manager whose word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    fired: i64,
    put: u64,
    term: u64,
}

async fn seen(mill: &Mill) -> Option<Seen> {
    let store = mill.store();
    loop {
        let fired = store.schedules().await.unwrap().first()?.last_fire?.as_micros() / 1_000_000;
        let stats = store.stats().await.unwrap();
        let put = stats.iter().find(|one| one.queue.as_str() == "beats")?.counters.put;
        let term = store.assignment().await.unwrap().map_or(0, |word| word.term);
        let again = store.schedules().await.unwrap().first()?.last_fire?.as_micros() / 1_000_000;
        // A fire is on record with its task, so nothing fired between the two looks.
        if fired == again {
            return Some(Seen { fired, put, term });
        }
    }
}

#[test]
fn postgres_leaders_are_killed_and_nothing_fires_twice() {
    let (database, place) = (migrated(), Place::new());
    place.write("gristmill.yaml", CONFIG);
    let url = database.url();
    let start = || {
        let mut up = place.start(&["--store", &url, "up"]);
        Running::until(&mut up.stdout, "Stop with Ctrl-C");
        up
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mill = runtime.block_on(Mill::open_existing(&url)).unwrap();
    let look = || runtime.block_on(seen(&mill));
    let fires_after = |what: &str, before: Seen| {
        eventually(what, || look().is_some_and(|now| now.fired >= before.fired + 3));
        look().unwrap()
    };

    let (first, second) = (start(), start());
    eventually("they fire, and a manager leads", || look().is_some_and(|seen| seen.term > 0));
    let begun = look().unwrap();
    // Whichever leads: both are killed, one after the other.
    first.kill();
    let after_one = fires_after("the second goes on", begun);
    let third = start();
    second.kill();
    let after_two = fires_after("the third goes on", after_one);
    eventually("another manager leads", || look().is_some_and(|now| now.term > begun.term));

    let fires =
        |from: Seen, to: Seen| (u64::try_from(to.fired - from.fired).unwrap(), to.put - from.put);
    for (instants, put) in [fires(begun, after_one), fires(after_one, after_two)] {
        assert_eq!(instants, put, "{begun:?} {after_one:?} {after_two:?}");
    }
    runtime.block_on(async {
        // What ran in a killed one comes back when its lease ends.
        mill.store().pause_schedule(&"tick".parse().unwrap(), true, "ada").await.unwrap();
    });
    eventually("all is done", || {
        let stats = runtime.block_on(mill.store().stats()).unwrap();
        stats.iter().all(|one| one.total() == 0)
    });
    third.signal(Signal::TERM);
    let (code, _, stderr) = third.end();
    assert_eq!(code, 0, "{stderr}");
}
