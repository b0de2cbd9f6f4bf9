//! Calls to the disk that fail: `strace` lets the N-th write or sync of a child
//! fail, for every N; then the power is cut. Whatever was answered is still true.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_core::{NewTask, Payload, PutAnswer, PutRequest, Store};

use super::nemesis::{Site, standing};
use super::power::Image;
use super::record::{self, Record, Recorder};
use super::verdict::{Power, judge};
use super::{Open, block_on, child, trace};

/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(90);

/// The calls that fail, each with the errors a disk has.
const CALLS: [(&str, &[&str]); 4] = [
    ("fsync", &["EIO", "ENOSPC"]),
    ("fdatasync", &["EIO"]),
    ("ftruncate", &["EIO"]),
    ("pwrite64", &["EIO", "ENOSPC"]),
];

/// Who has the store open beside the child whose disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Nobody.
    Alone,
    /// This process, which goes on afterwards.
    Another,
}

/// Why calls cannot be made to fail here, if so.
#[must_use]
pub fn obstacle() -> Option<String> {
    let tried = Command::new("strace")
        .args(["-qq", "-e", "trace=none", "-o", "/dev/null", "true"])
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("strace does not work here: {said}"))
        }
        Err(error) => Some(format!("strace is missing: {error}")),
    }
}

/// A fault: the N-th call of each thread fails in this way.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: &'static str,
    error: &'static str,
    when: usize,
}

/// How a child under a fault ended.
struct Told {
    trace: String,
    /// Whether the fault was met at all.
    met: bool,
}

/// Has a child tell its story under a fault.
fn tell(site: &Site, fault: Fault, traced: &str, heavy: bool) -> Result<Told, String> {
    let out = site.log.with_file_name("trace");
    let inject = format!("inject={}:error={}:when={}", fault.call, fault.error, fault.when);
    let (trace, shown) = (format!("trace={traced}"), out.display().to_string());
    let mut words = vec!["env"];
    if heavy {
        words.push("GRISTMILL_CRASH_HEAVY=yes");
    }
    words.extend(["strace", "-f", "-qq", "-y", "-s", "64", "-o", &shown]);
    words.extend(["-e", &trace, "-e", &inject]);
    let mut child = site.start_under(&words, "story");
    wait(&mut child)?;
    let trace = std::fs::read(&out).map_err(|error| format!("no trace: {error}"))?;
    let trace = String::from_utf8_lossy(&trace).into_owned();
    let met = trace.contains("(INJECTED)");
    Ok(Told { trace, met })
}

