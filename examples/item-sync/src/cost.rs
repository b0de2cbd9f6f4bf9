//! What the queue costs the sync: the same chunks taken in with their tasks and
//! without, in one run, on files of the same disk. Counted, and in the long form
//! measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill::sqlite::rusqlite::Connection;

use crate::db;
use crate::error::Result;
use crate::feed::FeedItem;
use crate::items::Items;

const ITEMS: i64 = 10_000;
/// As many as tell, where costs are counted.
const FEW: i64 = 2_000;
/// As a sync has it unless told otherwise.
const CHUNK: usize = 500;
/// One item in this many has a new price on an ordinary day.
const CHANGED: i64 = 20;
const ROUNDS: usize = 5;

/// A day's file: on the first day everything is new.
fn day(number: u32, items: i64) -> Vec<FeedItem> {
    let price = |id: i64| if id % CHANGED == 0 { 100 + number } else { 100 };
    (1..=items)
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
        let items = day(number, ITEMS);
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
    days(|chunk| alone(&mut items, chunk))
}

/// A chunk without its tasks.
fn alone(items: &mut Connection, chunk: &[FeedItem]) -> Result<()> {
    let transaction = db::begin(items)?;
    for item in chunk {
        db::take_in(&transaction, item)?;
    }
    Ok(transaction.commit()?)
}

/// What a day costs wherever it is run: commits of anybody to the file, each of
/// which waits for the disk, and steps of SQLite's machine for the sync.
#[derive(Debug)]
struct Costs {
    commits: usize,
    steps: u64,
}

/// Of the first day and of the ordinary one after it.
fn costs(
    file: &Path,
    items: &mut Connection,
    mut take_in: impl FnMut(&mut Connection, &[FeedItem]) -> Result<()>,
) -> Result<[Costs; 2]> {
    // What is committed stays in the log until it was counted.
    items.pragma_update(None, "wal_autocheckpoint", 0)?;
    let steps = Arc::new(AtomicU64::new(0));
    let mut day_of = |number| -> Result<Costs> {
        items.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        steps.store(0, Ordering::Relaxed);
        let counted = steps.clone();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        items.progress_handler(1, Some(count))?;
        for chunk in day(number, FEW).chunks(CHUNK) {
            take_in(items, chunk)?;
        }
        Ok(Costs { commits: commits(file)?, steps: steps.load(Ordering::Relaxed) })
    };
    Ok([day_of(0)?, day_of(1)?])
}

/// How often anybody committed to a file, by its log: the last page of each commit
/// says how long the file is then.
fn commits(file: &Path) -> Result<usize> {
    let log = std::fs::read(file.with_extension("db-wal"))?;
    let (head, frames) = log.split_at(32);
    let page = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let frames = frames.chunks_exact(24 + page as usize);
    Ok(frames.filter(|frame| frame[4..8] != [0; 4]).count())
}

/// The tasks of a chunk go in with its own commit, and an ordinary day's few cost
/// the sync little beside its items.
#[tokio::test]
async fn an_ordinary_sync_hardly_does_more_for_its_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("with.db");
    let (mill, _) = crate::open(&file.to_string_lossy(), false).await.expect("opened");
    let mut items = db::open(&file).expect("opened");
    let take_in =
        |items: &mut Connection, chunk: &[FeedItem]| items.take_in(&mill, chunk).map(drop);
    let with = costs(&file, &mut items, take_in).expect("synced");
    mill.close().await.expect("closed");
    let file = folder.path().join("without.db");
    let mut items = db::open(&file).expect("opened");
    items.pragma_update(None, "journal_mode", "WAL").expect("set");
    let without = costs(&file, &mut items, alone).expect("synced");
    let ratio = |day: usize| with[day].steps as f64 / without[day].steps as f64;
    println!("all new: {:.2}, one in {CHANGED} changed: {:.2}", ratio(0), ratio(1));
    for day in [0, 1] {
        assert_eq!(with[day].commits, without[day].commits, "{with:?} {without:?}");
    }
    assert!(ratio(1) < 1.3, "{with:?} {without:?}");
    assert!(ratio(0) < 9.0, "{with:?} {without:?}");
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
