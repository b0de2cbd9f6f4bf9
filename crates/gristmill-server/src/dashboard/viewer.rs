//! Who looks at the pages, and what they may do there: the one place that says so.

use crate::access::{Caller, Scope};
use crate::problem::{Answer, FORBIDDEN, Problem};
use crate::service::Service;

/// Who looks.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    /// Whether they may change anything: pages show no button and no form otherwise, and
    /// what is sent all the same is refused.
    pub(crate) may_act: bool,
    /// The name that stands beside what they do.
    pub(crate) name: String,
    /// Who it is, and what they do.
    pub(crate) caller: Caller,
}

impl Viewer {
    /// Somebody of whom nothing is known: they are shown nothing that is stored.
    pub(crate) fn stranger() -> Self {
        Viewer { may_act: false, name: String::new(), caller: Caller::anyone() }
    }

    /// Whoever may look. Pages tell of every queue, so it takes a token that is good for
    /// all of them, where one is asked for.
    pub(crate) fn admit(service: &Service, caller: &Caller) -> Answer<Self> {
        caller.expect(Scope::Read)?;
        if caller.is_limited() {
            let name = caller.name().unwrap_or_default();
            let why = format!("token '{name}' is for some queues, and pages tell of all");
            return Err(Problem::new(&FORBIDDEN, why));
        }
        Ok(Viewer {
            may_act: !service.read_only && caller.expect(Scope::Admin).is_ok(),
            name: caller.name().unwrap_or("dashboard").to_owned(),
            caller: caller.clone(),
        })
    }
}
