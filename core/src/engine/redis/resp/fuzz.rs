//! Replies in any pieces are the same replies.

use bytes::BufMut;

use super::{Decoder, Frame, Garbled, READ};

/// The bytes after the first, in parts of the sizes that the first one chooses, are the same replies as all at once.
pub(in crate::engine) fn fuzz(data: &[u8]) {
    let Some((seed, bytes)) = data.split_first() else { return };
    let whole = decode(bytes, |_| READ);
    let mut state = u32::from(*seed);
    let parts = decode(bytes, |_| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        1 + (state >> 16) as usize % (1 + usize::from(*seed))
    });
    assert_eq!(whole, parts);
    for frame in &whole.0 {
        if let Frame::Reply(reply) = frame {
            super::super::fuzz_layout(reply);
        }
    }
}

/// The frames in `bytes`, and how it ended.
pub(super) fn decode(mut bytes: &[u8], mut size: impl FnMut(usize) -> usize) -> (Vec<Frame>, Option<Garbled>) {
    let (mut decoder, mut frames) = (Decoder::default(), Vec::new());
    loop {
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(garbled) => return (frames, Some(garbled)),
            }
        }
        if bytes.is_empty() {
            return (frames, None);
        }
        let (space, room) = decoder.space();
        let (now, later) = bytes.split_at(bytes.len().min(room).min(size(bytes.len())));
        space.put_slice(now);
        decoder.filled(now.len());
        bytes = later;
    }
}
