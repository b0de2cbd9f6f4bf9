//! Running what was taken: the tasks of a claim, who calls their handler, and who
//! sees to it that it ends.

pub(crate) mod attempt;
pub(crate) mod hand;
pub(crate) mod inline;
pub(crate) mod overseer;
pub(crate) mod runner;
