//! Random histories: the same steps on the memory store and on the store under
//! test, with every answer compared, and everything that can be read compared
//! after each step.
//!
//! A step names what it acts on by how recent it is (`step`); on the way it
//! becomes a call with everything said (`resolve`, `call`). Both stores
//! have clocks that stand at the same instant and get the same tokens, so that
//! ids, times and backoffs are equal to the last digit. A history that fails
//! is shortened as far as it still fails, and printed step by step.

mod call;
mod play;
mod resolve;
mod seen;
mod step;
mod strategy;

use proptest::test_runner::{
    Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner,
};

use crate::Harness;
pub use seen::Seen;
use step::Step;

/// Longest history.
const STEPS: usize = 60;
/// Histories in one short run.
const SHORT: u32 = 200;
/// Where the short form's histories begin.
const SEED: u64 = 0x6772_6973_746d_696c;
/// How many times more in a long one.
const LONG: u32 = 20;
/// Seeds of histories that failed once, tried first from then on. One file for
/// all stores: what one got wrong, another may.
const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/history.txt");

/// How many histories to try: a few hundred, and twenty times as many when
/// `GRISTMILL_LONG` is set.
#[must_use]
pub fn cases() -> u32 {
    if std::env::var_os("GRISTMILL_LONG").is_some() { SHORT * LONG } else { SHORT }
}

/// Plays random histories on stores of this harness and on the memory store,
/// and panics with the shortest one found on which they differ. Says what the
/// histories met.
///
/// # Panics
/// When the stores differ, or the store breaks what must always be true.
pub fn agree(harness: &dyn Harness, cases: u32) -> Seen {
    let config = Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(REGRESSIONS))),
        max_shrink_iters: 5_000,
        // The short form plays the same histories each time, so that a change
        // is judged by what it changed; the long form looks for new ones.
        rng_seed: if cases > SHORT { RngSeed::Random } else { RngSeed::Fixed(SEED) },
        ..Config::default()
    };
    compare(harness, config).unwrap_or_else(|difference| panic!("{difference}"))
}

/// The first difference found, neither shortened nor kept: for trying the
/// histories themselves on stores that are known to be wrong.
#[must_use]
pub fn difference(harness: &dyn Harness, cases: u32) -> Option<String> {
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    compare(harness, config).err()
}

fn compare(harness: &dyn Harness, config: Config) -> Result<Seen, String> {
    let seen = std::cell::RefCell::new(Seen::default());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = TestRunner::new(config).run(&strategy::histories(STEPS), |steps| {
        let mut seen = seen.borrow_mut();
        runtime.block_on(play::play(harness, &steps, &mut seen)).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => Ok(seen.into_inner()),
        Err(TestError::Fail(why, steps)) => Err(format!("{}\n{why}", told(&steps))),
        Err(TestError::Abort(why)) => Err(format!("the histories could not be tried: {why}")),
    }
}

/// The history, a line a step.
fn told(steps: &[Step]) -> String {
    let lines = steps.iter().enumerate().map(|(n, step)| format!("{:4}. {step:?}", n + 1));
    let lines: Vec<String> = lines.collect();
    format!("the stores differ after these steps:\n{}", lines.join("\n"))
}
