//! Every step of a put, a settlement and a checkpoint fails in turn, alone and
//! beside another process; then the power is cut. Whatever was answered is
//! still true.

mod shaky;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_conformance::short::{claim_request, name, request, task};
use gristmill_core::{
    ClaimRequest, Claims, Declaration, Durability, ListRequest, ManualClock, NewTask, Outcome,
    PutAnswer, Result, SettingsPatch, SettleAnswer, Settlement, Store, StoreError, TaskId, Token,
};
use shaky::{Fault, Left, Shaky, World};
use tempfile::TempDir;

use crate::disk::{Disk, Step};
use crate::spool::Spool;
use crate::{FilesStore, Options};

/// How often a call is repeated before the store counts as gone for good.
const REPEATS: usize = 4;

/// Who is there beside the process whose disk fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    Alone,
    Another,
}

/// How much happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// One task at a time, and no checkpoint.
    Quiet,
    /// One task at a time, and a checkpoint nearly every turn: its few files
    /// are synced one by one.
    Busy,
    /// Many tasks at a time: a checkpoint syncs the whole file system.
    Heavy,
}

impl Load {
    fn tasks(self) -> usize {
        if self == Load::Heavy { 70 } else { 1 }
    }

    fn intent_bytes(self) -> u64 {
        match self {
            Load::Quiet => Options::default().intent_bytes,
            Load::Busy => 900,
            Load::Heavy => 6_000,
        }
    }
}

/// One story: a folder, its handles, and what was answered.
struct Story {
    folder: TempDir,
    world: Arc<World>,
    handles: Vec<FilesStore>,
    clock: Arc<ManualClock>,
    load: Load,
    /// Payloads by task, as answered.
    standing: BTreeMap<TaskId, String>,
    /// The caller's id by task, as answered.
    ids: BTreeMap<String, TaskId>,
    /// Answered as done.
    ended: Vec<TaskId>,
}

fn folder() -> TempDir {
    // Nothing here rests on a real sync, and this is faster.
    let memory = std::path::Path::new("/dev/shm");
    let within = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(within).expect("a folder")
}

impl Story {
    async fn begin(company: Company, load: Load) -> Self {
        let mut story = Story {
            folder: folder(),
            world: Arc::new(World::default()),
            handles: Vec::new(),
            clock: Arc::new(ManualClock::default()),
            load,
            standing: BTreeMap::new(),
            ids: BTreeMap::new(),
            ended: Vec::new(),
        };
        story.open();
        if company == Company::Another {
            story.open();
        }
        let queue = Declaration::new(name("q"));
        story.handle(0).declare_queue(queue).await.expect("declared");
        story.put(0, "first").await;
        story
    }

    fn open(&mut self) {
        let disk = Shaky { world: self.world.clone(), handle: self.handles.len() };
        let spool = Spool::on(&self.folder.path().join("spool"), Arc::new(disk));
        let intent_bytes = self.load.intent_bytes();
        let options = Options { clock: self.clock.clone(), intent_bytes, ..Options::default() };
        self.handles.push(FilesStore::open_spool(spool, options).expect("a store"));
    }

    fn handle(&self, at: usize) -> &FilesStore {
        self.handles.get(at).expect("a handle")
    }

    /// A put as careful callers make it: an unknown one is repeated.
    async fn put(&mut self, mut at: usize, what: &str) -> bool {
        let many = self.load.tasks();
        let text = |n: usize| format!("\"{what} {n}\"");
        let tasks = |n| NewTask { id: Some(format!("{what}-{n}")), ..task(&text(n)) };
        let mut written = false;
        for _ in 0..REPEATS {
            let tasks = (0..many).map(tasks).collect();
            match self.handle(at).put(request("q", tasks)).await {
                Ok(report) => {
                    for (n, answer) in report.answers.iter().enumerate() {
                        let (PutAnswer::Enqueued { id } | PutAnswer::Duplicate { id, .. }) = answer
                        else {
                            panic!("{answer:?}")
                        };
                        assert!(written || answer.is_enqueued(), "nothing was said to be written");
                        self.standing.insert(*id, text(n));
                        self.ids.insert(format!("{what}-{n}"), *id);
                    }
                    return true;
                }
                Err(error) => {
                    written |= !error.wrote_nothing();
                    at = self.other(at, &error);
                }
            }
        }
        false
    }

    /// Claims one task and settles it as done.
    async fn settle(&mut self, mut at: usize) -> bool {
        let claim = claim_request("q", 1);
        let token = claim.token;
        let Ok(claim) = self.handle(at).claim(claim).await else {
            return false;
        };
        let Some(task) = claim.tasks.first() else {
            return false;
        };
        for _ in 0..REPEATS {
            let settlement = Settlement::new(task.id, token, Outcome::Done);
            match self.handle(at).settle(vec![settlement]).await {
                Ok(answers) => {
                    let ended = |answer: &SettleAnswer| {
                        matches!(answer, SettleAnswer::Recorded { .. } | SettleAnswer::Gone)
                    };
                    if answers.first().is_some_and(ended) {
                        self.standing.remove(&task.id);
                        self.ended.push(task.id);
                    }
                    return true;
                }
                Err(error) => at = self.other(at, &error),
            }
            // From here on it may be gone or not.
            self.standing.remove(&task.id);
        }
        false
    }

