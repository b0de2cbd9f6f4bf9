//! Small records that the system keeps beside tasks.

use gristmill_core::{Beside, Document, DocumentAnswer, DocumentChange, DocumentList, Expects};

record!(Document { kind, name, version, body, created_at, changed_at, keep, read_at });
record!(Beside { kind, name, version });
record!(DocumentChange { kind, name, expects, beside, body, keep, durable });
record!(DocumentList { kind, after, limit });
choice!(Expects {
    "absent" = Absent,
    "version" = Version(version),
    "aged" = Aged { version, least },
    "anything" = Anything,
});
choice!(DocumentAnswer {
    "saved" = Saved(document),
    "removed" = Removed,
    "changed" = Changed { current },
    "young" = Young { left },
});
