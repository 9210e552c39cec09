use proptest::prelude::*;

use super::*;

fn decoded_in(pieces: &[&[u8]]) -> Result<Vec<Frame>, Garbled> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let (space, most) = decoder.space();
            let count = rest.len().min(most);
            space.extend_from_slice(&rest[..count]);
            decoder.filled(count);
            rest = &rest[count..];
            while let Some(frame) = decoder.next()? {
                frames.push(frame);
            }
        }
    }
    Ok(frames)
}

fn replies(wire: &[u8]) -> Vec<Reply> {
    decoded_in(&[wire])
        .unwrap()
        .into_iter()
        .map(|frame| match frame {
            Frame::Reply(reply) => reply,
            Frame::Push(items) => panic!("a push: {items:?}"),
        })
        .collect()
}

fn bytes(text: &[u8]) -> Reply {
    Reply::Bytes(Bytes::copy_from_slice(text))
}

fn refusal(code: &str, message: &str) -> Reply {
    Reply::Error { code: code.to_owned(), message: message.to_owned() }
}

#[test]
fn resp2() {
    let wire =
        b"+OK\r\n:-42\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n-ERR no way\r\n-OOPS\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n";
    let expected = vec![
        bytes(b"OK"),
        Reply::Int(-42),
        bytes(b"a\r\nbc"),
        bytes(b""),
        Reply::Nil,
        Reply::Nil,
        Reply::Array(vec![]),
        refusal("ERR", "no way"),
        refusal("OOPS", ""),
        Reply::Array(vec![Reply::Int(1), Reply::Array(vec![bytes(b"x")])]),
    ];
    assert_eq!(replies(wire), expected);
}

#[test]
fn resp3_reads_like_resp2() {
    let wire = b"_\r\n#t\r\n#f\r\n,1.5\r\n(12345678901234567890\r\n!9\r\nERR a\r\nbc\r\n=7\r\ntxt:abc\r\n%1\r\n+k\r\n:1\r\n~1\r\n:2\r\n|1\r\n+a\r\n+b\r\n:3\r\n%0\r\n";
    let expected = vec![
        Reply::Nil,
        Reply::Int(1),
        Reply::Int(0),
        bytes(b"1.5"),
        bytes(b"12345678901234567890"),
        refusal("ERR", "a\r\nbc"),
        bytes(b"abc"),
        Reply::Array(vec![bytes(b"k"), Reply::Int(1)]),
        Reply::Array(vec![Reply::Int(2)]),
        Reply::Int(3),
        Reply::Array(vec![]),
    ];
    assert_eq!(replies(wire), expected);
}

#[test]
fn a_push_stands_between_replies() {
    let frames = decoded_in(&[b":1\r\n>2\r\n+invalidate\r\n_\r\n:2\r\n"]).unwrap();
    let push = Frame::Push(vec![bytes(b"invalidate"), Reply::Nil]);
    assert_eq!(frames, vec![Frame::Reply(Reply::Int(1)), push, Frame::Reply(Reply::Int(2))]);
}

#[test]
fn an_attribute_inside_an_array_counts_for_nothing() {
    assert_eq!(replies(b"*2\r\n|1\r\n+a\r\n:9\r\n:1\r\n:2\r\n"), vec![Reply::Array(vec![Reply::Int(1), Reply::Int(2)])]);
}

#[test]
fn what_is_no_resp_is_refused() {
    let deep = "*1\r\n".repeat(40);
    let long = format!("+{}", "x".repeat(MAX_LINE));
    for wire in [
        &b"hello\r\n"[..],
        b"\r\n",
        b"\n",
        b":\r\n",
        b":1x\r\n",
        b"$-2\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b"$3\r\nabcd\r\n",
        b"#x\r\n",
        b"=2\r\nab\r\n",
        b">0\r\n",
        b"*1\r\n>1\r\n:1\r\n",
        b"$99999999999\r\n",
        b"%9223372036854775807\r\n",
        b"\x15\x03\x03\x00\x02\x02\x16",
        deep.as_bytes(),
        long.as_bytes(),
    ] {
        assert!(decoded_in(&[wire]).is_err(), "{:?}", String::from_utf8_lossy(&wire[..wire.len().min(40)]));
    }
}

