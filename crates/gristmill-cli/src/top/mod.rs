//! The live view: what is known ([`Board`]), how it is drawn, and what keys mean. Pure;
//! looking and acting are the command's.

mod board;
mod draw;
mod keys;

pub(crate) use board::{Board, Look};
pub(crate) use draw::draw;
pub(crate) use keys::{Wish, wish};
