//! Taking work: which queue a processor looks at next, what it may take of it, and
//! when it has to wait.

pub(crate) mod gate;
pub(crate) mod look;
pub(crate) mod processor;
pub(crate) mod queues;
pub(crate) mod rotation;
pub(crate) mod served;
