//! A command line for Trello or ClickUp: a write asks, a read is a GET, and a request has only a
//! method, a path, a query and a body that stand in this table, which is written down a second time
//! on purpose. The command line can be told from the request: nothing in it came from elsewhere.
//!
//! The first word is service and operation: `trello card.move`.
#![no_main]

use connectors::connector::{Action, ApiCall, Input, Op, Prepared};
use connectors::registry;
use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;

/// Operation, method, paths and what an id in them was called, names in the query, names in the body.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

const TRELLO: &[Row] = &[
    ("whoami", "GET", &[("/members/me", "")], "fields", ""),
    ("board.list", "GET", &[("/members/me/boards", "")], "filter fields", ""),
    ("board.view", "GET", &[("/boards/*", "")], "fields lists list_fields labels label_fields members member_fields", ""),
    ("list.list", "GET", &[("/boards/*/lists", "")], "filter fields", ""),
    ("card.list", "GET", &[("/lists/*/cards", "--list"), ("/boards/*/cards", "--board")], "fields", ""),
    (
        "card.view",
        "GET",
        &[("/cards/*", "")],
        "fields members member_fields checklists checklist_fields actions actions_limit action_fields action_memberCreator_fields",
        "",
    ),
    ("card.create", "POST", &[("/cards", "")], "", "idList name desc due idLabels idMembers pos"),
    ("card.move", "PUT", &[("/cards/*", "")], "", "idList idBoard pos"),
    ("card.update", "PUT", &[("/cards/*", "")], "", "name desc due dueComplete closed"),
    ("card.comment", "POST", &[("/cards/*/actions/comments", "")], "", "text"),
];

const CLICKUP: &[Row] = &[
    ("whoami", "GET", &[("/user", "")], "", ""),
    ("team.list", "GET", &[("/team", "")], "", ""),
    ("space.list", "GET", &[("/team/*/space", "")], "archived", ""),
    ("folder.list", "GET", &[("/space/*/folder", "")], "archived", ""),
    ("list.list", "GET", &[("/space/*/list", "--space"), ("/folder/*/list", "--folder")], "archived", ""),
    (
        "task.list",
        "GET",
        &[("/list/*/task", "--list"), ("/team/*/task", "--team")],
        "page include_closed subtasks reverse order_by statuses[] assignees[] tags[]",
        "",
    ),
    ("task.view", "GET", &[("/task/*", "")], "custom_task_ids team_id include_markdown_description include_subtasks", ""),
    ("task.comments", "GET", &[("/task/*/comment", "")], "custom_task_ids team_id", ""),
    (
        "task.create",
        "POST",
        &[("/list/*/task", "--list")],
        "",
        "name description markdown_content status priority due_date due_date_time assignees tags parent",
    ),
    (
        "task.update",
        "PUT",
        &[("/task/*", "")],
        "custom_task_ids team_id",
        "name description markdown_content status priority due_date due_date_time assignees archived",
    ),
    ("task.comment", "POST", &[("/task/*/comment", "")], "custom_task_ids team_id", "comment_text assignee notify_all"),
];

fn is_id(service: &str, text: &str) -> bool {
    match service {
        "trello" if text.len() == 24 => text.bytes().all(|b| b.is_ascii_hexdigit()),
        "trello" => text.len() == 8 && text.bytes().all(|b| b.is_ascii_alphanumeric()),
        _ => (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
    }
}

/// The id in a path that has the template's shape; empty when it has none.
fn fitting<'p>(service: &str, template: &str, path: &'p str) -> Option<&'p str> {
    let (known, parts): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(known, part): (&&str, &&str)| known == part || (*known == "*" && is_id(service, part));
    let fits = known.len() == parts.len() && known.iter().zip(&parts).all(same);
    let id = known.iter().position(|part| *part == "*").map_or("", |at| parts[at.min(parts.len() - 1)]);
    fits.then_some(id)
}

/// The flags that make this pair of a query.
fn asked(name: &str, value: &str) -> Vec<String> {
    let flag = |flag: &str| vec![format!("{flag}={value}")];
    match (name, value) {
        ("filter", "closed") => vec!["--closed".into()],
        ("archived", "true") => vec!["--archived".into()],
        ("include_closed", "true") => vec!["--closed".into()],
        ("subtasks" | "include_subtasks", "true") => vec!["--subtasks".into()],
        ("reverse", "true") => vec!["--reverse".into()],
        ("filter", "open") | ("archived", "false") | ("custom_task_ids" | "include_markdown_description", "true") => vec![],
        ("page", _) => flag("--page"),
        ("order_by", _) => flag("--order"),
        ("statuses[]", _) => flag("--status"),
        ("assignees[]", _) => flag("--assignee"),
        ("tags[]", _) => flag("--tag"),
        ("team_id", _) => flag("--team"),
        // The connector's own words.
        _ => {
            assert!(value.bytes().all(|b| b.is_ascii_alphanumeric() || b",_".contains(&b)), "{name}={value}");
            vec![]
        }
    }
}

