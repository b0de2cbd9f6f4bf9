//! A queue's settings: one table that gives the full set, the partial set of
//! a declaration or override, and the defaults.

use std::time::Duration;

pub use crate::setting_values::{
    Backoff, Binding, Claims, Durability, Fair, OnDuplicate, Per, Rate, Unique,
};

/// Why settings cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);

macro_rules! settings {
    ($( $(#[$doc:meta])* $name:ident ( $($word:literal),+ ) : $type:ty = $default:expr ; )+) => {
        /// A queue's settings in force.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Settings { $( $(#[$doc])* pub $name: $type, )+ }

        impl Default for Settings {
            fn default() -> Self {
                Settings { $( $name: $default, )+ }
            }
        }

        /// Some of a queue's settings: a declaration or an override.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct SettingsPatch { $( $(#[$doc])* pub $name: Option<$type>, )+ }

        impl SettingsPatch {
            /// Puts what is said here over `settings`.
            pub fn apply_to(&self, settings: &mut Settings) {
                $( if let Some(value) = &self.$name { settings.$name = value.clone(); } )+
            }

            /// Puts what is said here over another patch.
            pub fn merge_into(&self, other: &mut SettingsPatch) {
                $( if self.$name.is_some() { other.$name = self.$name.clone(); } )+
            }

            /// Whether nothing is said.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                *self == SettingsPatch::default()
            }
        }

        impl Settings {
            /// Every setting's name.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($name) ),+];

            /// Every word that people say of settings: of one with parts, a word each.
            pub const WORDS: &'static [&'static str] = &[$( $($word),+ ),+];

            /// Which settings differ, with both values in words.
            #[must_use]
            pub fn differences(&self, other: &Settings) -> Vec<(&'static str, String, String)> {
                let mut found = Vec::new();
                $( if self.$name != other.$name {
                    found.push((
                        stringify!($name),
                        format!("{:?}", self.$name),
                        format!("{:?}", other.$name),
                    ));
                } )+
                found
            }
        }
    };
}

/// The table of a queue's settings: `with_settings!(made)` hands it to the macro `made`, so
/// that whoever reads, writes or shows settings has all of them and names none. A setting is
/// its name in code and in stores; the words by which people say it, several where it has
/// parts; its type and its default.
#[macro_export]
macro_rules! with_settings {
    ($made:ident) => {
        $made! {
            /// How long a claim lasts unless extended.
            lease("lease"): Duration = Duration::from_secs(60);
            /// How long a handler may take.
            timeout("timeout"): Duration = Duration::from_secs(15 * 60);
            /// Attempts before a task fails; `None` is without limit.
            max_attempts("max_attempts"): Option<u32> = Some(5);
            /// The wait after an error.
            backoff("backoff.base", "backoff.cap", "backoff.jitter"): Backoff = Backoff::default();
            /// How long a caller's id is remembered.
            id_window("id_window"): Duration = Duration::from_secs(24 * 3600);
            /// How long done and resolved tasks are kept for reading; `None` is not.
            keep_done("keep_done"): Option<Duration> = None;
            /// How long what a handler returned is kept, also where done tasks are not;
            /// `None` is as long as its done task.
            keep_result("keep_result"): Option<Duration> = None;
            /// How long failed tasks are kept; `None` is for ever.
            keep_failed("keep_failed"): Option<Duration> = None;
            /// What an acknowledgement survives.
            durability("durability"): Durability = Durability::Full;
            /// What a claim survives.
            claims("claims"): Claims = Claims::Async;
            /// What counts as a duplicate.
            unique("unique"): Unique = Unique::Pending;
            /// What a duplicate does.
            on_duplicate("on_duplicate"): OnDuplicate = OnDuplicate::Skip;
            /// How far postponing may go past the first put; `None` is ten delays.
            postpone_max("postpone_max"): Option<Duration> = None;
            /// For so long after the last put of a key another one is a duplicate, also when
            /// its task is gone; `None` is not at all.
            unique_for("unique_for"): Option<Duration> = None;
            /// Most pending tasks; `None` is without limit.
            capacity("capacity"): Option<u64> = None;
            /// Tasks a processor claims at once.
            batch_size("batch_size"): u32 = 100;
            /// Tell handlers how many of their group run.
            count("count"): bool = false;
            /// Most of a group that may run at once, each with a number below it.
            slots("slots"): Option<u32> = None;
            /// Most tasks under lease at once, over all workers; `None` is without limit.
            concurrency("concurrency"): Option<u32> = None;
            /// Whether that is of the queue, or of each group.
            concurrency_per("concurrency_per"): Per = Per::Queue;
            /// Most tasks claimed in a time, over all workers; `None` is without limit.
            rate("rate"): Option<Rate> = None;
            /// Most at once after a pause; `None` is what the rate brings in a second.
            burst("burst"): Option<u32> = None;
            /// Whether the rate is of the queue, or of each group.
            rate_per("rate_per"): Per = Per::Queue;
            /// Between whom claims take turns.
            fair("fair"): Fair = Fair::None;
            /// Least processors the manager leaves on this queue.
            processors_min("processors.min"): u32 = 0;
            /// Most processors on this queue; `None` is without limit.
            processors_max("processors.max"): Option<u32> = None;
            /// This queue's share when processors are short.
            processors_weight("processors.weight"): u32 = 1;
            /// The manager's target: drained within this time.
            drain_within("drain_within"): Option<Duration> = None;
            /// Alert when a ready task waited longer.
            max_wait("max_wait"): Option<Duration> = None;
            /// The table this queue's keys refer to.
            bind("bind.table", "bind.column"): Option<Binding> = None;
        }
    };
}

