//! The suite under test: a store with one defect must fail the behaviours of
//! the rule it breaks, and the same store without any must pass all.

mod bank;
mod defect;
mod flawed;

use std::sync::{Arc, Once};
use std::time::Duration;

use gristmill_conformance::{Behaviour, Failure, behaviours, check, history};

use defect::{Defect, for_each_defect};
use flawed::FlawedHarness;

/// A behaviour that a defect makes wait for ever is caught by waiting less.
const LIMIT: Duration = Duration::from_secs(30);
const THREAD: &str = "flawed";

/// Keeps expected panics off the screen: those of threads with our name.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() != Some(THREAD) {
                others(panic);
            }
        }));
    });
}

fn try_on(defect: Option<Defect>, behaviour: Behaviour) -> Result<(), Failure> {
    silence();
    check(behaviour, Arc::new(FlawedHarness::new(defect)), LIMIT, THREAD)
}

/// The behaviours that a store with this defect does not show.
fn failing(defect: Option<Defect>) -> Vec<(Behaviour, Failure)> {
    let all = behaviours().into_iter();
    all.filter_map(|behaviour| Some((behaviour, try_on(defect, behaviour).err()?))).collect()
}

/// One behaviour is enough; the bank's table has them all.
fn is_caught(defect: Defect) {
    if defect.shown_by().is_empty() {
        // It takes more than a behaviour: see the bank.
        return;
    }
    let of_its_rule = |behaviour: &Behaviour| behaviour.name.starts_with(defect.shown_by());
    let mut tried = behaviours().into_iter().filter(of_its_rule);
    let found = tried.find_map(|behaviour| {
        let failure = try_on(Some(defect), behaviour).err()?;
        // One that fails on the store inside as well has not caught the defect.
        try_on(None, behaviour).is_ok().then_some((behaviour, failure))
    });
    println!("{defect:?} is caught by {found:#?}");
    assert!(found.is_some(), "{defect:?} is caught by no behaviour named {}_…", defect.shown_by());
}

/// Otherwise the defects below would be caught for the wrapper's own sake.
#[test]
fn without_a_defect_all_behaviours_hold() {
    let failing = failing(None);
    assert!(failing.is_empty(), "{failing:#?}");
}

/// The histories find what the behaviours find, unless it takes two at once.
#[test]
fn histories_differ_on_every_defect_that_one_caller_can_see() {
    silence();
    let differs = |defect, cases| history::difference(&FlawedHarness::new(defect), cases).is_some();
    let tried = std::thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
        let alone = Defect::ALL
            .iter()
            .filter(|defect| !defect.needs_company() && !defect.is_beyond_histories());
        let missed: Vec<Defect> =
            alone.filter(|defect| !differs(Some(**defect), 2_000)).copied().collect();
        (missed, differs(None, 200))
    });
    let (missed, without) = tried.expect("a thread").join().expect("no panic");
    assert_eq!(missed, []);
    assert!(!without, "they differ without a defect as well");
}

macro_rules! tests {
    ($( $name:ident )+) => {
        #[allow(non_snake_case, reason = "each test is named after its defect")]
        mod caught {
            $( #[test] fn $name() { super::is_caught(super::Defect::$name); } )+
        }
    };
}

for_each_defect!(tests);