/// The flags that make this field of a body. None for a moment that has no spelling of its own.
fn given(call: &ApiCall, name: &str, value: &Json) -> Option<Vec<String>> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let each = |flag: &str, parts: Vec<String>| parts.iter().map(|part| format!("{flag}={part}")).collect::<Vec<_>>();
    let list = |value: &Json| -> Vec<String> {
        let parts = value.as_array().into_iter().flatten();
        parts.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect()
    };
    let flag = match name {
        "idList" => "--list",
        "idBoard" => "--board",
        "name" => "--name",
        "desc" => "--desc",
        "pos" => "--position",
        "text" | "comment_text" => "--text",
        "description" => "--description",
        "markdown_content" => "--markdown",
        "status" => "--status",
        "parent" => "--parent",
        "assignee" => "--assignee",
        "archived" => "--archived",
        "closed" => "--closed",
        "dueComplete" => "--done",
        "idLabels" => return Some(each("--label", text.split(',').map(str::to_owned).collect())),
        "idMembers" => return Some(each("--member", text.split(',').map(str::to_owned).collect())),
        "tags" => return Some(each("--tag", list(value))),
        "assignees" if value.is_array() => return Some(each("--assignee", list(value))),
        "assignees" => {
            assert!(value.as_object().is_some_and(|both| both.keys().all(|key| key == "add" || key == "rem")), "{value}");
            return Some([each("--assign", list(&value["add"])), each("--unassign", list(&value["rem"]))].concat());
        }
        "notify_all" => return Some(value.as_bool()?.then(|| "--notify-all".to_owned()).into_iter().collect()),
        "priority" => {
            let names = ["none", "urgent", "high", "normal", "low"];
            return Some(vec![format!("--priority={}", names[value.as_u64().unwrap_or(0) as usize])]);
        }
        "due" | "due_date" if value.is_null() => return Some(vec!["--due=none".into()]),
        "due" => "--due",
        "due_date" => {
            let timed = call.body.as_ref()?["due_date_time"].as_bool()?;
            return Some(vec![format!("--due={}", moment(value.as_i64()?, timed)?)]);
        }
        "due_date_time" => return Some(vec![]),
        other => panic!("{other}"),
    };
    Some(vec![format!("{flag}={text}")])
}

/// Milliseconds since 1970 as a date. None outside of the years that have four digits.
fn moment(millis: i64, timed: bool) -> Option<String> {
    let (days, seconds) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000) / 1000);
    assert!(timed || seconds == 0);
    let mut rest = days;
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    while rest >= 365 + i64::from(leap(year)) {
        rest -= 365 + i64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = lengths.iter().position(|length| {
        let here = rest < *length;
        rest -= if here { 0 } else { *length };
        here
    })?;
    let date = format!("{year:04}-{:02}-{:02}", month + 1, rest + 1);
    let time = format!("T{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60);
    (days >= 0 && year <= 9999).then(|| if timed { date + &time } else { date })
}

fn parse(op: &Op, args: &[String]) -> Option<Prepared> {
    (op.parse)(&Input { args, stdin: None }).ok()
}

/// The command line the request says; what it says has to be in the table.
fn told(service: &str, op: &Op, call: &ApiCall) -> Option<Vec<String>> {
    let table = if service == "trello" { TRELLO } else { CLICKUP };
    let row = table.iter().find(|row| row.0 == op.info.name).unwrap_or_else(|| panic!("{} has no row", op.info.name));
    let (_, method, paths, query, body) = row;
    assert_eq!(call.method.as_str(), *method);
    let found = paths.iter().find_map(|(template, flag)| Some((flag, fitting(service, template, &call.path)?)));
    let (flag, id) = found.unwrap_or_else(|| panic!("{}", call.path));
    let mut words: Vec<String> = (!flag.is_empty()).then(|| format!("{flag}={id}")).into_iter().collect();
    for (name, value) in &call.query {
        assert!(query.split(' ').any(|known| known == name), "{name}={value}");
        words.extend(asked(name, value));
    }
    assert_eq!(call.body.is_some(), !body.is_empty());
    for (name, value) in call.body.iter().flat_map(|body| body.as_object().expect("an object")) {
        assert!(body.split(' ').any(|known| known == name), "{name}: {value}");
        words.extend(given(call, name, value)?);
    }
    if flag.is_empty() && !id.is_empty() {
        words.extend(["--".to_owned(), id.to_owned()]);
    }
    Some(words)
}

fuzz_target!(|text: &str| {
    let words: Vec<String> = text.split('\u{1}').map(str::to_owned).collect();
    let Some((service, op)) = words[0].split_once(' ') else { return };
    let Some(connector) = registry::find(service).filter(|c| ["trello", "clickup"].contains(&c.service)) else { return };
    let Some(op) = connector.op(op) else { return };
    // A file's name and standard input are no way in.
    assert!((op.parse)(&Input { args: &words[1..], stdin: Some("x") }).is_err());
    let Some(prepared) = parse(op, &words[1..]) else { return };
    assert_eq!(prepared.ask.is_some(), op.info.write);
    let Action::Call(call) = &prepared.action else { panic!("no request") };
    if let Some(again) = told(service, op, call) {
        let again = parse(op, &again).unwrap_or_else(|| panic!("{again:?} from {call:?}"));
        assert_eq!(again.action, prepared.action);
    }
});