with_settings!(settings);

/// Shortest lease: below it a heartbeat could not be sent in time.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// Longest lease, timeout, backoff or window.
pub const SPAN_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Most tasks that a limit can let run at once: a claim counts what is under lease.
pub const CONCURRENCY_MAX: u32 = 100_000;

/// Largest burst of a rate.
pub const BURST_MAX: u32 = 1_000_000;

/// Why a lease cannot have this length, if so.
#[must_use]
pub fn lease_fault(lease: Duration) -> Option<String> {
    (lease < LEASE_MIN || lease > SPAN_MAX).then(|| {
        format!("a lease of {lease:?} is not possible: it is from {LEASE_MIN:?} to a year")
    })
}

impl Settings {
    /// Whether a claim takes one task at a time.
    #[must_use]
    pub const fn one_at_a_time(&self) -> bool {
        self.count || self.slots.is_some()
    }

    /// Whether what handlers return is kept of every task.
    #[must_use]
    pub const fn keeps_results(&self) -> bool {
        self.keep_result.is_some() || self.keep_done.is_some()
    }

    /// Whether a claim must survive a power cut before it is answered: where its
    /// number is a fence, where a slot could be held twice, and where more could
    /// run than may.
    #[must_use]
    pub fn claims_are_durable(&self) -> bool {
        self.claims == Claims::Durable || self.slots.is_some() || self.is_limited()
    }

