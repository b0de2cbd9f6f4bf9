//! What decoding costs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use gristmill_contract::wire::{decode, encode};

use crate::sample::Emails;

const ROUNDS: u32 = 200_000;

/// The best of several goes: what it costs, not what else the machine did.
fn best(mut once: impl FnMut()) -> Duration {
    let goes = (0..7).map(|_| {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            once();
        }
        start.elapsed() / ROUNDS
    });
    goes.min().unwrap()
}

#[test]
#[ignore = "measures; meant for the release build: long form"]
fn long_decoding_a_typed_payload_costs_under_a_microsecond() {
    let mail = Emails { to: "ada@example.org".to_owned(), user_id: 1 << 40, body: None };
    let payload = encode(&mail).unwrap();
    let decoding = best(|| {
        black_box(decode::<Emails>(black_box(&payload)).unwrap());
    });
    let encoding = best(|| {
        black_box(encode(black_box(&mail)).unwrap());
    });
    println!("decode {decoding:?}, encode {encoding:?}, {} bytes", payload.bytes.len());
    if cfg!(debug_assertions) {
        println!("NOT RUN: the limit is for the release build");
        return;
    }
    assert!(decoding < Duration::from_micros(1), "decoding took {decoding:?}");
}
