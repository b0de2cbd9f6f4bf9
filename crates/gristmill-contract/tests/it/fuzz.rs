//! Rubbish in: the YAML reader and the payload's readers are given mutated
//! input for a time. They may refuse it in words; they must not panic, hang or
//! take memory without end. A second each in the short form, a minute in the
//! long one.

use std::time::{Duration, Instant};

use gristmill_contract::wire::{Fields, decode};
use gristmill_contract::{Source, read, view};
use gristmill_core::Payload;

use crate::sample::{Emails, every_type, hard_value};

const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);
/// More than any input here may take.
const MEMORY_KB: u64 = 512 * 1024;

/// Dice with a memory (xorshift), so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (sides.max(1) as u64)).unwrap()
    }
}

/// Changes some of the input: bits, bytes, pieces taken out, doubled, or put in
/// from elsewhere.
fn mutate(dice: &mut Dice, seed: &[u8], other: &[u8], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.roll(6) {
        let (at, to) = (dice.roll(bytes.len() + 1), dice.roll(bytes.len() + 1));
        let (from, to) = (at.min(to), at.max(to).min(at.min(to) + 64));
        match dice.roll(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            1 if at < bytes.len() => bytes[at] = u8::try_from(dice.roll(256)).unwrap(),
            2 => drop(bytes.drain(from..to)),
            3 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.truncate(at),
            5 => {
                let start = dice.roll(other.len());
                let end = (start + dice.roll(64)).min(other.len());
                bytes.splice(at..at, other[start..end].iter().copied());
            }
            _ => {
                let word = words[dice.roll(words.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
    bytes
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn run(time: Duration, seeds: &[Vec<u8>], words: &[&[u8]], eat: impl Fn(&[u8])) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let start = Instant::now();
    let (mut rounds, mut longest) = (0u64, Duration::ZERO);
    while start.elapsed() < time {
        let seed = &seeds[dice.roll(seeds.len())];
        let other = &seeds[dice.roll(seeds.len())];
        let input = mutate(&mut dice, seed, other, words);
        let began = Instant::now();
        eat(&input);
        longest = longest.max(began.elapsed());
        rounds += 1;
    }
    let peak = peak_kb();
    println!("{rounds} inputs, the longest took {longest:?}, peak memory {peak} kB");
    assert!(peak < MEMORY_KB, "peak memory {peak} kB");
    assert!(longest < Duration::from_secs(20), "one input took {longest:?}");
}

fn contracts() -> Vec<Vec<u8>> {
    let table = include_str!("broken.txt");
    let cases = table.split("=== ").skip(1).filter_map(|case| case.split_once('\n'));
    let texts = cases.filter_map(|(_, rest)| rest.split_once("\n---\n"));
    let mut seeds: Vec<Vec<u8>> = texts.map(|(text, _)| text.as_bytes().to_vec()).collect();
    let full = "queues:\n  - id: 7\n    name: full\n    doc: |\n      prose\n    fields: &f\n      \
                - {name: a, type: \"[]int64?\"}\n      - {name: b, type: timestamp, doc: x}\n    \
                settings: {lease: 30s, backoff: {base: 1s}, bind: {table: t, column: c}}\n";
    seeds.push(full.as_bytes().to_vec());
    seeds
}

fn yaml(time: Duration) {
    let words: [&[u8]; 14] = [
        b"\n  - ",
        b": ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!binary ",
        b"|\n",
        b"\"",
        b"\xff\xfe",
        b"999999999999999999999",
    ];
    run(time, &contracts(), &words, |input| {
        let text = String::from_utf8_lossy(input).into_owned();
        let source = Source { name: "fuzz.yaml".to_owned(), text };
        if let Err(error) = read(&[source]) {
            assert!(!error.to_string().is_empty());
        }
    });
}

fn payloads(time: Duration) {
    let queue = every_type();
    let full = view::to_payload(&queue, &hard_value()).unwrap();
    let mail = Emails { to: "ada".to_owned(), user_id: 5, body: Some(vec![1; 40].into()) };
    let mail = gristmill_contract::wire::encode(&mail).unwrap();
    let json = hard_value().to_string().into_bytes();
    let seeds = [full.bytes.to_vec(), mail.bytes.to_vec(), json, vec![0x91; 4_000]];
    let words: [&[u8]; 10] = [
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xc6, 0x7f, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xd7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xc1],
        &[0x91; 64],
        b"[[[[[[[[[[[[[[[[",
        b"1e999999",
    ];
    run(time, &seeds, &words, |input| {
        for payload in [Payload::msgpack(input.to_vec()), Payload::json(input.to_vec())] {
            let shown = view::to_json(&queue, &payload);
            if let Ok(shown) = &shown {
                // What was understood can be put again.
                assert!(view::text_to_payload(&queue, shown.as_bytes()).is_ok(), "{shown}");
            }
            if let Ok(mail) = decode::<Emails>(&payload) {
                let again = gristmill_contract::wire::encode(&mail).unwrap();
                assert_eq!(decode::<Emails>(&again).unwrap(), mail, "{}", Emails::SPEC.name);
            }
        }
        let _ = view::text_to_payload(&queue, input);
    });
}

#[test]
fn the_yaml_reader_stands_a_second_of_rubbish() {
    yaml(SHORT);
}

#[test]
fn the_payload_readers_stand_a_second_of_rubbish() {
    payloads(SHORT);
}

#[test]
#[ignore = "a minute: long form"]
fn long_the_yaml_reader_stands_a_minute_of_rubbish() {
    yaml(LONG);
}

#[test]
#[ignore = "a minute: long form"]
fn long_the_payload_readers_stand_a_minute_of_rubbish() {
    payloads(LONG);
}
