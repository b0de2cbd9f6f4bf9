//! Contracts as their writers meet them: what is read, what is refused and in
//! which words, what is generated, and what travels.

#![expect(clippy::expect_used, reason = "tests assert by panicking, in helpers too")]

mod broken;
