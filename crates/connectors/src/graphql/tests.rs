use super::*;
use apollo_parser::cst::{CstNode, Definition as TheirDefinition};
use proptest::prelude::*;

fn printed(source: &str) -> String {
    Query::parse(source).unwrap_or_else(|e| panic!("{source:?}: {e}")).to_string()
}

fn fault(source: &str) -> Fault {
    match Query::parse(source) {
        Err(fault) => fault,
        Ok(query) => panic!("{source:?} was taken as {query}"),
    }
}

#[test]
fn a_document_comes_back_in_one_form() {
    for (source, wanted) in [
        ("{ viewer { id } }", "{viewer{id}}"),
        ("query { viewer { id } }", "{viewer{id}}"),
        (
            "query Q($a: [ID!]! = [\"x\"], $b: Int @d) @e(f: 1) { x }",
            "query Q($a:[ID!]!=[\"x\"] $b:Int@d)@e(f:1){x}",
        ),
        ("query ($a: Int) { x(a: $a) }", "query($a:Int){x(a:$a)}"),
        (
            "{ a: x(b: {c: [1, -2.5e3, true, null, UP], d: \"\"}) @skip(if: $v) { y } }",
            "{a:x(b:{c:[1 -2.5e3 true null UP] d:\"\"})@skip(if:$v){y}}",
        ),
        (
            "fragment F on Issue { id } query { issues { nodes { ...F ... on Bug { n } ... @include(if: true) { m } } } }",
            "fragment F on Issue{id} {issues{nodes{...F ...on Bug{n} ...@include(if:true){m}}}}",
        ),
        (
            "{ x(a: \"\"\"\n    one\n      two \\\"\"\" three\n  \"\"\") }",
            "{x(a:\"one\\n  two \\\"\\\"\\\" three\")}",
        ),
        ("{ x(a: \"\\u00e9\\uD83D\\uDE00\\u{1F600}\\t\\/\") }", "{x(a:\"é😀😀\\u0009/\")}"),
        (
            "{ query: mutation { fragment on subscription } }",
            "{query:mutation{fragment on subscription}}",
        ),
    ] {
        let once = printed(source);
        assert_eq!(once, wanted);
        assert_eq!(Query::parse(&once).unwrap(), Query::parse(source).unwrap());
    }
}

#[test]
fn relay_19_39_queries_pass() {
    for source in [
        "{ viewer { id } }",
        "# c\nquery Q { teams { id } }",
        "# c\rquery Q { teams { id } }",
        "\u{feff}query { x }",
        "{ issue(id:\"mutation\") { id } }",
        "{ issue(id:\"\"\"mutation { x }\"\"\") { id } }",
        "{ mutation: viewer { id } }",
        "fragment F on Issue { id } query { issues { nodes { ...F } } }",
        "query mutation { x }",
        ",,{ x, y }\r\n",
    ] {
        printed(source);
    }
}

#[test]
fn relay_19_40_whatever_is_no_query_is_refused() {
    for source in [
        "mutation { x }",
        "# c\n mutation { x }",
        "# c\rmutation { x }",
        "fragment F on Issue {id} mutation M { x }",
        "query A { x } mutation B { y }",
    ] {
        assert_eq!(fault(source), Fault::Operation("mutation".into()), "{source:?}");
    }
    assert_eq!(fault("subscription { x }"), Fault::Operation("subscription".into()));
    assert_eq!(fault("query A { x } query B { y }"), Fault::SecondOperation);
    assert_eq!(fault("{ x } { y }"), Fault::SecondOperation);
    assert_eq!(fault("fragment F on I { id }"), Fault::NoOperation);
    assert_eq!(fault(""), Fault::Empty);
    assert_eq!(fault(" # only this"), Fault::Empty);
    assert!(matches!(fault("\"d\" query { x }"), Fault::Definition(_)));
    assert!(matches!(fault("extend type A { x: Int }"), Fault::Definition(_)));
    for source in [
        "MUTATION { x }",
        "\u{a0}mutation { x }",
        "\u{feff}\u{feff}{ x }",
        "{ \u{feff}x }",
        "\u{2028}{ x }",
        "{ x\u{200b} }",
        "{ x }\0",
        "-mutation { x }",
        "/* c */ { x }",
        "-",
        "{ }",
        "{ x",
        "{ x }}",
        "{ x() }",
        "{ x(a: 01) }",
        "{ x(a: 1x) }",
        "{ x(a: 1.) }",
        "{ x(a: \"\n\") }",
        "{ x(a: \"\\q\") }",
        "{ x(a: \"\\uD83D\") }",
        "{ x(a: \"\"\") }",
        "{ ..x }",
        "{ ....x }",
        "query Q($a: Int = $b) { x }",
        "query Q() { x }",
        "query Q { x } operationName",
        "fragment on on I { x } { y }",
        "{ ...on }",
    ] {
        fault(source);
    }
}

