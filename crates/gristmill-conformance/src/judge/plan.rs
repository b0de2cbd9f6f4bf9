//! The queues of a run: one for each key policy and for each promise that a
//! setting changes, and what the judge must know of them.

use std::io;
use std::path::Path;
use std::time::Duration;

use gristmill_core::{
    Backoff, Claims, Declaration, Fair, Missed, OnDuplicate, Overlap, Per, QueueName, Rate, Result,
    Rule, ScheduleDeclaration, ScheduleName, SettingsPatch, Store, Unique,
};
use serde::{Deserialize, Serialize};

/// Where follow-ups go.
pub(crate) const FOLLOWED: &str = "followed";
/// Where the schedule's tasks go.
pub(crate) const TICKS: &str = "ticks";
/// The schedule that all schedulers fire.
pub(crate) const SCHEDULE: &str = "tick";
/// How often it fires.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// Slots of the queue that has them.
pub(crate) const SLOTS: u32 = 2;
/// Most tasks under lease on the queue that limits them.
pub(crate) const CONCURRENCY: u32 = 4;
/// Where what clients return is kept.
pub(crate) const RETURNING: &str = "returning";
/// Most attempts on the queue that has a limit.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// What the judge must know of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueRules {
    /// Its name.
    pub name: String,
    /// A put is a duplicate also of a task in flight.
    pub unique_active: bool,
    /// A duplicate changes the standing task.
    pub replaces: bool,
    /// Slots of a group.
    pub slots: Option<u32>,
    /// Most attempts.
    pub max_attempts: Option<u32>,
    /// A claim survives what a put survives.
    pub claims_durable: bool,
    /// Most pending tasks.
    pub capacity: Option<u64>,
    /// Most under lease at once.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// So many claimed in so many microseconds.
    #[serde(default)]
    pub rate: Option<(u32, u64)>,
    /// Most claimed at once.
    #[serde(default)]
    pub burst: Option<u32>,
    /// What it limits is meant of each of its groups.
    #[serde(default)]
    pub grouped: bool,
    /// Its groups take turns.
    #[serde(default)]
    pub fair: bool,
    /// For how many microseconds after a put its key is kept out.
    #[serde(default)]
    pub unique_for: Option<u64>,
    /// What handlers return is kept.
    #[serde(default)]
    pub keeps_results: bool,
}

/// What the judge must know of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The store, without a password.
    pub store: String,
    /// What the run's dice began with.
    pub seed: u64,
    /// How long a lease lasts unless it is extended.
    pub lease_ms: u64,
    /// The queues.
    pub queues: Vec<QueueRules>,
    /// For how long claims may pass by what another process puts before them.
    pub passes_by_ms: u64,
    /// Whether capacity is never overrun.
    pub exact_capacity: bool,
}

/// The file a plan is kept in, beside the journals.
const FILE: &str = "plan.json";

impl Plan {
    /// What is declared by [`declare`], for a store with these differences.
    #[must_use]
    pub fn new(store: &dyn Store, url: &str, seed: u64, lease: Duration) -> Self {
        let can = store.capabilities();
        let queues = settings(lease).into_iter().map(|(name, settings)| QueueRules {
            name: name.to_owned(),
            unique_active: settings.unique == Some(Unique::Active),
            replaces: settings.on_duplicate.is_some_and(|what| what != OnDuplicate::Skip),
            slots: settings.slots.flatten(),
            max_attempts: settings.max_attempts.flatten(),
            claims_durable: settings.claims == Some(Claims::Durable)
                || settings.slots.flatten().is_some()
                || settings.concurrency.flatten().is_some()
                || settings.rate.flatten().is_some(),
            capacity: settings.capacity.flatten(),
            concurrency: settings.concurrency.flatten(),
            rate: settings.rate.flatten().map(|rate| (rate.tasks, micros(rate.per))),
            burst: settings.burst.flatten(),
            grouped: [settings.concurrency_per, settings.rate_per].contains(&Some(Per::Group)),
            fair: settings.fair == Some(Fair::Group),
            unique_for: settings.unique_for.flatten().map(micros),
            keeps_results: settings.keep_result.is_some(),
        });
        Plan {
            store: url.to_owned(),
            seed,
            lease_ms: u64::try_from(lease.as_millis()).unwrap_or(u64::MAX),
            queues: queues.collect(),
            passes_by_ms: u64::try_from(can.passes_by.as_millis()).unwrap_or(u64::MAX),
            exact_capacity: can.exact_capacity,
        }
    }