#[test]
fn an_announced_size_is_not_trusted() {
    let mut decoder = Decoder::default();
    let (space, _) = decoder.space();
    space.extend_from_slice(b"*1000000000\r\n$400000000\r\nab");
    decoder.filled(space_len());
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.direct.as_ref().is_some_and(|direct| direct.bytes.capacity() <= 2 * MAX_ADVANCE));
    assert!(decoder.open[0].items.capacity() <= 1_024);
}

fn space_len() -> usize {
    b"*1000000000\r\n$400000000\r\nab".len()
}

fn written(commands: &[Vec<Bytes>], step: usize) -> Vec<u8> {
    let mut out = Outgoing::default();
    commands.iter().for_each(|command| out.command(command));
    let mut wire = Vec::new();
    while out.len() > 0 {
        let mut slices = [IoSlice::new(&[]); 3];
        let filled = out.fill(&mut slices);
        let offered: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
        let taken = offered.len().min(step);
        wire.extend_from_slice(&offered[..taken]);
        out.advance(taken);
    }
    wire
}

fn reply_tree() -> impl Strategy<Value = Reply> {
    let small = proptest::collection::vec(any::<u8>(), 0..40);
    let large = (DIRECT - 3..DIRECT + 3).prop_map(|size| vec![b'z'; size]);
    let leaf = prop_oneof![
        Just(Reply::Nil),
        any::<i64>().prop_map(Reply::Int),
        small.prop_map(|text| Reply::Bytes(text.into())),
        large.prop_map(|text| Reply::Bytes(text.into())),
        "[A-Z]{1,8}".prop_map(|code| refusal(&code, "what a pity")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| proptest::collection::vec(inner, 0..6).prop_map(Reply::Array))
}

fn put(reply: &Reply, wire: &mut Vec<u8>) {
    match reply {
        Reply::Nil => wire.extend_from_slice(b"$-1\r\n"),
        Reply::Int(number) => wire.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Reply::Bytes(text) => {
            wire.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            wire.extend_from_slice(text);
            wire.extend_from_slice(b"\r\n");
        }
        Reply::Array(items) => {
            wire.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
            items.iter().for_each(|item| put(item, wire));
        }
        Reply::Error { code, message } => wire.extend_from_slice(format!("-{code} {message}\r\n").as_bytes()),
    }
}

proptest! {
    #[test]
    fn replies_survive_any_cuts(sent in proptest::collection::vec(reply_tree(), 1..5), cuts in proptest::collection::vec(1_usize..5_000, 1..40)) {
        let mut wire = Vec::new();
        sent.iter().for_each(|reply| put(reply, &mut wire));
        let mut pieces = Vec::new();
        let mut rest = &wire[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        let frames = decoded_in(&pieces).unwrap();
        prop_assert_eq!(frames, sent.into_iter().map(Frame::Reply).collect::<Vec<_>>());
    }

    #[test]
    fn no_bytes_break_the_decoder(wire in proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"+-:$*%~_,#!=(>|0123456789\r\n"[..])], 0..200)) {
        let _ = decoded_in(&[&wire]);
    }

    #[test]
    fn commands_come_out_whole(
        commands in proptest::collection::vec(proptest::collection::vec(prop_oneof![0_usize..30, BY_REFERENCE - 2..BY_REFERENCE + 2], 1..5), 1..5),
        step in 1_usize..10_000,
    ) {
        let commands: Vec<Vec<Bytes>> =
            commands.into_iter().map(|sizes| sizes.into_iter().map(|size| Bytes::from(vec![b'q'; size])).collect()).collect();
        // A command has the form of an array of strings.
        let expected: Vec<Reply> = commands.iter().map(|args| Reply::Array(args.iter().cloned().map(Reply::Bytes).collect())).collect();
        prop_assert_eq!(replies(&written(&commands, step)), expected);
    }
}
