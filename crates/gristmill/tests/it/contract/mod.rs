//! Generated code: what it looks like, that it compiles, and that a worker runs
//! on it.

mod evolving;
mod golden;
mod handling;

/// What the generator makes of `queues.yaml`.
#[warn(clippy::pedantic)]
#[allow(unreachable_pub, reason = "as `include_contract!` has it")]
pub(crate) mod queues {
    include!("queues.rs.txt");
}
