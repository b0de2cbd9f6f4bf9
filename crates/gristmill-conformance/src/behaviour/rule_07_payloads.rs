//! Rule 7, the part on payloads: every byte comes out as it went in, and what
//! is too large is refused with both sizes.

use gristmill_core::{Encoding, NewTask, Payload, PutAnswer, Refusal};

use crate::fixture::Fixture;
use crate::shape::task;

const MIB: usize = 1 << 20;

/// Puts the bytes under every encoding and compares what is shown and claimed.
async fn round_trip(f: &Fixture, bytes: Vec<u8>) {
    let q = f.queue("q").await;
    for encoding in Encoding::ALL {
        let payload = Payload { bytes: bytes.clone().into(), encoding };
        let id = f.enqueue(&q, NewTask::new(payload.clone())).await;
        assert!(f.the(id).await.payload == payload, "{encoding}: shown as put");
        let held = f.claim_one(&q).await;
        assert!(held.task.payload == payload, "{encoding}: claimed as put");
        assert_eq!(held.task.payload.encoding, encoding);
    }
}

pub(super) async fn rule_07_an_empty_payload_is_kept(f: &mut Fixture) {
    round_trip(f, Vec::new()).await;
}

pub(super) async fn rule_07_nul_bytes_are_kept(f: &mut Fixture) {
    round_trip(f, vec![0]).await;
    round_trip(f, b"\0before and after\0".to_vec()).await;
}

pub(super) async fn rule_07_bytes_that_are_not_text_are_kept(f: &mut Fixture) {
    round_trip(f, vec![0xff, 0xfe, 0x80, 0xc0, 0xaf, 0xed, 0xa0, 0x80]).await;
    round_trip(f, b"\xef\xbb\xbf with a byte order mark \r\n".to_vec()).await;
}

pub(super) async fn rule_07_all_byte_values_are_kept(f: &mut Fixture) {
    let up = 0..=u8::MAX;
    round_trip(f, up.clone().chain(up.rev()).collect()).await;
}

pub(super) async fn rule_07_a_payload_at_the_limit_is_kept(f: &mut Fixture) {
    // Noise, so that no store gets away with a cut or compressed copy.
    let mut state = 1u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    round_trip(f, noise.take(MIB).collect()).await;
}

pub(super) async fn rule_07_a_payload_over_the_limit_is_refused(f: &mut Fixture) {
    let q = f.queue("q").await;
    let over = NewTask::new(Payload::raw(vec![b'x'; MIB + 1]));
    let answers = f.put_all(&q, vec![task("before"), over, task("after")]).await;
    let refused = Refusal::PayloadTooLarge { bytes: MIB + 1, limit: MIB };
    assert_eq!(answers[1], PutAnswer::Refused(refused));
    assert!(answers[0].is_enqueued() && answers[2].is_enqueued(), "neighbours go in");
}

pub(super) async fn rule_07_the_payload_limit_is_the_stores(f: &mut Fixture) {
    f.limit(|limits| limits.payload_bytes = 10).await;
    let q = f.queue("q").await;
    f.enqueue(&q, NewTask::new(Payload::raw(vec![1; 10]))).await;
    let answer = f.put(&q, NewTask::new(Payload::raw(vec![1; 11]))).await;
    let refused = Refusal::PayloadTooLarge { bytes: 11, limit: 10 };
    assert_eq!(answer, PutAnswer::Refused(refused));
}
