//! The behaviours, grouped by rule and verb.
//!
//! A behaviour is an async function of a [`Fixture`] that panics where the
//! store is wrong. Their one list (`list.rs`) is expanded twice: into
//! [`behaviours`], and by [`suite!`](crate::suite) into the tests of a store.
//! A function that is missing there is dead code, which the compiler reports.

#[macro_use]
mod list;
mod rule_01_durable;
mod rule_02_leases;
mod rule_03_fenced;
mod rule_04_attempts;
mod rule_04_expiry;
mod rule_04_own_settings;
mod rule_05_order;
mod rule_06_duplicates;
mod rule_06_keys;
mod rule_06_operator;
mod rule_06_races;
mod rule_06_window;
mod rule_07_answers;
mod rule_07_follow_ups;
mod rule_07_ids;
mod rule_07_payloads;
mod rule_08_bounded;
mod rule_09_cost;
mod rule_10_ahead;
mod rule_10_clock;
mod rule_10_time;
mod rule_11_kept;
mod rule_12_same;
mod rule_13_deadline;
mod verb_checkpoint;
mod verb_claim;
mod verb_document;
mod verb_endings;
mod verb_fair;
mod verb_import;
mod verb_limit;
mod verb_list;
mod verb_operate;
mod verb_progress;
mod verb_queue;
mod verb_rate;
mod verb_roles;
mod verb_schedule;
mod verb_wait;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::Harness;
use crate::fixture::Fixture;

/// One behaviour every store must show.
#[derive(Clone, Copy)]
pub struct Behaviour {
    /// Its name, which begins with its rule (`rule_03_…`) or verb (`verb_…`).
    pub name: &'static str,
    /// The number of the rule it shows; none for a verb that no rule names.
    pub rule: Option<u8>,
    /// Tries it on a fresh store of the harness, and panics when it does not
    /// hold.
    pub run: fn(Arc<dyn Harness>) -> Running,
}

/// A behaviour being tried.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

impl std::fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The number in `rule_NN_…`.
fn rule_of(name: &str) -> Option<u8> {
    name.strip_prefix("rule_")?.get(..2)?.parse().ok()
}

#[doc(hidden)]
#[macro_export]
macro_rules! collect_behaviours {
    (() $( $file:ident :: { $( $name:ident ),+ $(,)? } )+) => {
        /// All behaviours, in the order of rules and verbs.
        #[must_use]
        pub fn behaviours() -> Vec<Behaviour> {
            vec![ $($( Behaviour {
                name: stringify!($name),
                rule: rule_of(stringify!($name)),
                run: |harness| Box::pin(async move {
                    let mut fixture = Fixture::new(harness).await;
                    $file::$name(&mut fixture).await;
                    fixture.audit().await;
                }),
            }, )+)+ ]
        }
    };
}

for_each_behaviour!(collect_behaviours!());

/// Makes one test of every behaviour. The expression is evaluated in each test
/// and must give a [`Harness`](crate::Harness).
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::for_each_behaviour! { test_behaviours!($harness) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! test_behaviours {
    (($harness:expr) $( $file:ident :: { $( $name:ident ),+ $(,)? } )+) => {
        $($(
            #[test]
            fn $name() {
                $crate::run(stringify!($name), ::std::sync::Arc::new($harness));
            }
        )+)+
    };
}
