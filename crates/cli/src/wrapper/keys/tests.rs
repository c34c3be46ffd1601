use super::*;

fn read(bytes: &[u8]) -> Vec<Token> {
    Decoder::new().feed(bytes)
}

fn keys(tokens: &[Token]) -> Vec<Key> {
    let key = |token: &Token| match token {
        Token::Press { key, .. } => Some(*key),
        _ => None,
    };
    tokens.iter().filter_map(key).collect()
}

fn bytes(tokens: &[Token]) -> Vec<u8> {
    let of = |token: &Token| match token {
        Token::Press { bytes, .. } | Token::Report(bytes) | Token::PastePart(bytes) => {
            bytes.clone()
        }
        Token::Paste(text) => bracketed(text),
    };
    tokens.iter().flat_map(of).collect()
}

#[test]
fn ctrl_a_in_each_of_its_forms() {
    let forms: [&[u8]; 8] = [
        b"\x01",
        b"\x1b[97;5u",
        b"\x1b[27;5;97~",
        b"\x1b[97;5:1u",
        b"\x1b[97;69u",
        b"\x1b[97:65;5u",
        b"\x1b[1092::97;5u",
        b"\x1b[97;197:2u",
    ];
    for form in forms {
        assert_eq!(keys(&read(form)), [Key::Ctrl('a')], "{form:?}");
        assert_eq!(bytes(&read(form)), form);
        // However it is cut.
        for at in 1..form.len() {
            let mut decoder = Decoder::new();
            assert_eq!(decoder.feed(&form[..at]), [], "{form:?} at {at}");
            assert!(decoder.patience().is_some());
            assert_eq!(keys(&decoder.feed(&form[at..])), [Key::Ctrl('a')], "{form:?} at {at}");
            assert!(decoder.patience().is_none());
        }
    }
    for other in [&b"\x1b[97;5:3u"[..], b"\x1b[97;6:3u", b"\x1b[57442;5u"] {
        assert_eq!(read(other), [Token::Report(other.to_vec())], "{other:?}");
    }
    for other in [&b"\x1b[97;7u"[..], b"\x1b[98;5u", b"\x1b[27;3;97~", b"\x1b\x01", b"a"] {
        assert!(!keys(&read(other)).contains(&Key::Ctrl('a')), "{other:?}");
    }
}

#[test]
fn plain_keys_and_those_of_the_kitty_protocol_are_the_same() {
    assert_eq!(keys(&read(b"d\r\x7f")), [Key::Char('d'), Key::Enter, Key::Backspace]);
    let coded = read(b"\x1b[100u\x1b[13u\x1b[127u\x1b[27u\x1b[100;2u\x1b[118;5u");
    let wanted =
        [Key::Char('d'), Key::Enter, Key::Backspace, Key::Escape, Key::Char('D'), Key::Ctrl('v')];
    assert_eq!(keys(&coded), wanted);
    assert!(coded.iter().all(|t| matches!(t, Token::Press { plain: false, .. })));
}

#[test]
fn an_escape_alone_is_one_after_a_moment() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.feed(b"\x1b"), []);
    assert_eq!(keys(&decoder.quiet(true)), [Key::Escape]);
    assert_eq!(decoder.feed(b"\x1b["), []);
    assert_eq!(bytes(&decoder.quiet(false)), b"\x1b[");
    assert_eq!(keys(&decoder.feed(b"\x01")), [Key::Ctrl('a')]);
    assert_eq!(keys(&decoder.feed(b"\x1b\x1b[A")), [Key::Escape, Key::Other]);
}

#[test]
fn what_a_terminal_answers_is_no_key() {
    let answers: [&[u8]; 12] = [
        b"\x1b[?62;22c",
        b"\x1b[>1;10;0c",
        b"\x1b[12;40R",
        b"\x1b[0n",
        b"\x1b[?2026;2$y",
        b"\x1b[?1u",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]52;c;eQ0=\x07",
        b"\x1bP1$r0m\x1b\\",
        b"\x1b[<0;10;10M",
        b"\x1b[M y\r",
        b"\x1b[I",
    ];
    for answer in answers {
        for at in 1..answer.len() {
            let mut decoder = Decoder::new();
            let mut tokens = decoder.feed(&answer[..at]);
            // Slow ones stay what they are while it matters.
            if answer[at - 1] != ESC {
                tokens.extend(decoder.quiet(true));
            }
            tokens.extend(decoder.feed(&answer[at..]));
            assert_eq!(bytes(&tokens), answer, "{answer:?} at {at}");
            assert_eq!(keys(&tokens), [], "{answer:?} at {at}");
        }
    }
    let text = b"\x1b]l\x01y\r\x1b\\";
    assert_eq!(keys(&read(text)), []);
}

#[test]
fn a_short_paste_is_whole_and_a_long_one_flows() {
    let paste = b"\x1b[200~a\x01b\x16\x1b[97;5u\x1b[201~";
    let text = b"a\x01b\x16\x1b[97;5u".to_vec();
    assert_eq!(read(paste), [Token::Paste(text.clone())]);
    for at in 1..paste.len() {
        let mut decoder = Decoder::new();
        let mut tokens = decoder.feed(&paste[..at]);
        tokens.extend(decoder.feed(&paste[at..]));
        assert_eq!(tokens, [Token::Paste(text.clone())], "at {at}");
        if at < 6 {
            continue;
        }
        // A pause in it makes it flow, and it still is one.
        let mut decoder = Decoder::new();
        let mut tokens = decoder.feed(&paste[..at]);
        tokens.extend(decoder.quiet(false));
        tokens.extend(decoder.feed(&paste[at..]));
        assert_eq!(bytes(&tokens), paste, "at {at}");
        assert_eq!(keys(&tokens), [], "at {at}");
        assert_eq!(decoder.patience(), None);
    }
    let long = bracketed(&b"\x01x".repeat(50_000));
    let mut decoder = Decoder::new();
    let mut tokens = Vec::new();
    for part in long.chunks(1000) {
        tokens.extend(decoder.feed(part));
        assert!(decoder.held.len() <= SHORT_PASTE + 1);
    }
    assert_eq!((bytes(&tokens), keys(&tokens)), (long, vec![]));
    assert_eq!(keys(&decoder.feed(b"\x01")), [Key::Ctrl('a')]);
}

#[test]
fn everything_comes_out_as_it_went_in() {
    let mut seed = 7_u32;
    for _ in 0..2000 {
        let alphabet = b"\x01\x16\x1b[]OPM0127;:?~uRa\r\x07\\y\xc3";
        let mut input = Vec::new();
        for _ in 0..40 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            input.push(alphabet[(seed >> 16) as usize % alphabet.len()]);
        }
        let mut decoder = Decoder::new();
        let mut tokens = Vec::new();
        for part in input.chunks(3) {
            tokens.extend(decoder.feed(part));
        }
        tokens.extend(decoder.quiet(false));
        let out = bytes(&tokens);
        assert!(input.starts_with(&out) && input.len() - out.len() < 6, "{input:?} {out:?}");
    }
}

#[test]
fn a_sequence_without_end_is_not_kept() {
    let mut decoder = Decoder::new();
    decoder.feed(b"\x1b[");
    for _ in 0..1000 {
        decoder.feed(&[b'1'; 100]);
        assert!(decoder.held.len() <= LONGEST);
    }
    assert_eq!(keys(&decoder.feed(b"u")), []);
    decoder.feed(b"\x1b]");
    for _ in 0..1000 {
        decoder.feed(&[b'y'; 100]);
        assert!(decoder.held.is_empty());
    }
}