fn wait(child: &mut Child) -> Result<(), String> {
    let start = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if start.elapsed() > PATIENCE {
            // Its tracer's end is its own.
            let _ = child.kill();
            let _ = child.wait();
            return Err("it did not come to its end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A site with a store in it that is in order, and on the disk.
fn begin(folder: &Path, store: PathBuf, child: &'static str, open: Open) -> Site {
    let mut site = Site::new(folder, child);
    (site.store, site.patient) = (store, true);
    std::fs::create_dir_all(&site.store).expect("a folder");
    block_on(async {
        let store = open(&site.store).await;
        child::declare(&store).await;
        store.close().await.expect("closed");
    });
    let synced = Command::new("sync").arg("-f").arg(&site.store).status();
    assert!(synced.is_ok_and(|status| status.success()), "the store is on the disk");
    site
}

/// What somebody beside the child does afterwards: it repeats every put, those
/// without an answer as well, and puts something of its own.
async fn go_on(store: &dyn Store, site: &Site) {
    let mut log = Recorder::open(&site.log);
    let queue = gristmill_core::QueueName::new(super::QUEUE).expect("a name");
    let mut payloads = Vec::new();
    let mut known = HashMap::new();
    for (_, record) in record::read_all(&site.log) {
        match record {
            Record::PutTried { payload } => payloads.push(payload),
            Record::PutDone { payload, id } => {
                known.insert(payload, id);
            }
            _ => {}
        }
    }
    payloads.push(super::story::number(9, 1));
    log.note(&Record::PutTried { payload: super::story::number(9, 1) });
    for payloads in payloads.chunks(500) {
        let task = |payload: &u64| NewTask {
            payload: Payload::raw(payload.to_string()),
            id: Some(format!("put-{payload}")),
            ..NewTask::default()
        };
        let tasks = payloads.iter().map(task).collect();
        let request = PutRequest { queue: queue.clone(), tasks, atomic: false };
        // Refused while what the child left cannot be trusted: that is an answer.
        let Ok(report) = store.put(request).await else { continue };
        for (payload, answer) in payloads.iter().zip(report.answers) {
            if let PutAnswer::Enqueued { id } | PutAnswer::Duplicate { id, .. } = answer
                && known.get(payload) != Some(&id.0)
            {
                log.note(&Record::PutDone { payload: *payload, id: id.0 });
            }
        }
    }
}

/// Lets some syncs fail, without root: no answer may come before its bytes are
/// synced, whatever failed before.
pub fn tell_failed_syncs(child: &'static str, folder: &Path, open: Open, when: &[usize]) {
    let traced = "pwrite64,write,fsync,fdatasync,ftruncate";
    let mut met = 0;
    for (number, when) in when.iter().enumerate() {
        let folder = folder.join(number.to_string());
        let site = begin(&folder, folder.join("store"), child, open);
        let fault = Fault { call: "fsync", error: "EIO", when: *when };
        let told =
            tell(&site, fault, traced, false).unwrap_or_else(|why| panic!("{fault:?}: {why}"));
        met += usize::from(told.met);
        let faults = trace::unsynced_answers(&told.trace);
        assert!(faults.is_empty(), "{fault:?}: {faults:#?}");
        let verdict = judge(&record::read_all(&site.log), &standing(&site.store, open), Power::Cut);
        assert!(verdict.faults.is_empty(), "{fault:?}: {:#?}", verdict.faults);
    }
    assert_eq!(met, when.len(), "a sync that never came cannot fail");
}

/// Lets every write and every sync fail in turn, and cuts the power after each.
/// Needs root, loop devices and `strace`.
pub fn survive_faults(child: &'static str, folder: &Path, open: Open, company: Company) {
    let image = Image::make(folder, "ext4").and_then(|image| image.mount().map(|()| image));
    let image = image.expect("root and loop devices");
    let (mut seen, mut puts, mut number) = (0, 0, 0);
    for (call, errors) in CALLS {
        let mut when = 1;
        loop {
            let mut met = false;
            for error in errors {
                number += 1;
                let fault = Fault { call, error, when };
                let place = folder.join(format!("run-{number}"));
                let store = image.mount.join(format!("run-{number}"));
                let site = begin(&place, store, child, open);
                let (told, verdict) = cut_after(&site, fault, company, &image, open);
                met |= told.met;
                seen += usize::from(told.met);
                puts += verdict.tally.puts;
                assert!(verdict.faults.is_empty(), "{fault:?} {company:?}: {:#?}", verdict.faults);
                std::fs::remove_dir_all(&site.store).expect("removed");
                std::fs::remove_dir_all(&place).expect("removed");
            }
            if !met {
                break;
            }
            // All of the first ones; of the many that follow, some.
            when += if when < 40 { 1 } else { 1 + when / 4 };
        }
        println!("{call}: failed up to its call {when}");
    }
    println!("{seen} faults, {puts} puts acknowledged");
    assert!(seen > 60 && puts > seen, "{seen} {puts}");
}

fn cut_after(
    site: &Site,
    fault: Fault,
    company: Company,
    image: &Image,
    open: Open,
) -> (Told, super::Verdict) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let beside =
        (company == Company::Another).then(|| runtime.block_on(async { open(&site.store).await }));
    let told = tell(site, fault, fault.call, true).unwrap_or_else(|why| panic!("{fault:?}: {why}"));
    if let Some(store) = &beside {
        runtime.block_on(go_on(&**store, site));
    }
    image.cut().expect("cut");
    // It cannot be closed in order any more.
    drop(beside);
    image.unmount().and_then(|()| image.mount()).expect("mounted again");
    let verdict = judge(&record::read_all(&site.log), &standing(&site.store, open), Power::Cut);
    (told, verdict)
}
