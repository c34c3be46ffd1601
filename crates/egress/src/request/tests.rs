use super::*;
use proptest::prelude::*;

fn text(raw: &str) -> Result<String, Reason> {
    Target::parse(raw).map(|target| target.to_text())
}

fn ok(raw: &str) -> Target {
    Target::parse(raw).unwrap()
}

#[test]
fn one_spelling_for_a_path() {
    assert_eq!(text("/%7esmith/%41%2d%5f").unwrap(), "/~smith/A-_");
    assert_eq!(text("/a%2fb%c3%a9").unwrap(), "/a%2Fb%C3%A9");
    assert_eq!(text("").unwrap(), "/");
    assert_eq!(text("?a=1").unwrap(), "/?a=1");
    assert_eq!(text("/a?b=%7e#c").unwrap(), "/a?b=%7e");
    assert_eq!(text("/a?").unwrap(), "/a?");
    assert_eq!(text("/a#/../b?c").unwrap(), "/a");
}

#[test]
fn what_is_no_path_is_a_bad_request() {
    for raw in ["*", "ex.com:443", "https://ex.com/a", "a", "/%", "/%2", "/%zz", "/a%2x"] {
        assert_eq!(text(raw), Err(Reason::BadRequestTarget), "{raw}");
    }
}

#[test]
fn what_servers_read_differently_is_refused() {
    for raw in ["//h/v1", "/a\\b", "/a b", "/a\0", "/a\r\nb", "/é", "/a?b=\u{7f}", "/a?é", "/a?b c"]
    {
        assert_eq!(text(raw), Err(Reason::AmbiguousPath), "{raw:?}");
    }
    // A backslash is a question of paths only; browsers leave it in a query.
    assert_eq!(text("/a?b=\\").unwrap(), "/a?b=\\");
}

#[test]
fn dots_are_marked_in_every_spelling() {
    for raw in [
        "/.",
        "/..",
        "/a/./b",
        "/a/../b",
        "/%2e",
        "/a/%2E%2e/b",
        "/a/.%2e",
        "/..;/x",
        "/a/.;p=1/b",
        "/..%3b/x",
        "/..%20/x",
        "/%20../x",
        "/%09.%0a%0D/x",
        "/a/%1f%2e%2e%7F;p",
    ] {
        assert!(ok(raw).is_dotted(), "{raw}");
    }
    for raw in ["/...", "/.a", "/a..", "/.git/x", "/a?b=/../c", "/a;.."] {
        assert!(!ok(raw).is_dotted(), "{raw}");
    }
}

#[test]
fn veils_are_marked() {
    // The last one is what a second decoding would take for an escape.
    for raw in ["/a%2Fb", "/a%5cb", "/a%00", "/a%252e", "/%c0%ae", "/%C1%9c", "/a%25%32%65"] {
        assert!(ok(raw).is_veiled(), "{raw}");
    }
    for raw in ["/a%20b", "/a%25", "/a%25x", "/a%25%32", "/a?b=%2F"] {
        assert!(!ok(raw).is_veiled(), "{raw}");
    }
}

#[test]
fn queries_are_maps_of_values() {
    let map = |raw: &str| ok(raw).query_map();
    let of = |pairs: &[(&str, &[&str])]| {
        let owned = |v: &[&str]| v.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
        Some(pairs.iter().map(|(k, v)| ((*k).to_owned(), owned(v))).collect::<QueryMap>())
    };
    assert_eq!(map("/x"), of(&[]));
    assert_eq!(map("/x?&&"), of(&[]));
    assert_eq!(map("/x?a"), of(&[("a", &[""])]));
    assert_eq!(map("/x?b=2&a=1&b=1"), of(&[("a", &["1"]), ("b", &["1", "2"])]));
    assert_eq!(map("/x?a=1;b=2"), of(&[("a", &["1;b=2"])]));
    assert_eq!(map("/x?t=+"), of(&[("t", &[" "])]));
    assert_eq!(map("/x?t=%2B"), of(&[("t", &["+"])]));
    assert_eq!(map("/x?t=%25%32%42"), of(&[("t", &["%2B"])]));
    assert_eq!(map("/x?t=a=b"), of(&[("t", &["a=b"])]));
    assert_eq!(map("/x?t=%fe"), None);
    assert_eq!(map("/x?t=100%"), None);
}

#[test]
fn methods_are_upper_case_tokens() {
    assert_eq!(method("get").as_deref(), Ok("GET"));
    assert_eq!(method("M-SEARCH").as_deref(), Ok("M-SEARCH"));
    for bad in ["", "G T", "GET\n", "é", "G/T"] {
        assert_eq!(method(bad), Err(Reason::BadRequest), "{bad:?}");
    }
    for bad in ["TRACE", "trace", "Track", "CONNECT"] {
        assert_eq!(method(bad), Err(Reason::MethodForbidden), "{bad}");
    }
}

#[test]
fn an_obliging_server_reads_much_as_one() {
    let same = b"/a/hooks".to_vec();
    for raw in ["/a/hooks", "/a//hooks", "/A/Hooks", "/a/%68ooks", "/a;x=1/hooks;y", "/a/hoo%6bs"] {
        assert_eq!(obliging(ok(raw).path()), same, "{raw}");
    }
    assert_eq!(obliging("/a%3Ab"), b"/a:b");
}

proptest! {
    #[test]
    fn a_canonical_target_is_a_fixed_point(raw in "/[ -~]{0,40}") {
        if let Ok(target) = Target::parse(&raw) {
            prop_assert_eq!(Target::parse(&target.to_text()), Ok(target));
        }
    }

    #[test]
    fn escapes_of_plain_letters_do_not_matter(path in "/[a-z~._/-]{0,20}", mask in any::<u32>()) {
        let escaped: String = path.char_indices().map(|(at, c)| {
            if c != '/' && mask >> (at % 32) & 1 == 1 { format!("%{:02x}", c as u32) } else { c.to_string() }
        }).collect();
        prop_assert_eq!(Target::parse(&escaped), Target::parse(&path));
    }

    #[test]
    fn nothing_makes_it_fail_but_with_a_reason(raw in ".{0,60}") {
        let _ = Target::parse(&raw);
    }
}
