//! Small records that the system keeps beside tasks.

use gristmill_core::{Document, DocumentAnswer, DocumentChange, DocumentList};

record!(Document { kind, name, version, body, created_at, changed_at });
record!(DocumentChange { kind, name, expects, body });
record!(DocumentList { kind, after, limit });
choice!(DocumentAnswer {
    "saved" = Saved(document),
    "removed" = Removed,
    "changed" = Changed { current },
});