#[test]
fn relay_a14_fields_that_hold_credentials_are_refused() {
    for field in [
        "secret",
        "token",
        "accessToken",
        "apiKey",
        "apiKeys",
        "clientSecret",
        "signingSecret",
        "APIKEY",
    ] {
        assert_eq!(fault(&format!("{{ webhooks {{ x: {field} }} }}")), Fault::Secret(field.into()));
        assert!(matches!(
            fault(&format!("{{ y }} fragment F on W {{ {field} }}")),
            Fault::Secret(_)
        ));
    }
    printed("{ token: viewer(secret: \"apiKey\") { id } }");
}

#[test]
fn limits_count_what_the_server_would_see() {
    let nested = |n: usize| format!("{}x{}", "{ x ".repeat(n - 1) + "{ ", " }".repeat(n));
    printed(&nested(15));
    assert_eq!(fault(&nested(16)), Fault::TooDeep(15));
    let fields = |n: usize| format!("{{ {} }}", "x ".repeat(n));
    printed(&fields(500));
    assert_eq!(fault(&fields(501)), Fault::TooManySelections);
    let aliases =
        |n: usize| format!("{{ {} }}", (0..n).map(|i| format!("a{i}:x ")).collect::<String>());
    printed(&aliases(64));
    assert_eq!(fault(&aliases(65)), Fault::TooManyAliases);
    // Fragments hide neither depth nor number, nor do they make the counting slow.
    let bomb: String =
        (0..40).map(|i| format!("fragment F{i} on T {{ ...F{n} ...F{n} }} ", n = i + 1)).collect();
    fault(&format!("{{ ...F0 }} {bomb} fragment F40 on T {{ x }}"));
    let chain: String =
        (0..20).map(|i| format!("fragment F{i} on T {{ x {{ ...F{} }} }} ", i + 1)).collect();
    assert_eq!(
        fault(&format!("{{ ...F0 }} {chain} fragment F20 on T {{ x }}")),
        Fault::TooDeep(15)
    );
    assert_eq!(
        fault("{ ...F } fragment F on T { ...G } fragment G on T { ...F }"),
        Fault::Fragment("F".into())
    );
    assert_eq!(fault("{ ...F }"), Fault::Fragment("F".into()));
    assert_eq!(
        fault("{ ...F } fragment F on T { x } fragment F on T { y }"),
        Fault::Fragment("F".into())
    );
    assert_eq!(fault(&format!("{{ x(a: {}) }}", "[".repeat(60_000))), Fault::TooDeep(32));
    assert_eq!(fault(&format!("query ($a: {}) {{ x }}", "[".repeat(60_000))), Fault::TooDeep(32));
    assert_eq!(fault(&"{ ... ".repeat(9_000)), Fault::TooDeep(15));
    assert!(matches!(fault(&"x".repeat(MAX_SOURCE + 1)), Fault::TooLong(_)));
}

/// How another parser reads a document: its faults, and how many operations it sees and how many
/// of those are queries.
fn theirs(source: &str) -> (usize, usize, usize) {
    let tree = apollo_parser::Parser::new(source).parse();
    let operations: Vec<_> = tree
        .document()
        .definitions()
        .filter_map(|d| match d {
            TheirDefinition::OperationDefinition(operation) => Some(operation),
            _ => None,
        })
        .collect();
    let queries = operations
        .iter()
        .filter(|o| o.operation_type().is_none_or(|t| t.syntax().text() == "query"));
    (tree.errors().count(), operations.len(), queries.count())
}

