//! What a task in the configuration says in place of its queue's settings.

use gristmill::port::TaskSettings;
use gristmill_contract::task_settings::Said;
use gristmill_contract::yaml::{Fields, Mistakes};

/// Reads them; nothing is said where none is there.
pub(super) fn read(fields: &Fields<'_>, mistakes: &mut Mistakes) -> TaskSettings {
    let mut own = TaskSettings::default();
    for name in ["timeout", "max_attempts", "backoff"] {
        let Some(node) = fields.node(name) else { continue };
        let mut said = Said::default();
        match said.value(name, &node.json()).and_then(|()| said.settings()) {
            Ok(one) => own.say(&one),
            Err(wrong) => mistakes.add(node, wrong.to_string()),
        }
    }
    own
}
