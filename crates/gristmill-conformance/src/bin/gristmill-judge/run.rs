//! A run: a place, clients, faults, an end in peace, a verdict, and a line in the
//! ledger.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gristmill::port::Store;
use gristmill::port::memory::{MemoryOptions, MemoryStore};
use gristmill_conformance::judge::{
    Dice, FaultKind, Journal, LEASE_MS, Plan, Verdict, Violation, declare, drain, judge_folder,
    together,
};

use crate::args::RunOrder;
use crate::ledger::Entry;
use crate::nemesis::{Nemesis, crew};
use crate::place::{Kind, Place};
use crate::report::{self, Progress};
use crate::site::{Part, Site};
use crate::{Result, store};

/// Runs and judges. Says whether nothing was found.
pub(crate) fn run(order: &RunOrder, json: bool) -> Result<bool> {
    let kind = Kind::read(&order.store);
    let faults = match order.wanted()? {
        Some(faults) => faults,
        None => kind.usual(),
    };
    for fault in &faults {
        kind.allows(*fault).map_err(|why| format!("{}: {why}", fault.word()))?;
    }
    let folder = folder(order, &kind)?;
    let begun = Instant::now();
    let troubles = if kind == Kind::Memory {
        in_this_process(order, &folder)?;
        Vec::new()
    } else {
        with_processes(order, &kind, &faults, &folder, json)?
    };
    let judging = Instant::now();
    let mut verdict = judge_folder(&folder).map_err(|error| error.to_string())?;
    for words in troubles {
        *verdict.counted.entry("client died".to_owned()).or_default() += 1;
        let rule = "client died".to_owned();
        verdict.violations.push(Violation { rule, words, story: Vec::new() });
    }
    let entry = Entry {
        store: kind.word(),
        seed: order.seed,
        seconds: order.time().as_secs(),
        took: begun.elapsed().as_secs(),
        judged_in_ms: u64::try_from(judging.elapsed().as_millis()).unwrap_or(u64::MAX),
        faults: faults.iter().map(|fault| fault.word().to_owned()).collect(),
        folder: folder.display().to_string(),
        verdict,
    };
    finish(order, &folder, &entry, json)
}

fn finish(order: &RunOrder, folder: &Path, entry: &Entry, json: bool) -> Result<bool> {
    entry.append(&order.ledger)?;
    report::tell(entry, json);
    let sound = entry.verdict.is_sound();
    let keep = order.keep || order.folder.is_some() || !sound;
    if !keep {
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    }
    Ok(sound)
}

fn folder(order: &RunOrder, kind: &Kind) -> Result<PathBuf> {
    let name = match kind {
        Kind::Given(_) => "given".to_owned(),
        kind => kind.word(),
    };
    let own =
        || PathBuf::from(format!("target/judge/{name}-{}-{}", order.seed, std::process::id()));
    let folder = order.folder.clone().unwrap_or_else(own);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let mut inside = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    if inside.next().is_some() {
        return Err(format!("{} is not empty: a run needs a folder of its own", folder.display()));
    }
    Ok(folder)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().map_err(|error| error.to_string())
}

fn in_this_process(order: &RunOrder, folder: &Path) -> Result<()> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    runtime()?.block_on(together(
        &[store],
        folder,
        "memory:",
        order.seed,
        order.time(),
        !order.restless,
    ))
}

fn with_processes(
    order: &RunOrder,
    kind: &Kind,
    faults: &[FaultKind],
    folder: &Path,
    json: bool,
) -> Result<Vec<String>> {
    let mut dice = Dice::of(order.seed, "nemesis");
    let mut place = Place::make(kind, folder, faults, &mut dice)?;
    let runtime = runtime()?;
    let lease = Duration::from_millis(LEASE_MS);
    runtime.block_on(async {
        let mill = store::open(&place.url, place.clock.as_deref()).await?;
        let verbs = store::verbs(&mill);
        declare(verbs.as_ref(), lease).await.map_err(|error| error.to_string())?;
        let plan = Plan::new(verbs.as_ref(), &kind.word(), order.seed, lease);
        plan.write(folder).map_err(|error| error.to_string())?;
        verbs.close().await.map_err(|error| error.to_string())
    })?;
    let journal = Journal::open(folder, "nemesis").map_err(|error| error.to_string())?;
    let mut site = Site::new(folder, &place.url, order.seed, place.clock.clone());
    site.restless = order.restless;
    for (role, nth) in crew(order.producers, order.workers) {
        site.start(role, nth, &[])?;
    }
    let socket = place.database.as_ref().and_then(crate::server::Database::socket);
    if let (Some(socket), Ok(())) = (socket, crate::place::python()) {
        site.speak_sql(socket)?;
        site.start(Part::Python(0.0), 1, &[])?;
        if faults.contains(&FaultKind::OpenTransaction) {
            site.start(Part::Python(2.5), 2, &[])?;
        }
    }
    let interrupted = interrupts(&runtime);
    let mut progress = Progress::new(order.time(), order.quiet || json);
    let end = Instant::now() + order.time();
    let mut nemesis = Nemesis::new(&mut site, &mut place, &journal, dice, faults.to_vec());
    nemesis.rage(end, || {
        progress.step(folder);
        interrupted.load(Ordering::Relaxed)
    })?;
    if interrupted.load(Ordering::Relaxed) {
        progress.say("interrupted: what there is is judged; once more ends it at once");
    }
    let mut troubles = std::mem::take(&mut nemesis.troubles);
    progress.say("everything is healed; what stands is worked off");
    troubles.extend(site.send_all_away(Duration::from_secs(30)));
    let url = place.database.as_ref().map_or_else(|| place.url.clone(), |database| database.url());
    let standing = runtime.block_on(async {
        let clock = place.clock.as_deref();
        let patience = Duration::from_secs(order.patience);
        let mill = store::open_at_last(&url, clock, patience, || false).await?;
        let mut standing = drain(store::verbs(&mill), folder, patience).await?;
        standing.findings.extend(store::check(&mill).await?);
        let _ = mill.store().close().await;
        Ok::<_, String>(standing)
    })?;
    standing.write(folder).map_err(|error| error.to_string())?;
    progress.end();
    Ok(troubles)
}

/// Becomes true with the first Ctrl-C. The second ends the process, and what is
/// mounted stays so.
fn interrupts(runtime: &tokio::runtime::Runtime) -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let told = interrupted.clone();
    runtime.spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if told.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        }
    });
    interrupted
}

/// The verdict of a folder, for `judge`.
pub(crate) fn verdict(folder: &Path) -> Result<Verdict> {
    judge_folder(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