    /// Where to repeat a call.
    fn other(&self, at: usize, _: &StoreError) -> usize {
        (at + 1) % self.handles.len()
    }

    /// What happens while steps fail.
    async fn middle(&mut self) {
        self.put(0, "second").await;
        self.settle(0).await;
        self.put(0, "third").await;
        self.settle(0).await;
        self.put(0, "fourth").await;
    }

    /// What happens afterwards: everybody goes on.
    async fn end(&mut self) -> Result<(), String> {
        let last = self.handles.len() - 1;
        for (n, what) in ["fifth", "sixth", "seventh"].into_iter().enumerate() {
            if !self.put(last, what).await {
                return Err(format!("the {what} put never succeeds"));
            }
            if n == 1 {
                self.settle(last).await;
            }
        }
        Ok(())
    }

    /// Cuts the power: nothing that was not synced is left, or some of it.
    async fn cuts(&self) -> Result<(), String> {
        for left in [Left::Synced, Left::All, Left::Bytes] {
            let cut = self.cut(left).await;
            cut.map_err(|why| format!("{left:?}: {why}"))?;
        }
        Ok(())
    }

    /// Cuts the power and asks for everything that was answered.
    async fn cut(&self, left: Left) -> Result<(), String> {
        let place = folder();
        let after = place.path().join("spool");
        self.world.cut(&self.folder.path().join("spool"), &after, left);
        let options = Options { clock: self.clock.clone(), ..Options::default() };
        let store = FilesStore::open(&after, options).map_err(|e| e.to_string())?;
        let page = store.list(ListRequest { limit: 10_000, ..ListRequest::default() });
        let found: BTreeMap<TaskId, String> = page
            .await
            .map_err(|e| e.to_string())?
            .tasks
            .into_iter()
            .map(|task| (task.id, String::from_utf8_lossy(&task.payload.bytes).into_owned()))
            .collect();
        for (id, payload) in &self.standing {
            if found.get(id) != Some(payload) {
                return Err(format!("{id} {payload} is {:?}", found.get(id)));
            }
        }
        if let Some(id) = self.ended.iter().find(|id| found.contains_key(id)) {
            return Err(format!("{id} was done and stands"));
        }
        for (id, first) in &self.ids {
            let again = NewTask { id: Some(id.clone()), ..task("0") };
            let again = store.put(request("q", vec![again])).await.map_err(|e| e.to_string())?;
            let reused = |answer: &PutAnswer| format!("{answer:?}").contains(&format!("{first:?}"));
            if !again.answers.first().is_some_and(reused) {
                return Err(format!("the id {id} of {first} is forgotten: {:?}", again.answers));
            }
        }
        Ok(())
    }
}

/// Lets the `nth` step fail; returns whether there was one, and what broke.
async fn play(company: Company, load: Load, fault: Fault, nth: usize) -> (bool, Option<String>) {
    let mut story = Story::begin(company, load).await;
    story.world.arm(0, nth, fault);
    story.middle().await;
    let failed = story.world.failed();
    if fault == Fault::Kill {
        if company == Company::Alone {
            story.handles.clear();
            let steps = story.world.steps();
            assert!(failed.is_none() || steps > 0);
            story.handles.push(reopened(&story, 1));
        } else {
            story.handles.remove(0);
        }
    }
    let mut outcome = story.cuts().await;
    if outcome.is_ok() {
        outcome = story.end().await;
    }
    if outcome.is_ok() {
        outcome = story.cuts().await;
    }
    let said = failed.clone().unwrap_or_default();
    let why = outcome.err().map(|why| format!("{company:?} {load:?} {said}: {why}"));
    (failed.is_some(), why)
}

fn reopened(story: &Story, handle: usize) -> FilesStore {
    let disk = Shaky { world: story.world.clone(), handle };
    let spool = Spool::on(&story.folder.path().join("spool"), Arc::new(disk));
    let options = Options { clock: story.clock.clone(), ..Options::default() };
    FilesStore::open_spool(spool, options).expect("a store")
}

/// Plays every `stride`th fault of every kind.
async fn play_all(load: Load, stride: usize) {
    let mut broken = Vec::new();
    let mut played = 0;
    for company in [Company::Alone, Company::Another] {
        for (shift, fault) in [Fault::Io, Fault::Full, Fault::Kill].into_iter().enumerate() {
            for nth in (shift..).step_by(stride) {
                let (failed, why) = play(company, load, fault, nth).await;
                broken.extend(why);
                if !failed {
                    break;
                }
                played += 1;
            }
        }
    }
    assert!(broken.is_empty(), "{} of {played}:\n{}", broken.len(), broken.join("\n"));
    assert!(played > 15, "only {played} faults were played");
}

