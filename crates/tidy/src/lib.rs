//! Checks on the repository itself: which crate may use which, where SQL may
//! stand, that no file is forgotten, that the documents agree with the code.
//!
//! There is no code here. The checks are tests, in `tests/tidy`, so that
//! `cargo test` runs them like any other.
