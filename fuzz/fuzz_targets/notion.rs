//! A command line for Notion: a write asks, a read never writes, and the host's `ntn` gets one shape
//! of a call, in which no word is a flag, a header or a file of the box's choosing.
//!
//! The first word is the operation; what follows `\u{2}` is the text beside the arguments.
#![no_main]

use connectors::connector::{Action, Input, Op, Prepared};
use connectors::notion::CONNECTOR;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value as Json, json};

const VERSION: &str = "--notion-version=2026-03-11";

fn is_id(text: &str) -> bool {
    let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| part.bytes().all(lower_hex))
}

/// An id in any form `ntn` and Notion take.
fn is_loose_id(text: &str) -> bool {
    text.bytes().filter(u8::is_ascii_hexdigit).count() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn is_endpoint(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    text.strip_prefix("v1/").is_some_and(|rest| rest.split('/').all(plain))
}

fn is_query(word: &str) -> bool {
    let Some((name, value)) = word.split_once("==") else { return false };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-[]".contains(&b);
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(plain) && !value.starts_with('@') && !value.contains(":=")
}

fn read(op: &Op, args: &[String], stdin: Option<&str>) {
    if op.info.name == "whoami" {
        assert_eq!((args, stdin), (&["api", "-X", "GET", VERSION, "--", "v1/users/me"].map(String::from)[..], None));
        return;
    }
    // About the program itself; no request is made.
    if let ["api", about] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        assert!(["ls", "--help", "--version"].contains(&about) && stdin.is_none(), "{args:?}");
        return;
    }
    assert_eq!(args[..2], ["api", "-X"]);
    let end = args.iter().position(|word| word == "--").expect("flags end");
    let [switches @ .., version] = &args[3..end] else { panic!("{args:?}") };
    let date = version.strip_prefix("--notion-version=").expect("a version is named");
    assert!(date.len() == 10 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-'), "{args:?}");
    let known = ["--spec", "--docs", "--help", "--verbose", "--version"];
    assert!(switches.iter().all(|word| known.contains(&word.as_str())), "{args:?}");
    let [endpoint, query @ ..] = &args[end + 1..] else { panic!("{args:?}") };
    assert!(is_endpoint(endpoint) && query.iter().all(|word| is_query(word)), "{args:?}");
    let parts: Vec<&str> = endpoint.split('/').collect();
    match (args[2].as_str(), stdin, &parts[..]) {
        ("GET", None, _) => {}
        ("POST", Some(body), ["v1", "search"]) => assert!(is_object(body), "{body}"),
        ("POST", Some(body), ["v1", "databases" | "data_sources", id, "query"]) => assert!(is_loose_id(id) && is_object(body), "{args:?}"),
        _ => panic!("{args:?} with {stdin:?}"),
    }
}

fn is_object(body: &str) -> bool {
    serde_json::from_str::<Json>(body).is_ok_and(|body| body.is_object())
}

/// The whole body, from the words the question shows: nothing else is sent.
fn write(op: &Op, args: &[String], stdin: Option<&str>) -> Vec<String> {
    let body: Json = serde_json::from_str(stdin.expect("a write has a body")).expect("of JSON");
    let [api, x, method, version, end, endpoint] = args else { panic!("{args:?}") };
    assert_eq!([api, x, version, end], ["api", "-X", VERSION, "--"]);
    let title = body["properties"]["title"]["title"][0]["text"]["content"].as_str();
    let titled = title.map(|title| json!({ "title": { "title": [{ "text": { "content": title } }] } }));
    let mut again: Vec<String> = title.map(|title| format!("--title={title}")).into_iter().collect();
    let rich = || {
        let pieces = body["rich_text"].as_array().expect("a text");
        let text: String = pieces.iter().map(|piece| piece["text"]["content"].as_str().expect("a piece")).collect();
        let whole: Vec<Json> = pieces.iter().map(|piece| json!({ "text": { "content": piece["text"]["content"] } })).collect();
        (text, whole)
    };
    let expected = match op.info.name {
        "page.create" => {
            assert_eq!((method.as_str(), endpoint.as_str()), ("POST", "v1/pages"));
            let kinds = [("page", "page_id"), ("database", "database_id"), ("data-source", "data_source_id")];
            let (kind, key) = kinds.into_iter().find(|(_, key)| body["parent"]["type"] == *key).expect("a parent");
            let id = body["parent"][key].as_str().filter(|id| is_id(id)).expect("an id");
            let mut expected = json!({ "parent": { "type": key, key: id } });
            again.push(format!("--parent={kind}:{id}"));
            if let Some(titled) = titled {
                expected["properties"] = titled;
            }
            if let Some(text) = body["markdown"].as_str() {
                expected["markdown"] = text.into();
                again.push(format!("--content={text}"));
            }
            expected
        }
        "page.update" => {
            assert_eq!(method, "PATCH");
            let rest = endpoint.strip_prefix("v1/pages/").expect("a page");
            let (id, markdown) = rest.strip_suffix("/markdown").map_or((rest, false), |id| (id, true));
            assert!(is_id(id), "{endpoint}");
            let text = body["replace_content"]["new_str"].as_str();
            assert_eq!(text.is_some(), markdown);
            let expected = match (text, titled) {
                (Some(text), None) => {
                    again.push(format!("--content={text}"));
                    json!({ "type": "replace_content", "replace_content": { "new_str": text } })
                }
                (None, Some(titled)) => json!({ "properties": titled }),
                _ => {
                    again.push("--archive".to_owned());
                    json!({ "in_trash": true })
                }
            };
            again.extend(["--".to_owned(), id.to_owned()]);
            expected
        }
        "comment.add" => {
            assert_eq!((method.as_str(), endpoint.as_str()), ("POST", "v1/comments"));
            let (text, whole) = rich();
            again.push(format!("--text={text}"));
            if let Some(id) = body["discussion_id"].as_str() {
                assert!(is_id(id), "{id}");
                again.push(format!("--discussion={id}"));
                json!({ "discussion_id": id, "rich_text": whole })
            } else {
                let id = body["parent"]["page_id"].as_str().filter(|id| is_id(id)).expect("a page");
                again.push(format!("--page={id}"));
                json!({ "parent": { "type": "page_id", "page_id": id }, "rich_text": whole })
            }
        }
        other => panic!("{other}"),
    };
    assert_eq!(body, expected);
    again
}

fn parse(op: &Op, args: &[String], stdin: Option<&str>) -> Option<Prepared> {
    (op.parse)(&Input { args, stdin }).ok()
}

fuzz_target!(|text: &str| {
    let (line, stdin) = text.split_once('\u{2}').map_or((text, None), |(line, stdin)| (line, Some(stdin)));
    let words: Vec<String> = line.split('\u{1}').map(str::to_owned).collect();
    let Some(op) = CONNECTOR.op(&words[0]) else { return };
    let Some(prepared) = parse(op, &words[1..], stdin) else { return };
    assert_eq!(prepared.ask.is_some(), op.info.write);
    let Action::Run { args, stdin } = &prepared.action else { panic!("no program") };
    assert!(args.iter().all(|word| !word.contains('\0')), "{args:?}");
    let again = if op.info.write {
        write(op, args, stdin.as_deref())
    } else {
        read(op, args, stdin.as_deref());
        if op.info.name == "whoami" {
            return;
        }
        let body = stdin.iter().map(|body| format!("--data={body}"));
        args[1..].iter().filter(|word| *word != "--").cloned().chain(body).collect()
    };
    assert_eq!(parse(op, &again, None).as_ref(), Some(&prepared), "{again:?}");
});