/// Words a hostile document could be made of.
fn word() -> impl Strategy<Value = String> {
    static WORDS: &[&str] = &[
        "query",
        "mutation",
        "subscription",
        "fragment",
        "on",
        "F",
        "x",
        "y:",
        "{",
        "}",
        "{",
        "}",
        "(",
        ")",
        "a:",
        "$v",
        "$v:",
        "Int",
        "!",
        "=",
        "1",
        "-1.5e2",
        "\"s\"",
        "\"\"\"b\\\"\"\" mutation{x}\"\"\"",
        "\"\\u0041\"",
        "...",
        "...F",
        "@d",
        "[",
        "]",
        "# c\n",
        "# c\r",
        "# c",
        ",",
        "\u{feff}",
        "\u{a0}",
        "\n",
        "\r",
        "schema",
        "\"",
        "\"\"\"",
        "\\",
        "&",
        "|",
    ];
    prop_oneof![9 => proptest::sample::select(WORDS).prop_map(str::to_owned), 1 => ".{0,3}"]
}

/// Documents with a good chance to be valid.
fn document() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("$v".to_owned()),
        Just("\"mutation { x }\"".to_owned()),
        Just("\"\"\" subscription \\\"\"\" { x } \n  y \"\"\"".to_owned()),
        "[a-z]{1,4}",
        "\"[^\"\\\\\\p{C}]{0,6}\"",
        "\"\"\"[^\"\\\\\\p{C}]{0,6}\n\t *[^\"\\\\\\p{C}]{0,6}\"\"\"",
    ];
    let field = ("[a-z]{1,4}", prop::option::of("[a-z]{1,4}"), prop::option::of(value)).prop_map(
        |(name, alias, value)| {
            let alias = alias.map_or(String::new(), |a| format!("{a}: "));
            let arguments = value.map_or(String::new(), |v| format!("(a: [{v}, {{b: {v}}}])"));
            format!("{alias}{name}{arguments}")
        },
    );
    let set = field.prop_recursive(4, 24, 4, |inner| {
        (prop::collection::vec(inner, 1..4), "(x|\\.{3}|\\.{3} on T|\\.{3}@d)")
            .prop_map(|(all, head)| format!("{head} {{ {} }}", all.join("\n")))
    });
    let operation = "(|query|query Q|query mutation|query Q\\(\\$v: \\[Int!\\] = \\[1\\]\\)|mutation|subscription S)";
    prop::collection::vec((operation, prop::collection::vec(set, 1..3)), 1..3).prop_map(|all| {
        all.into_iter()
            .map(|(head, sets)| format!("{head} {{ {} }}", sets.join(" ")))
            .collect::<Vec<_>>()
            .join("# c\r")
    })
}

fn agree(source: &str) -> Result<bool, TestCaseError> {
    let Ok(query) = Query::parse(source) else { return Ok(false) };
    let again = query.to_string();
    for text in [source, &again] {
        prop_assert_eq!(theirs(text), (0, 1, 1), "{:?}", text);
    }
    prop_assert_eq!(&Query::parse(&again).unwrap(), &query);
    prop_assert_eq!(Query::parse(&again).unwrap().to_string(), again.as_str());
    let harmless = again.starts_with(['{', 'q', 'f']);
    prop_assert!(harmless, "{:?} could be read as a flag", again);
    prop_assert!(!again.chars().any(char::is_control));
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn relay_a11_another_parser_sees_one_query_in_whatever_passes(words in prop::collection::vec(word(), 0..24), glue in "[ ,\n\r]?") {
        agree(&words.join(&glue))?;
    }

    #[test]
    fn relay_a11_the_printed_document_means_the_same(source in document()) {
        agree(&source)?;
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC*") {
        agree(&String::from_utf8_lossy(&bytes))?;
        agree(&text)?;
    }
}

#[test]
fn the_other_parser_is_asked_about_documents_that_pass() {
    for source in ["{ x }", "query Q($v: [Int!] = [1]) { y(a: [$v]) }", "# c\rquery mutation { x }"]
    {
        assert!(agree(source).unwrap(), "{source:?}");
    }
    assert_eq!(theirs("# c\rmutation { x }"), (0, 1, 0));
}
