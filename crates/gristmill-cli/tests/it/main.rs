//! The binary as a shell sees it: arguments, standard streams, exit codes,
//! signals, and what stands in the store afterwards.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests assert by panicking, in helpers too"
)]

mod bad_input;
mod bench;
mod bulk;
mod canaries;
mod clock_jumps;
mod config;
mod contract;
mod copy;
mod doctor;
mod drawn;
mod exec;
mod failures;
mod files;
mod hook;
mod http;
mod http_page;
mod init;
mod looking;
mod orphan;
mod overview_cost;
mod place;
mod postgres;
mod postgres_damaged;
mod postgres_defaults;
mod postgres_two_services;
mod progress;
mod python;
mod readme;
mod reload;
mod remote;
mod round_trip;
mod schedules;
mod secret;
mod served_store;
mod settings_page;
mod shell_page;
mod shell_worker;
mod silent_store;
mod slots;
mod sql_page;
mod stop;
mod stream;
mod stuck_log;
mod terminal;
mod tls;
mod token;
mod top;
#[cfg(feature = "otel")]
mod traces;
mod typescript;
mod up;
mod workers;