    /// Whether claims take turns between groups.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        self.fair == Fair::Group
    }

    /// Whether a claim may have to leave tasks that are due, because of others.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.rate.is_some() || self.is_fair()
    }

    /// Whether tasks under lease are counted by group.
    #[must_use]
    pub fn counts_groups(&self) -> bool {
        self.concurrency.is_some() && self.concurrency_per == Per::Group
    }

    /// Whether each group has a rate of its own.
    #[must_use]
    pub fn rates_groups(&self) -> bool {
        self.rate.is_some() && self.rate_per == Per::Group
    }

    /// Whether claims look at groups, so that tasks must be found by them.
    #[must_use]
    pub fn is_grouped(&self) -> bool {
        self.slots.is_some() || self.counts_groups() || self.rates_groups() || self.is_fair()
    }

    /// Whether the end of an attempt makes room for another task.
    #[must_use]
    pub const fn ends_make_room(&self) -> bool {
        self.slots.is_some() || self.concurrency.is_some()
    }

    /// Checks what no single value shows.
    ///
    /// # Errors
    /// The first setting that is out of range or contradicts another, in one
    /// sentence.
    pub fn check(&self) -> Result<(), SettingsError> {
        let fail = |why: String| Err(SettingsError(why));
        let spans = [
            ("lease", Some(self.lease)),
            ("timeout", Some(self.timeout)),
            ("backoff.base", Some(self.backoff.base)),
            ("backoff.cap", Some(self.backoff.cap)),
            ("id_window", Some(self.id_window)),
            ("keep_done", self.keep_done),
            ("keep_result", self.keep_result),
            ("keep_failed", self.keep_failed),
            ("postpone_max", self.postpone_max),
            ("unique_for", self.unique_for),
            ("drain_within", self.drain_within),
            ("max_wait", self.max_wait),
        ];
        for (name, span) in spans {
            if span.is_some_and(|span| span > SPAN_MAX) {
                return fail(format!("{name} is over a year"));
            }
        }
        if self.lease < LEASE_MIN {
            return fail(format!("lease is {:?}, at least {LEASE_MIN:?} is needed", self.lease));
        }
        if self.timeout.is_zero() {
            return fail("timeout is zero: every handler would be cancelled at once".to_owned());
        }
        if self.max_attempts == Some(0) {
            return fail("max_attempts is 0: no task could ever run; say 1 or more".to_owned());
        }
        if self.capacity == Some(0) {
            return fail("capacity is 0: no task could ever be put; say 1 or more".to_owned());
        }
        if self.batch_size == 0 || self.batch_size > 1_000 {
            return fail(format!("batch_size is {}, from 1 to 1000 is possible", self.batch_size));
        }
        if self.slots.is_some_and(|n| n == 0 || n > 10_000) {
            return fail("slots must be from 1 to 10000".to_owned());
        }
        if self.concurrency.is_some_and(|n| n == 0 || n > CONCURRENCY_MAX) {
            return fail(format!("concurrency must be from 1 to {CONCURRENCY_MAX}"));
        }
        if self.concurrency.is_some() && self.slots.is_some() {
            return fail(
                "concurrency and slots both limit what runs at once: say one of them".to_owned(),
            );
        }
        if let Some(fault) = self.rate.and_then(Rate::fault) {
            return fail(fault);
        }
        if self.burst.is_some_and(|n| n == 0 || n > BURST_MAX) {
            return fail(format!("burst must be from 1 to {BURST_MAX}"));
        }
        if self.burst.is_some() && self.rate.is_none() {
            return fail(
                "burst is said of a rate, and there is none: say both or neither".to_owned(),
            );
        }
        if let Some((rate, burst)) = self.rate.zip(self.burst)
            && u128::from(burst) * rate.per.as_micros()
                > SPAN_MAX.as_micros() * u128::from(rate.tasks)
        {
            return fail("burst is more than the rate brings in a year".to_owned());
        }
        if self.is_fair() && self.slots.is_some() {
            return fail("a queue with slots cannot be fair: say concurrency instead".to_owned());
        }
        if self.rate.is_some() && self.slots.is_some() {
            return fail(
                "a queue with slots cannot have a rate: say concurrency instead".to_owned(),
            );
        }
        if self.processors_max.is_some_and(|max| max < self.processors_min) {
            return fail("processors: the maximum is below the minimum".to_owned());
        }
        if self.processors_weight == 0 {
            return fail("processors: the weight is 0".to_owned());
        }
        if self.unique == Unique::Active && self.on_duplicate != OnDuplicate::Skip {
            return fail(format!(
                "on_duplicate: {} needs unique: pending (a running task cannot be changed)",
                self.on_duplicate
            ));
        }
        if self.unique_for.is_some_and(|window| window.is_zero()) {
            return fail("unique_for is zero: say how long, or none".to_owned());
        }
        if self.unique_for.is_some() && self.on_duplicate != OnDuplicate::Skip {
            return fail(format!(
                "unique_for needs on_duplicate: skip ({} would change the task that it lets run)",
                self.on_duplicate
            ));
        }
        if let Some(bind) = &self.bind {
            for (what, name) in [("table", &bind.table), ("column", &bind.column)] {
                if name.is_empty() || name.len() > 128 || name.contains('\0') {
                    return fail(format!("bind: the {what} name is empty, too long or has a NUL"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_accepted() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn claims_are_durable_where_said_or_where_something_is_limited() {
        let durable = |claims, slots, concurrency| {
            Settings { claims, slots, concurrency, ..Settings::default() }.claims_are_durable()
        };
        assert!(!durable(Claims::Async, None, None));
        assert!(durable(Claims::Durable, None, None) && durable(Claims::Async, Some(3), None));
        assert!(durable(Claims::Async, None, Some(3)));
    }

    #[test]
    fn a_patch_changes_only_what_it_says() {
        let mut settings = Settings::default();
        let patch = SettingsPatch { capacity: Some(Some(7)), ..SettingsPatch::default() };
        patch.apply_to(&mut settings);
        let differences = Settings::default().differences(&settings);
        assert_eq!(differences, vec![("capacity", "None".to_owned(), "Some(7)".to_owned())]);
    }

    #[test]
    fn contradictions_are_named() {
        let settings = Settings {
            unique: Unique::Active,
            on_duplicate: OnDuplicate::Replace,
            ..Settings::default()
        };
        let error = settings.check().expect_err("contradiction");
        assert!(error.to_string().contains("unique: pending"), "{error}");
        let throttled = |seconds, on_duplicate| {
            let unique_for = Some(Duration::from_secs(seconds));
            let settings = Settings { unique_for, on_duplicate, ..Settings::default() };
            settings.check().map_err(|error| error.to_string())
        };
        assert!(throttled(0, OnDuplicate::Skip).is_err_and(|e| e.contains("say how long")));
        assert!(throttled(9, OnDuplicate::Postpone).is_err_and(|e| e.contains("postpone would")));
        assert!(throttled(9, OnDuplicate::Replace).is_err_and(|e| e.contains("duplicate: skip")));
        assert_eq!(throttled(9, OnDuplicate::Skip), Ok(()));
        let limits = |slots, concurrency| {
            let settings = Settings { slots, concurrency, ..Settings::default() };
            settings.check().map_err(|error| error.to_string())
        };
        assert!(limits(Some(2), Some(2)).is_err_and(|e| e.contains("say one of them")));
        assert!(limits(None, Some(0)).is_err_and(|e| e.contains("from 1 to")));
        assert_eq!(limits(None, Some(CONCURRENCY_MAX)), Ok(()));
        let rated = |tasks, micros, burst, slots| {
            let rate = Some(Rate::new(tasks, Duration::from_micros(micros)));
            let rate = rate.filter(|_| micros > 0);
            let settings = Settings { rate, burst, slots, ..Settings::default() };
            settings.check().map_err(|error| error.to_string())
        };
        assert!(rated(0, 1, None, None).is_err_and(|e| e.contains("pause the queue")));
        assert!(rated(2, 1, None, None).is_err_and(|e| e.contains("no limit")));
        assert!(rated(1, 0, Some(1), None).is_err_and(|e| e.contains("both or neither")));
        assert!(rated(1, 9, Some(0), None).is_err_and(|e| e.contains("from 1 to")));
        assert!(rated(1, 4_000_000_000_000, Some(9), None).is_err_and(|e| e.contains("in a year")));
        assert!(rated(1, 9, None, Some(2)).is_err_and(|e| e.contains("concurrency instead")));
        assert_eq!(rated(50, 1_000_000, Some(1), None), Ok(()));
        let fair = Settings { fair: Fair::Group, slots: Some(2), ..Settings::default() };
        assert!(fair.check().is_err_and(|e| e.to_string().contains("cannot be fair")));
    }
}
