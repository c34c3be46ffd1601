use super::*;
use std::time::{Duration, Instant};

fn read(text: &str) -> (Option<Node>, Vec<String>) {
    let Parsed { root, faults } = parse(text, Aliases::Unfolded);
    let line =
        |fault: &Fault| format!("f:{}:{}: {}", fault.place.line, fault.place.column, fault.message);
    (root, faults.iter().map(line).collect())
}

fn scalar(text: &str) -> Scalar {
    match read(text).0.unwrap().kind {
        Kind::Scalar(scalar) => scalar,
        other => panic!("{other:?}"),
    }
}

fn keys(node: &Node) -> Vec<&str> {
    match &node.kind {
        Kind::Map(pairs) => pairs.iter().map(|(key, _)| key.text.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scalars_mean_what_the_core_schema_says() {
    for (text, kind) in [
        ("~", "nothing"),
        ("null", "nothing"),
        ("true", "a boolean"),
        ("FALSE", "a boolean"),
        ("yes", "a string"),
        ("0x10", "a number"),
        ("0o17", "a number"),
        ("0600", "a number"),
        ("-12", "a number"),
        ("3.10", "a number"),
        ("1e3", "a number"),
        (".inf", "a number"),
        ("1.2.3", "a string"),
        ("12:30", "a string"),
        ("1_000", "a string"),
        ("'12'", "a string"),
        ("\"true\"", "a string"),
        ("!!str 12", "a string"),
        ("! 12", "a string"),
        ("e3", "a string"),
        (".", "a string"),
        ("0x-1", "a string"),
    ] {
        assert_eq!(scalar(text).kind(), kind, "{text}");
    }
    assert_eq!(scalar("0x10").int(), Some(16));
    assert_eq!(scalar("0600").int(), Some(600));
    assert_eq!(scalar("3.10").text, "3.10");
    assert_eq!(scalar("1.5").number(), Some(1.5));
    assert_eq!(scalar("7").number(), Some(7.0));
}

#[test]
fn keys_have_places_and_stand_once() {
    let (node, errors) = read("a: 1\n\nb:\n  - x\na: 2\n");
    let node = node.unwrap();
    assert_eq!(keys(&node), ["a", "b"]);
    assert_eq!(errors, ["f:5:1: the key a is there twice"]);
    let Kind::Map(pairs) = node.kind else { panic!() };
    assert_eq!(pairs[1].0.place, Place { line: 3, column: 1 });
    assert_eq!(pairs[1].1.place, Place { line: 4, column: 3 });
}

#[test]
fn merge_keys_give_what_is_not_there() {
    let text = "x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz:\n  <<: [*x, *y]\n  a: 9\n";
    let (node, errors) = read(text);
    assert!(errors.is_empty(), "{errors:?}");
    let Kind::Map(pairs) = node.unwrap().kind else { panic!() };
    let z = &pairs[2].1;
    assert_eq!(keys(z), ["a", "b", "c"]);
    let Kind::Map(pairs) = &z.kind else { panic!() };
    let values: Vec<_> = pairs
        .iter()
        .map(|(_, value)| match &value.kind {
            Kind::Scalar(scalar) => scalar.text.as_str(),
            _ => panic!(),
        })
        .collect();
    assert_eq!(values, ["9", "2", "4"]);
    assert_eq!(read("<<: 5").1, ["f:1:5: << takes a mapping or a list of mappings"]);
}

#[test]
fn mistakes_have_a_place() {
    assert!(read("a: [1\nb: 2").1[0].starts_with("f:2:"), "{:?}", read("a: [1\nb: 2"));
    assert!(read("a: *b").1[0].starts_with("f:1:4:"), "{:?}", read("a: *b"));
    assert!(read("a: &a [*a]").1[0].starts_with("f:1:8:"), "{:?}", read("a: &a [*a]"));
    assert!(read("---\na: 1\n---\nb: 1\n").1[0].contains("more than one document"));
    assert!(read("? [a]\n: 1").1[0].contains("a key is a word"));
    assert!(read("a: !secret x").1[0].contains("the tag !secret means nothing here"));
}

#[test]
fn an_empty_file_is_empty() {
    for text in ["", "# nothing\n", "\n\n", "\u{feff}"] {
        let (node, errors) = read(text);
        assert!(node.is_none_or(|node| node.is_null()) && errors.is_empty(), "{text:?}");
    }
}

#[test]
fn a_hostile_file_costs_little() {
    let begun = Instant::now();
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for n in 1..60 {
        bomb += &format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1);
    }
    assert!(read(&bomb).1[0].contains("more than 100 things"));
    let wide = format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(20_000), "*a,".repeat(90));
    assert!(read(&wide).1[0].contains("holds too much"));
    let hundred = format!("a: &a 1\nb: [{}]\n", "*a,".repeat(100));
    assert!(read(&hundred).1.is_empty());
    assert!(read(&format!("a: &a 1\nb: [{}]\n", "*a,".repeat(101))).1[0].contains("100"));
    assert!(read(&"[".repeat(65)).1[0].contains("deeper"));
    assert!(read(&format!("{}{}", "[".repeat(64), "]".repeat(64))).1.is_empty());
    assert!(read(&"x".repeat(LARGEST + 1)).1[0].contains("1 MiB"));
    for unit in [
        "[", "{a: ", "[?", "[#]\n", "- ", "? ", "a:\n", "#", "x ", "]", "*a ", "&a ", "!!x ", "\"",
        "a: \"", "|\n", "%T\n", "---\n", "\t", " ", ": ", ",", "'\n", "{?",
    ] {
        read(&unit.repeat(LARGEST / 8 / unit.len()));
        read(&format!("gh: {}", unit.repeat(LARGEST / 8 / unit.len())));
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn aliases_can_be_refused() {
    for (text, column) in [("a: &x 1\n", 4), ("a: *x\n", 4), ("a: &x {b: 1}\n", 4)] {
        let faults = parse(text, Aliases::Refused).faults;
        assert_eq!(faults[0].place.line, 1, "{text} {faults:?}");
        assert!(faults[0].place.column >= column, "{text} {faults:?}");
    }
    // A merge key is a key like any other then.
    let parsed = parse("<<: {a: 1}\nb: 2\n", Aliases::Refused);
    assert_eq!(keys(&parsed.root.unwrap()), ["<<", "b"]);
}
