//! What goes in and out, field by field: mirrors of the model, so that it can change
//! without breaking clients.

pub(crate) mod answer;
pub(crate) mod claim;
pub(crate) mod fields;
pub(crate) mod payload;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod settle;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod worker;
