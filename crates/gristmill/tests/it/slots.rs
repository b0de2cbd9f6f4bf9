//! Counts and slots through the typed API, with workers that overlap.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gristmill::Mill;
use gristmill::testing::{Faulty, Verb};
use gristmill::worker::{Context, Worker, WorkerHandle};
use tokio::sync::Notify;

use crate::{Mail, mills, until};

/// What runs now: the name of each task, its count and its slot, and how to let
/// it end.
#[derive(Clone, Default)]
struct Running(Arc<Mutex<HashMap<String, Run>>>);

#[derive(Clone)]
struct Run {
    concurrent: Option<u32>,
    slot: Option<u32>,
    end: Arc<Notify>,
}

impl Running {
    async fn handle(self, mail: Mail, context: Context) -> Result<(), String> {
        let end = Arc::new(Notify::new());
        let (concurrent, slot) = (context.concurrent, context.slot);
        let run = Run { concurrent, slot, end: end.clone() };
        self.0.lock().unwrap().insert(mail.to.clone(), run);
        end.notified().await;
        self.0.lock().unwrap().remove(&mail.to);
        Ok(())
    }

    fn worker(&self, mill: &Mill) -> Worker {
        let running = self.clone();
        Worker::new(mill).handle(move |mail: Mail, context: gristmill::Context| {
            running.clone().handle(mail, context)
        })
    }

    fn of(&self, name: &str) -> Option<Run> {
        self.0.lock().unwrap().get(name).cloned()
    }

    async fn begins(&self, name: &str) -> Run {
        until("it begins", async || self.of(name).is_some()).await;
        self.of(name).unwrap()
    }

    async fn end(&self, name: &str) {
        self.begins(name).await.end.notify_one();
        until("it ends", async || self.of(name).is_none()).await;
    }
}

/// Another handle to the same store where there can be one: a second process.
async fn other(mill: &Mill, folder: &tempfile::TempDir) -> Mill {
    if mill.sqlite().is_none() {
        return mill.clone();
    }
    Mill::open(&format!("sqlite://{}", folder.path().join("test.db").display())).await.unwrap()
}

async fn two_workers(
    running: &Running,
    mill: &Mill,
    folder: &tempfile::TempDir,
) -> [WorkerHandle; 2] {
    let other = other(mill, folder).await;
    [
        running.worker(mill).processors(2).start().await.unwrap(),
        running.worker(&other).processors(2).start().await.unwrap(),
    ]
}

#[tokio::test]
async fn slots_are_unique_over_workers_and_limit_what_runs() {
    for (mill, folder) in mills().await {
        mill.declare::<Mail>().slots(3).await.unwrap();
        let running = Running::default();
        let stores =
            [Faulty::over(mill.store()), Faulty::over(other(&mill, &folder).await.store())];
        let mut workers = Vec::new();
        for store in &stores {
            let worker = running.worker(&Mill::over(store.clone())).processors(2);
            workers.push(worker.start().await.unwrap());
        }
        let looks = || stores.iter().map(|store| store.calls(Verb::Claim)).sum::<u64>();
        let mut before = 0;
        for name in ["a", "b", "c", "d", "e"] {
            before = looks();
            mill.put(Mail::to(name)).await.unwrap();
            if name < "d" {
                running.begins(name).await;
            }
        }
        let slot = |name: &str| running.of(name).and_then(|run| run.slot);
        let mut slots: Vec<u32> = ["a", "b", "c"].iter().filter_map(|name| slot(name)).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2]);
        // The fourth processor is free, and all slots are taken.
        until("it has looked", async || looks() > before).await;
        for store in &stores {
            store.rests().await;
        }
        tokio::task::yield_now().await;
        assert!(running.of("d").is_none(), "three at once are allowed");
        // Whoever comes next has the slot that became free, not another.
        let freed = slot("b");
        running.end("b").await;
        assert_eq!(running.begins("d").await.slot, freed);
        let freed = slot("a");
        running.end("a").await;
        assert_eq!(running.begins("e").await.slot, freed);
        for name in ["c", "d", "e"] {
            running.end(name).await;
        }
        for worker in workers {
            worker.stop().await.unwrap();
        }
    }
}

#[tokio::test]
async fn slots_are_counted_by_group() {
    for (mill, folder) in mills().await {
        mill.declare::<Mail>().slots(1).await.unwrap();
        let running = Running::default();
        let workers = two_workers(&running, &mill, &folder).await;
        for (name, group) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
            mill.put(Mail::to(name)).group(group).await.unwrap();
        }
        assert_eq!(running.begins("a1").await.slot, Some(0));
        assert_eq!(running.begins("b1").await.slot, Some(0), "a group of its own");
        assert!(running.of("a2").is_none());
        running.end("a1").await;
        assert_eq!(running.begins("a2").await.slot, Some(0));
        running.end("a2").await;
        running.end("b1").await;
        for worker in workers {
            worker.stop().await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_bare_count_tells_how_busy_it_is_and_falls_into_its_trap() {
    for (mill, folder) in mills().await {
        mill.declare::<Mail>().count().await.unwrap();
        let running = Running::default();
        let workers = two_workers(&running, &mill, &folder).await;
        for (name, counted) in [("a", 0), ("b", 1), ("c", 2)] {
            mill.put(Mail::to(name)).await.unwrap();
            let run = running.begins(name).await;
            assert_eq!((run.concurrent, run.slot), (Some(counted), None), "{name}");
        }
        running.end("a").await;
        let processing = async || mill.inspect().queue("mails").await.unwrap().processing;
        until("it is settled", async || processing().await <= 2).await;
        mill.put(Mail::to("d")).await.unwrap();
        // The trap: it counts two, as the one does that still runs.
        assert_eq!(running.begins("d").await.concurrent, Some(2));
        assert_eq!(running.of("c").unwrap().concurrent, Some(2));
        for name in ["b", "c", "d"] {
            running.end(name).await;
        }
        for worker in workers {
            worker.stop().await.unwrap();
        }
    }
}
