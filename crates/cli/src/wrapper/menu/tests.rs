use super::*;
use crate::wrapper::keys::Decoder;

struct Bench {
    decoder: Decoder,
    menu: Menu,
}

impl Bench {
    fn new() -> Self {
        Self { decoder: Decoder::new(), menu: Menu::new("fix-login") }
    }

    fn typed(&mut self, bytes: &[u8]) -> Vec<Do> {
        let tokens = self.decoder.feed(bytes);
        tokens.into_iter().flat_map(|token| self.menu.on(token)).collect()
    }

    fn paused(&mut self) -> Vec<Do> {
        let tokens = self.decoder.quiet(self.menu.is_open());
        tokens.into_iter().flat_map(|token| self.menu.on(token)).collect()
    }
}

fn send(bytes: &[u8]) -> Do {
    Do::Send(bytes.to_vec())
}

#[test]
fn keys_of_the_menu() {
    for form in [&b"\x01"[..], b"\x1b[97;5u", b"\x1b[27;5;97~"] {
        let after = |bytes: &[u8]| {
            let mut bench = Bench::new();
            assert_eq!(bench.typed(form), [Do::Draw]);
            (bench.typed(bytes), bench.menu.mode)
        };
        assert_eq!(after(b"d").0, [Do::Act(Action::Detach)]);
        assert_eq!(after(b"\x1b[100u").0, [Do::Act(Action::Detach)]);
        assert_eq!(after(b"u").0, [Do::Act(Action::Url)]);
        assert_eq!(after(b"s").0, [Do::Act(Action::Screen)]);
        assert_eq!(after(b"t").0, [Do::Act(Action::Shell)]);
        // Twice is once for the program; whatever else is tmux's.
        assert_eq!(after(form), (vec![Do::Close, send(b"\x01\x01")], Mode::Closed));
        assert_eq!(after(b"\x1b[A").0, [Do::Close, send(b"\x01\x1b[A")]);
        assert_eq!(after(b"x").0, [Do::Close, send(b"\x01x")]);
        assert_eq!(after(b"\x1b[27u").0, [Do::Close]);
    }
    let mut bench = Bench::new();
    bench.typed(b"\x01");
    assert_eq!((bench.typed(b"\x1b"), bench.paused()), (vec![], vec![Do::Close]));
    assert_eq!(bench.typed(b"ab"), [send(b"a"), send(b"b")]);
}

#[test]
fn only_a_plain_yes_destroys() {
    let answer = |bytes: &[u8]| {
        let mut bench = Bench::new();
        bench.typed(b"\x01");
        assert_eq!(bench.typed(b"k"), [Do::Draw]);
        let mut done = bench.typed(bytes);
        done.extend(bench.paused());
        done.retain(|one| *one != Do::Draw);
        done
    };
    for yes in [&b"y\r"[..], b"yes\r", b"fix-login\r", b"nx\x7f\x7fy\r"] {
        assert_eq!(answer(yes), [Do::Act(Action::Destroy)], "{yes:?}");
    }
    for no in [&b"\r"[..], b"n\r", b"fix-logi\r", b"\x1b", b"\x03", b"\x1b[27u", b"yy\r"] {
        assert_eq!(answer(no), [Do::Close], "{no:?}");
    }
    // Neither what a terminal answers nor a paste is a yes.
    for nothing in [
        &b"\x1b]l\rfix-login\r\x1b\\"[..],
        b"\x1b[200~y\r\x1b[201~",
        b"\x1b[121u\x1b[13u",
        b"\x1b[M y\r",
        b"\x1bP1+r79\ry\r",
        b"\x1b[1;1R",
        b"\x01\x01",
    ] {
        assert_eq!(answer(nothing), [], "{nothing:?}");
    }
}

#[test]
fn answers_to_the_box_wait_for_it() {
    let mut bench = Bench::new();
    bench.typed(b"\x01");
    assert_eq!(bench.typed(b"\x1b[?62;22c\x1b[<0;1;1M"), []);
    assert_eq!(bench.typed(b"k\x1b[1;2R"), [Do::Draw]);
    assert_eq!(bench.typed(b"\r"), [Do::Close, send(b"\x1b[?62;22c\x1b[<0;1;1M\x1b[1;2R")]);
}

#[test]
fn a_paste_is_no_menu_and_may_be_an_image() {
    let mut bench = Bench::new();
    assert_eq!(bench.typed(b"\x1b[200~\x01k\x1b[201~"), [Do::Pasted(b"\x01k".to_vec())]);
    assert_eq!(bench.typed(b"\x16"), [Do::Fetch(b"\x16".to_vec())]);
    bench.typed(b"\x01");
    assert_eq!(bench.typed(b"\x1b[200~d\x1b[201~"), [Do::Close, Do::Pasted(b"d".to_vec())]);
}

#[test]
fn an_editor_is_asked_about_and_the_name_is_no_answer() {
    for (answer, wanted) in [(&b"y\r"[..], Do::Act(Action::Code)), (b"fix-login\r", Do::Close)] {
        let mut bench = Bench::new();
        bench.typed(b"\x01c");
        assert!(bench.typed(answer).contains(&wanted));
    }
}