#[tokio::test]
async fn a_durable_claim_is_a_fence_through_a_power_cut() {
    for (claims, expected) in [(Claims::Async, 1), (Claims::Durable, 2)] {
        let story = Story::begin(Company::Alone, Load::Quiet).await;
        let queue = Declaration {
            settings: SettingsPatch { claims: Some(claims), ..SettingsPatch::default() },
            ..Declaration::new(name("fenced"))
        };
        story.handle(0).declare_queue(queue).await.expect("declared");
        story.handle(0).put(request("fenced", vec![task("1")])).await.expect("put");
        let claim = || claim_request("fenced", 1);
        let first = story.handle(0).claim(claim()).await.expect("claimed");
        assert_eq!(first.tasks.first().map(|task| task.claims), Some(1));
        let place = folder();
        let after = place.path().join("spool");
        story.world.cut(&story.folder.path().join("spool"), &after, Left::Synced);
        story.clock.advance(std::time::Duration::from_secs(90));
        let options = Options { clock: story.clock.clone(), ..Options::default() };
        let store = FilesStore::open(&after, options).expect("a store");
        let again = store.claim(claim()).await.expect("claimed");
        assert_eq!(again.tasks.first().map(|task| task.claims), Some(expected), "{claims}");
    }
}

/// A task's file may be written over only once its end is on the disk: until then a
/// power cut brings it back.
#[tokio::test]
async fn what_ended_unsynced_comes_back_whole() {
    for nth in 0.. {
        let mut story = Story::begin(Company::Alone, Load::Quiet).await;
        let settings =
            SettingsPatch { durability: Some(Durability::Relaxed), ..SettingsPatch::default() };
        let queue = Declaration { settings, ..Declaration::new(name("relaxed")) };
        story.handle(0).declare_queue(queue).await.expect("declared");
        let long = format!("\"{}\"", "old ".repeat(99));
        story.handle(0).put(request("relaxed", vec![task(&long)])).await.expect("put");
        // Whoever leaves makes a checkpoint: from here on the file is all there is.
        story.handles.remove(0).close().await.expect("closed");
        story.handles.push(reopened(&story, 1));
        let token = Token::random().expect("random");
        let claim = ClaimRequest { token, ..claim_request("relaxed", 1) };
        let claimed = story.handle(0).claim(claim).await.expect("claimed");
        let old = claimed.tasks.first().expect("a task").id;
        let done = Settlement::new(old, token, Outcome::Done);
        story.handle(0).settle(vec![done]).await.expect("settled");
        story.world.arm(1, nth, Fault::Kill);
        let _ = story.handle(0).put(request("q", vec![task("\"new\"")])).await;
        for left in [Left::Synced, Left::All, Left::Bytes] {
            let place = folder();
            let after = place.path().join("spool");
            story.world.cut(&story.folder.path().join("spool"), &after, left);
            let options = Options { clock: story.clock.clone(), ..Options::default() };
            let store = FilesStore::open(&after, options).expect("a store");
            assert_eq!(store.set_aside().await.expect("looked"), Vec::<String>::new(), "{left:?}");
            if let Some(found) = store.get(old).await.expect("looked") {
                assert_eq!(found.payload.bytes, long.as_bytes(), "{left:?} step {nth}");
            }
        }
        if story.world.failed().is_none() {
            assert!(nth > 3, "a put takes more steps");
            return;
        }
    }
}

/// A disk on which the folder is moved away while the intent is synced.
#[derive(Debug)]
struct Moving {
    folder: std::path::PathBuf,
    armed: std::sync::atomic::AtomicBool,
}

impl Disk for Moving {
    fn step(&self, step: Step<'_>, act: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        if matches!(step, Step::SyncFile(_)) && self.armed.load(Ordering::Acquire) {
            std::fs::rename(&self.folder, self.folder.with_extension("bad"))?;
            std::fs::create_dir(&self.folder)?;
        }
        act()
    }
}

#[tokio::test]
async fn a_folder_replaced_during_a_put_leaves_its_outcome_unknown() {
    let place = folder();
    let path = place.path().join("spool");
    let disk = Arc::new(Moving { folder: path.clone(), armed: false.into() });
    let spool = Spool::on(&path, disk.clone());
    let store = FilesStore::open_spool(spool, Options::default()).expect("a store");
    store.declare_queue(Declaration::new(name("q"))).await.expect("declared");
    disk.armed.store(true, Ordering::Release);
    let answer = store.put(request("q", vec![task("1")])).await;
    assert!(matches!(answer, Err(StoreError::Unknown(_))), "{answer:?}");
    let left = std::fs::read_dir(&path).expect("the folder in its place").count();
    assert_eq!(left, 0, "nothing goes to the folder in its place");
}

#[tokio::test]
async fn answers_stay_true_when_a_step_fails_and_the_power_is_cut() {
    play_all(Load::Quiet, 5).await;
    play_all(Load::Busy, 13).await;
}

#[tokio::test]
#[ignore = "every step: long form"]
async fn answers_stay_true_whichever_step_fails() {
    play_all(Load::Quiet, 1).await;
    play_all(Load::Busy, 1).await;
}

#[tokio::test]
#[ignore = "every step of many files: long form"]
async fn answers_stay_true_whichever_step_of_many_fails() {
    play_all(Load::Heavy, 61).await;
}
