//! What the queue costs the sync: the same chunks taken in with their tasks and
//! without, in one run, on files of the same disk.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::db;
use crate::error::Result;
use crate::feed::FeedItem;

const ITEMS: i64 = 10_000;
/// As a sync has it unless told otherwise.
const CHUNK: usize = 500;
/// One item in this many has a new price on an ordinary day.
const CHANGED: i64 = 20;
const ROUNDS: usize = 5;

/// A day's file: on the first day everything is new.
fn day(number: u32) -> Vec<FeedItem> {
    let price = |id: i64| if id % CHANGED == 0 { 100 + number } else { 100 };
    (1..=ITEMS)
        .map(|id| FeedItem { id, name: format!("item {id}"), price_cents: price(id) })
        .collect()
}

/// How long the first day and the ordinary one after it take.
struct Days {
    first: Duration,
    ordinary: Duration,
}

fn days(mut take_in: impl FnMut(&[FeedItem]) -> Result<()>) -> Result<Days> {
    let mut took = [Duration::ZERO; 2];
    for (number, took) in (0..).zip(&mut took) {
        let items = day(number);
        let start = Instant::now();
        for chunk in items.chunks(CHUNK) {
            take_in(chunk)?;
        }
        *took = start.elapsed();
    }
    let [first, ordinary] = took;
    Ok(Days { first, ordinary })
}

async fn with_queue(folder: &Path) -> Result<Days> {
    let file = folder.join("with.db");
    let (mill, mut items) = crate::open(&file.to_string_lossy(), false).await?;
    let took = days(|chunk| items.take_in(&mill, chunk).map(drop))?;
    mill.close().await?;
    Ok(took)
}

fn without_queue(folder: &Path) -> Result<Days> {
    let mut items = db::open(&folder.join("without.db"))?;
    // As the queue sets its file up.
    items.pragma_update(None, "journal_mode", "WAL")?;
    days(|chunk| {
        let transaction = db::begin(&mut items)?;
        for item in chunk {
            db::take_in(&transaction, item)?;
        }
        Ok(transaction.commit()?)
    })
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// By turns, so that a busy moment of the machine meets both.
#[tokio::test]
#[ignore = "measures: long form"]
async fn long_an_ordinary_sync_hardly_gets_slower_by_its_queue() {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().expect("a folder");
        without.push(without_queue(folder.path()).expect("synced"));
        with.push(with_queue(folder.path()).await.expect("synced"));
    }
    let ratio = |of: fn(&Days) -> Duration| {
        let (with, without) =
            (median(with.iter().map(of).collect()), median(without.iter().map(of).collect()));
        (with / without, with * 1e3, without * 1e3)
    };
    let (first, ordinary) = (ratio(|days| days.first), ratio(|days| days.ordinary));
    for (what, (ratio, with, without)) in [("all new", first), ("one in 20 changed", ordinary)] {
        println!("{what}: {with:.0} ms with the queue, {without:.0} ms without: {ratio:.2}");
    }
    assert!(ordinary.0 < 2.0, "an ordinary sync takes {:.2} times as long", ordinary.0);
}
