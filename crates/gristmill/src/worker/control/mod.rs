//! Starting, changing, watching and stopping a worker.

pub(crate) mod abandoned;
pub(crate) mod crew;
pub(crate) mod cycles;
pub(crate) mod follower;
pub(crate) mod handle;
pub(crate) mod left;
pub(crate) mod orders;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod reporter;
pub(crate) mod shared;
pub(crate) mod stop;
