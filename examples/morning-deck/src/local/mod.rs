//! Servers for the demonstration and the tests: real ones, on free ports of
//! this machine's own interface, which end with the value that stands for them.

mod mail_server;
mod web_server;

pub use mail_server::{MailServer, Received};
pub use web_server::{Seen, WebServer};
