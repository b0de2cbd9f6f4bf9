//! Morning Deck: sources are fetched, what is new is enriched, and the best of
//! it comes as a briefing. See README.md.
//!
//! The queue part is `queue.rs`; everything else is about sources, items and
//! briefings.

pub mod ai;
pub mod app;
mod board;
pub mod briefing;
pub mod config;
pub mod db;
pub mod deck;
pub mod demo;
pub mod error;
pub mod fetch;
mod html;
pub mod http;
pub mod item;
pub mod local;
pub mod log;
pub mod mail;
mod markup;
pub mod overview;
pub mod page;
pub mod queue;
pub mod reader;
pub mod search;
pub mod smtp;
pub mod source;
pub mod stage;
pub mod status;
pub mod stuck;
pub mod timing;
pub mod url;
