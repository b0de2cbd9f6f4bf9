//! The service: the queues of a store over HTTP, for every language.
//!
//! ```text
//!   client ──► connection ──► guard ──► router ──► door ──► a route ──► Mill, Store
//!              timed, counted  Host,     from the   tokens,  message/: what goes in
//!              and cut         Origin    table      scopes   and out, field by field
//! ```
//!
//! The routes stand in one table (`router.rs`), from which the router and the
//! published OpenAPI document are made: what is served is documented. JSON in and
//! out is in mirror structs (`message/`), so that the model can change without
//! breaking clients; what a route does is in `route/`.
//!
//! Who calls is known by access tokens (`access/`); each route in the table says which
//! scope it needs. Where there is no token it serves this machine only, and everybody on
//! it ([`Listen`]).

mod access;
mod audit;
mod body;
mod call;
mod connection;
mod dashboard;
mod guard;
mod held;
mod known;
mod leased;
mod limits;
mod listen;
mod message;
mod metrics;
mod openapi;
mod operation;
mod problem;
mod retention;
mod route;
mod router;
mod sampled;
mod server;
mod service;
mod tls;
mod trace;
mod watched;

pub use access::{
    NewToken, Reach, ReachError, Scope, ScopeError, Secret, TokenError, TokenState, TokenView,
    Tokens,
};
pub use audit::{Audit, AuditLine, Deed};
pub use listen::{Listen, ListenError};
pub use operation::{OperationState, OperationView, Operations};
pub use server::{Options, Port, Server};
pub use tls::{Encryption, TlsError};
pub use watched::{LOOK, Watched};