    /// What is known of this queue.
    #[must_use]
    pub fn queue(&self, name: &str) -> Option<&QueueRules> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// Whether a put that was a duplicate may stand by itself later, because the task
    /// that stood for it did not run after its commit.
    pub(crate) fn puts_again(&self) -> bool {
        self.store.starts_with("postgres")
    }

    /// Keeps it beside the journals.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(FILE), serde_json::to_vec_pretty(self)?)
    }

    /// Reads it back.
    ///
    /// # Errors
    /// When it is not there or is none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(folder.join(FILE))?)?)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// The queues that producers put to, and what is special about each.
fn settings(lease: Duration) -> Vec<(&'static str, SettingsPatch)> {
    let base = SettingsPatch {
        lease: Some(lease),
        // A task whose workers keep being killed must not end in failed: only
        // those that a worker failed may.
        max_attempts: Some(None),
        backoff: Some(Backoff {
            base: Duration::from_millis(10),
            cap: Duration::from_millis(60),
            jitter: true,
        }),
        ..SettingsPatch::default()
    };
    let with = |change: fn(&mut SettingsPatch)| {
        let mut settings = base.clone();
        change(&mut settings);
        settings
    };
    vec![
        ("plain", base.clone()),
        ("replace", with(|s| s.on_duplicate = Some(OnDuplicate::Replace))),
        (
            "postpone",
            with(|s| {
                s.on_duplicate = Some(OnDuplicate::Postpone);
                s.postpone_max = Some(Some(Duration::from_millis(400)));
            }),
        ),
        ("active", with(|s| s.unique = Some(Unique::Active))),
        ("slots", with(|s| s.slots = Some(Some(SLOTS)))),
        ("fenced", with(|s| s.claims = Some(Claims::Durable))),
        ("limited", with(|s| s.max_attempts = Some(Some(MAX_ATTEMPTS)))),
        ("bounded", with(|s| s.capacity = Some(Some(40)))),
        ("abreast", with(|s| s.concurrency = Some(Some(CONCURRENCY)))),
        (
            "paced",
            with(|s| {
                s.rate = Some(Some(Rate::new(80, Duration::from_secs(1))));
                s.burst = Some(Some(4));
            }),
        ),
        (
            "abreast_groups",
            with(|s| {
                s.concurrency = Some(Some(CONCURRENCY / 2));
                s.concurrency_per = Some(Per::Group);
            }),
        ),
        (
            "paced_groups",
            with(|s| {
                s.rate = Some(Some(Rate::new(30, Duration::from_secs(1))));
                s.burst = Some(Some(3));
                s.rate_per = Some(Per::Group);
            }),
        ),
        ("turns", with(|s| s.fair = Some(Fair::Group))),
        ("throttled", with(|s| s.unique_for = Some(Some(Duration::from_millis(600))))),
        (RETURNING, with(|s| s.keep_result = Some(Some(Duration::from_secs(3600))))),
        (FOLLOWED, base.clone()),
        (TICKS, base),
    ]
}

/// The names of the queues that producers put to.
pub(crate) fn put_to() -> Vec<&'static str> {
    let all = settings(Duration::from_secs(1)).into_iter().map(|(name, _)| name);
    all.filter(|name| ![FOLLOWED, TICKS].contains(name)).collect()
}

/// The names of all queues, which workers take from.
pub(crate) fn worked() -> Vec<&'static str> {
    settings(Duration::from_secs(1)).into_iter().map(|(name, _)| name).collect()
}

/// Declares the queues and the schedule of a run.
///
/// # Errors
/// What the store says.
pub async fn declare(store: &dyn Store, lease: Duration) -> Result<()> {
    for (name, settings) in settings(lease) {
        let declaration = Declaration { settings, ..Declaration::new(queue_name(name)) };
        store.declare_queue(declaration).await?;
    }
    let schedule = ScheduleDeclaration {
        name: ScheduleName::new(SCHEDULE).expect("a name"),
        queue: queue_name(TICKS),
        rule: Rule::Every(EVERY),
        zone: "UTC".to_owned(),
        payload: Some(gristmill_core::Payload::raw("tick")),
        options: Default::default(),
        missed: Missed::All,
        overlap: Overlap::Allow,
    };
    store.declare_schedule(schedule).await.map(drop)
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}
