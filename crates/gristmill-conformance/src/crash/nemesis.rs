//! Kills: children die by SIGKILL at random moments and are replaced.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_core::{ListRequest, State};

use super::child::Dice;
use super::record;
use super::verdict::{Power, Standing, Verdict, judge};
use super::{Open, block_on};

/// How a run of kills goes.
#[derive(Debug, Clone)]
pub struct KillPlan {
    /// The full name of the store's child test, as the test binary knows it.
    pub child: &'static str,
    /// How many children are killed.
    pub kills: usize,
    /// Children that put.
    pub producers: usize,
    /// Children that work.
    pub workers: usize,
}

/// Starts children on a fresh store in `folder`, kills them at random, and
/// judges what they wrote against what the store then holds.
pub fn kills(plan: &KillPlan, folder: &Path, open: Open) -> Verdict {
    run(&Site::new(folder, plan.child), plan, open, None)
}

/// Calls `strike` at random instead of killing children: it restarts a server
/// or ends its connections. The children are patient. Every third time a child
/// is killed as well.
pub fn strikes(
    plan: &KillPlan,
    folder: &Path,
    open: Open,
    mut strike: impl FnMut(usize),
) -> Verdict {
    let site = Site { patient: true, ..Site::new(folder, plan.child) };
    run(&site, plan, open, Some(&mut strike))
}

fn run(
    site: &Site,
    plan: &KillPlan,
    open: Open,
    mut strike: Option<&mut dyn FnMut(usize)>,
) -> Verdict {
    // Made before the children start, so that a first kill cannot leave
    // half a store behind and hide that as "fresh".
    block_on(async { open(&site.store).await.close().await.expect("closed") });
    let mut dice = Dice::new();
    let mut children: Vec<(&str, Child)> = Vec::new();
    for role in std::iter::repeat_n("producer", plan.producers)
        .chain(std::iter::repeat_n("worker", plan.workers))
    {
        children.push((role, site.start(role)));
    }
    let mut seen = 0;
    for round in 0..plan.kills {
        std::thread::sleep(Duration::from_millis(40 + dice.below(120) as u64));
        seen = site.wait_for_records(seen);
        if let Some(strike) = &mut strike {
            strike(round);
            if round % 3 != 2 {
                continue;
            }
        }
        let victim = dice.below(children.len());
        let (role, child) = &mut children[victim];
        kill(child);
        *child = site.start(role);
    }
    for (_, child) in &mut children {
        kill(child);
    }
    // A server that was shot may forget claims, which do not wait for its disk.
    let power = if strike.is_some() { Power::Cut } else { Power::Steady };
    judge(&record::read_all(&site.log), &standing(&site.store, open), power)
}

/// Where a run takes place, and how a child is started there.
pub(super) struct Site {
    pub(super) store: PathBuf,
    pub(super) log: PathBuf,
    child: &'static str,
    pub(super) patient: bool,
}

impl Site {
    pub(super) fn new(folder: &Path, child: &'static str) -> Self {
        let (store, log) = (folder.join("store"), folder.join("log"));
        let site = Site { store, log, child, patient: false };
        for folder in [&site.store, &site.log] {
            std::fs::create_dir_all(folder).expect("a folder for the run");
        }
        site
    }

    pub(super) fn start(&self, role: &str) -> Child {
        self.start_under(&[], role)
    }

    /// Starts a child with these words before its own.
    pub(super) fn start_under(&self, words: &[&str], role: &str) -> Child {
        let binary = std::env::current_exe().expect("this binary");
        let mut command = match words.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        if self.patient {
            command.env("GRISTMILL_CRASH_PATIENT", "yes");
        }
        command
            .args(["--exact", self.child, "--ignored", "--nocapture", "--test-threads=1"])
            .env("GRISTMILL_CRASH_ROLE", role)
            .env("GRISTMILL_CRASH_STORE", &self.store)
            .env("GRISTMILL_CRASH_LOG", &self.log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child process")
    }
}

/// Bytes of records that make a kill worth its while: a few dozen calls.
const WORTHWHILE: u64 = 3_000;
/// A machine so slow that this is not reached has other troubles.
const PATIENCE: Duration = Duration::from_secs(20);

impl Site {
    /// Waits until the children have written down enough since `seen` bytes;
    /// a busy machine would otherwise be killed before it did anything.
    fn wait_for_records(&self, seen: u64) -> u64 {
        let start = Instant::now();
        loop {
            let written: u64 = std::fs::read_dir(&self.log)
                .expect("the folder of logs")
                .filter_map(|entry| entry.ok()?.metadata().ok())
                .map(|metadata| metadata.len())
                .sum();
            if written >= seen + WORTHWHILE || start.elapsed() > PATIENCE {
                return written;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub(super) fn kill(child: &mut Child) {
    child.kill().expect("a child to kill");
    child.wait().expect("its end");
}

/// Everything the store holds.
pub(super) fn standing(folder: &Path, open: Open) -> Vec<Standing> {
    block_on(async {
        let store = open(folder).await;
        let mut request = ListRequest { limit: 1_000, ..ListRequest::default() };
        let mut found = Vec::new();
        loop {
            let page = store.list(request.clone()).await.expect("a page");
            found.extend(page.tasks.iter().map(|task| Standing {
                id: task.id.0,
                payload: String::from_utf8_lossy(&task.payload.bytes).parse().expect("a number"),
                failed: task.state == State::Failed,
            }));
            request.after = page.next;
            if request.after.is_none() {
                store.close().await.expect("closed");
                return found;
            }
        }
    })
}
