//! Trello, by its REST API: boards, lists and cards.
//!
//! Reads name the fields they want. That keeps answers short, and keeps out what the API would add
//! by itself, such as the mail address that lets anybody who knows it write to a board. Nothing
//! deletes, attaches a file, or touches tokens and webhooks; archiving a card is always asked.

use crate::connector::{Api, Ask, Connector, HttpMethod, Input, Means, Prepared, SecretUse};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Value};
use crate::refusal::Refusal;
use crate::rest::{
    A_DATE, Change, FILES, either, id, is_date, is_said, line, needed, op, query, read, scopes,
    write,
};
use protocol::question::Tier;
use protocol::text::shortened;
use serde_json::Value as Json;

pub static CONNECTOR: Connector = Connector {
    service: "trello",
    title: "Trello",
    about: "Read boards and cards; create, move, change and comment on cards after asking.",
    on_by_default: false,
    means: Means::Http(Api {
        base_url: "https://api.trello.com/1",
        probe: "/members/me",
        authorize,
        login_hint: "make a key and a “token” at trello.com/power-ups/admin, then store them: \
                     'agentbox secrets set trello.key' and 'agentbox secrets set trello.token'",
    }),
    secrets: &[
        SecretUse {
            id: "trello.key",
            env: "",
            about: "The API key of a Power-Up from trello.com/power-ups/admin",
        },
        SecretUse {
            id: "trello.token",
            env: "",
            about: "The “token” made with that key; scope=read is enough for reading",
        },
    ],
    ops: &[
        op("whoami", false, "", "Show whose account it is.", whoami),
        op("board.list", false, "[--closed]", "List the boards.", board_list),
        op(
            "board.view",
            false,
            "<board>",
            "Show a board with its lists, labels and members.",
            board_view,
        ),
        op("list.list", false, "<board> [--closed]", "List a board's lists.", list_list),
        op(
            "card.list",
            false,
            "--list <id> | --board <id>",
            "List the open cards of a list or board.",
            card_list,
        ),
        op(
            "card.view",
            false,
            "<card>",
            "Show a card with its checklists and comments.",
            card_view,
        ),
        op(
            "card.create",
            true,
            "--list <id> --name <text> [--desc <text>] [--due <date>] [--label <id>]… [--member <id>]… [--position top|bottom]",
            "Create a card.",
            card_create,
        ),
        op(
            "card.move",
            true,
            "<card> --list <id> [--board <id>] [--position top|bottom]",
            "Move a card to another list.",
            card_move,
        ),
        op(
            "card.update",
            true,
            "<card> [--name <text>] [--desc <text>] [--due <date>|none] [--done true|false] [--closed true|false]",
            "Change a card, or archive it.",
            card_update,
        ),
        op("card.comment", true, "<card> --text <text>", "Comment on a card.", card_comment),
    ],
    own_ops: &[],
};

fn authorize(values: &[&str]) -> (&'static str, String) {
    let value = |at: usize| values.get(at).copied().unwrap_or_default();
    let text = format!("OAuth oauth_consumer_key=\"{}\", oauth_token=\"{}\"", value(0), value(1));
    ("authorization", text)
}

const MEMBER_FIELDS: &str = "id,username,fullName";
const BOARD_FIELDS: &str = "id,name,desc,closed,shortLink,url";
const LIST_FIELDS: &str = "id,name,closed,pos";
const CARD_FIELDS: &str = "id,name,desc,due,dueComplete,closed,idBoard,idList,idMembers,labels,shortLink,shortUrl,dateLastActivity";

const A_LIST: &str = "a list's id: 24 hex digits";
const A_BOARD: &str = "a board's id: 24 hex digits, or the 8 characters in its address";
const A_CARD: &str = "a card's id: 24 hex digits, or the 8 characters in its address";
const LIST: Value = Value::Checked(is_id, A_LIST);
const BOARD: Value = Value::Checked(is_id_or_link, A_BOARD);
const TEXT: Value = Value::Checked(is_said, "some text");
const POSITION: Value = Value::OneOf(&["top", "bottom"]);
const YES_NO: Value = Value::OneOf(&["true", "false"]);

const REPLACES: &str = "replaces the whole description";

const fn grammar(
    surface: &'static str,
    flags: &'static [Flag],
    positionals: Positionals,
) -> Grammar {
    Grammar { surface, flags, refused: FILES, positionals }
}

const fn one(what: &'static str) -> Positionals {
    Positionals { least: 1, most: 1, what }
}

static WHOAMI: Grammar = grammar("trello whoami", &[], Positionals::NONE);
static BOARD_LIST: Grammar =
    grammar("trello board.list", &[Flag::plain("--closed", None)], Positionals::NONE);
static BOARD_VIEW: Grammar = grammar("trello board.view", &[], one(A_BOARD));
static LIST_LIST: Grammar =
    grammar("trello list.list", &[Flag::plain("--closed", None)], one(A_BOARD));
static CARD_LIST: Grammar = grammar(
    "trello card.list",
    &[Flag::with("--list", None, LIST), Flag::with("--board", None, BOARD)],
    Positionals::NONE,
);
static CARD_VIEW: Grammar = grammar("trello card.view", &[], one(A_CARD));
static CARD_CREATE: Grammar = grammar(
    "trello card.create",
    &[
        Flag::with("--list", None, LIST),
        Flag::with("--name", None, TEXT),
        Flag::with("--desc", None, TEXT),
        Flag::with("--due", None, Value::Checked(is_date, A_DATE)),
        Flag::with("--label", None, Value::Checked(is_id, "a label's id: 24 hex digits"))
            .repeating(),
        Flag::with("--member", None, Value::Checked(is_id, "a member's id: 24 hex digits"))
            .repeating(),
        Flag::with("--position", None, POSITION),
    ],
    Positionals::NONE,
);
static CARD_MOVE: Grammar = grammar(
    "trello card.move",
    &[
        Flag::with("--list", None, LIST),
        Flag::with("--board", None, Value::Checked(is_id, "a board's id: 24 hex digits")),
        Flag::with("--position", None, POSITION),
    ],
    one(A_CARD),
);
static CARD_UPDATE: Grammar = grammar(
    "trello card.update",
    &[
        Flag::with("--name", None, TEXT),
        Flag::with("--desc", None, TEXT),
        Flag::with(
            "--due",
            None,
            Value::Checked(is_date_or_none, "a date like 2026-01-31, or none"),
        ),
        Flag::with("--done", None, YES_NO),
        Flag::with("--closed", None, YES_NO),
    ],
    one(A_CARD),
);
static CARD_COMMENT: Grammar =
    grammar("trello card.comment", &[Flag::with("--text", None, TEXT)], one(A_CARD));

fn is_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_id_or_link(text: &str) -> bool {
    is_id(text) || (text.len() == 8 && text.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn is_date_or_none(text: &str) -> bool {
    text == "none" || is_date(text)
}

fn whoami(input: &Input<'_>) -> Result<Prepared, Refusal> {
    line(&WHOAMI, input)?;
    Ok(read(&["members", "me"], query(&[("fields", "id,username,fullName,url")])))
}

fn board_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&BOARD_LIST, input)?;
    let pairs = [("filter", open_or_closed(&line)), ("fields", BOARD_FIELDS)];
    Ok(read(&["members", "me", "boards"], query(&pairs)))
}

fn open_or_closed(line: &Parsed) -> &'static str {
    if line.has("--closed") { "closed" } else { "open" }
}

fn board_view(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&BOARD_VIEW, input)?;
    let board = id(&BOARD_VIEW, &line, is_id_or_link, A_BOARD)?;
    let pairs = [
        ("fields", BOARD_FIELDS),
        ("lists", "open"),
        ("list_fields", LIST_FIELDS),
        ("labels", "all"),
        ("label_fields", "id,name,color"),
        ("members", "all"),
        ("member_fields", MEMBER_FIELDS),
    ];
    Ok(read(&["boards", board], query(&pairs)))
}

fn list_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&LIST_LIST, input)?;
    let board = id(&LIST_LIST, &line, is_id_or_link, A_BOARD)?;
    let pairs = [("filter", open_or_closed(&line)), ("fields", LIST_FIELDS)];
    Ok(read(&["boards", board, "lists"], query(&pairs)))
}

fn card_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_LIST, input)?;
    let (flag, of) = either(&CARD_LIST, &line, ["--list", "--board"])?;
    let place = if flag == "--list" { "lists" } else { "boards" };
    Ok(read(&[place, of, "cards"], query(&[("fields", CARD_FIELDS)])))
}

fn card_view(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_VIEW, input)?;
    let card = id(&CARD_VIEW, &line, is_id_or_link, A_CARD)?;
    let pairs = [
        ("fields", CARD_FIELDS),
        ("members", "true"),
        ("member_fields", MEMBER_FIELDS),
        ("checklists", "all"),
        ("checklist_fields", "id,name"),
        ("actions", "commentCard"),
        ("actions_limit", "100"),
        ("action_fields", "id,date,data"),
        ("action_memberCreator_fields", MEMBER_FIELDS),
    ];
    Ok(read(&["cards", card], query(&pairs)))
}

fn card_create(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_CREATE, input)?;
    let list = needed(&CARD_CREATE, &line, "--list")?;
    let name = needed(&CARD_CREATE, &line, "--name")?;
    let mut change = Change::default();
    change.set("idList", "List", list);
    change.set("name", "Name", name);
    change.long("desc", line.value("--desc"));
    change.maybe("due", "Due", line.value("--due"));
    change.maybe("idLabels", "Labels", joined(&line, "--label").as_deref());
    change.maybe("idMembers", "Members", joined(&line, "--member").as_deref());
    change.maybe("pos", "Position", line.value("--position"));
    let ask = Ask {
        tier: Tier::Routine,
        title: format!("Create the Trello card “{}”", shortened(name, 80)),
        target: format!("list {list} in Trello"),
        facts: change.facts,
        body: change.text,
        warnings: Vec::new(),
        remember: scopes(
            "trello card.create",
            list,
            format!("create cards in list {list} in Trello"),
            "create cards in any list in Trello",
        ),
    };
    Ok(write(HttpMethod::Post, &["cards"], Vec::new(), change.body, ask))
}

/// Several ids, the way the API takes them.
fn joined(line: &Parsed, flag: &'static str) -> Option<String> {
    let all: Vec<&str> = line.values(flag).collect();
    (!all.is_empty()).then(|| all.join(","))
}

fn card_move(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_MOVE, input)?;
    let card = id(&CARD_MOVE, &line, is_id_or_link, A_CARD)?;
    let list = needed(&CARD_MOVE, &line, "--list")?;
    let mut change = Change::default();
    change.set("idList", "To list", list);
    change.maybe("idBoard", "On board", line.value("--board"));
    change.maybe("pos", "Position", line.value("--position"));
    let ask = Ask {
        tier: Tier::Routine,
        title: format!("Move a Trello card to list {list}"),
        target: format!("card {card} in Trello"),
        facts: change.facts,
        body: None,
        warnings: Vec::new(),
        remember: scopes(
            "trello card.move",
            card,
            format!("move card {card} in Trello"),
            "move any card in Trello",
        ),
    };
    Ok(write(HttpMethod::Put, &["cards", card], Vec::new(), change.body, ask))
}

fn card_update(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_UPDATE, input)?;
    let card = id(&CARD_UPDATE, &line, is_id_or_link, A_CARD)?;
    let mut change = Change::default();
    change.maybe("name", "Name", line.value("--name"));
    change.long("desc", line.value("--desc"));
    match line.value("--due") {
        Some("none") => change.json("due", "Due", Json::Null, "none"),
        due => change.maybe("due", "Due", due),
    }
    change.flag("dueComplete", "Done", line.value("--done"));
    change.flag("closed", "Archived", line.value("--closed"));
    if change.body.is_empty() {
        return Err(CARD_UPDATE.refuse("nothing to change. Give at least one flag."));
    }
    let archive = line.value("--closed") == Some("true");
    let ask = Ask {
        // A card that is put away is out of everybody's sight: asked every time.
        tier: if archive { Tier::Sensitive } else { Tier::Routine },
        title: format!("{} a Trello card", if archive { "Archive" } else { "Change" }),
        target: format!("card {card} in Trello"),
        warnings: line.has("--desc").then(|| REPLACES.to_owned()).into_iter().collect(),
        facts: change.facts,
        body: change.text,
        remember: scopes(
            "trello card.update",
            card,
            format!("change card {card} in Trello"),
            "change any card in Trello",
        )
        .filter(|_| !archive),
    };
    Ok(write(HttpMethod::Put, &["cards", card], Vec::new(), change.body, ask))
}

fn card_comment(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&CARD_COMMENT, input)?;
    let card = id(&CARD_COMMENT, &line, is_id_or_link, A_CARD)?;
    let mut change = Change::default();
    change.long("text", Some(needed(&CARD_COMMENT, &line, "--text")?));
    let ask = Ask {
        tier: Tier::Routine,
        title: "Comment on a Trello card".to_owned(),
        target: format!("card {card} in Trello"),
        facts: Vec::new(),
        body: change.text,
        warnings: Vec::new(),
        remember: scopes(
            "trello card.comment",
            card,
            format!("comment on card {card} in Trello"),
            "comment on any card in Trello",
        ),
    };
    let parts = ["cards", card, "actions", "comments"];
    Ok(write(HttpMethod::Post, &parts, Vec::new(), change.body, ask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::{Action, ApiCall};
    use proptest::prelude::*;

    const LIST_ID: &str = "5abbe4b7ddc1b351ef961414";
    const CARD_ID: &str = "5abbe4b7ddc1b351ef961415";

    fn prepare(name: &str, args: &[&str]) -> Result<Prepared, Refusal> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        (CONNECTOR.op(name).unwrap().parse)(&Input { args: &args, stdin: None })
    }

    fn call(prepared: &Prepared) -> &ApiCall {
        match &prepared.action {
            Action::Call(call) => call,
            other @ Action::Run { .. } => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_ask_nobody_and_name_their_fields() {
        for (op, args, path) in [
            ("whoami", &[][..], "/members/me"),
            ("board.list", &["--closed"], "/members/me/boards"),
            ("board.view", &["aB3dE6gH"], "/boards/aB3dE6gH"),
            ("list.list", &[LIST_ID], "/boards/5abbe4b7ddc1b351ef961414/lists"),
            ("card.list", &["--list", LIST_ID], "/lists/5abbe4b7ddc1b351ef961414/cards"),
            ("card.list", &["--board=aB3dE6gH"], "/boards/aB3dE6gH/cards"),
            ("card.view", &["aB3dE6gH"], "/cards/aB3dE6gH"),
        ] {
            let prepared = prepare(op, args).unwrap();
            let request = call(&prepared);
            assert_eq!((request.method, request.path.as_str()), (HttpMethod::Get, path), "{op}");
            assert_eq!((&request.body, &prepared.ask), (&None, &None), "{op}");
            let fields = request.query.iter().find(|(name, _)| name == "fields").unwrap();
            assert!(!fields.1.contains("all") && !fields.1.contains("mail"), "{op}");
        }
    }

    #[test]
    fn a_card_is_created_from_what_was_shown() {
        let due = "2026-01-31T17:00:00Z";
        let args = [
            "--list",
            LIST_ID,
            "--name",
            "Fix\u{202e} login",
            "--desc",
            "One\ntwo",
            "--due",
            due,
            "--label",
            LIST_ID,
            "--label",
            CARD_ID,
        ];
        let prepared = prepare("card.create", &args).unwrap();
        let request = call(&prepared);
        assert_eq!((request.method, request.path.as_str()), (HttpMethod::Post, "/cards"));
        assert!(request.query.is_empty());
        let body = serde_json::json!({
            "idList": LIST_ID, "name": "Fix\u{202e} login", "desc": "One\ntwo", "due": due,
            "idLabels": format!("{LIST_ID},{CARD_ID}"),
        });
        assert_eq!(request.body, Some(body));
        let ask = prepared.ask.unwrap();
        assert_eq!(ask.title, "Create the Trello card “Fix⟨U+202E⟩ login”");
        assert_eq!(ask.body.as_deref(), Some("One\ntwo"));
        assert_eq!(ask.facts.len(), 4);
        assert_eq!(ask.remember.unwrap().exact.key, format!("trello card.create {LIST_ID}"));
    }

    #[test]
    fn other_writes_go_to_the_card_alone() {
        for (op, args, method, path, body) in [
            (
                "card.move",
                &[CARD_ID, "--list", LIST_ID, "--position", "top"][..],
                HttpMethod::Put,
                format!("/cards/{CARD_ID}"),
                serde_json::json!({"idList": LIST_ID, "pos": "top"}),
            ),
            (
                "card.update",
                &["aB3dE6gH", "--due", "none", "--done", "true"],
                HttpMethod::Put,
                "/cards/aB3dE6gH".to_owned(),
                serde_json::json!({"due": null, "dueComplete": true}),
            ),
            (
                "card.comment",
                &["aB3dE6gH", "--text", "../../tokens?x=1#y"],
                HttpMethod::Post,
                "/cards/aB3dE6gH/actions/comments".to_owned(),
                serde_json::json!({"text": "../../tokens?x=1#y"}),
            ),
        ] {
            let prepared = prepare(op, args).unwrap();
            let request = call(&prepared);
            assert_eq!((request.method, &request.path), (method, &path), "{op}");
            assert_eq!(request.body, Some(body), "{op}");
            assert_eq!(prepared.ask.as_ref().unwrap().tier, Tier::Routine, "{op}");
        }
    }

    #[test]
    fn archiving_is_asked_every_time() {
        let ask = prepare("card.update", &[CARD_ID, "--closed", "true"]).unwrap().ask.unwrap();
        assert_eq!((ask.tier, ask.remember), (Tier::Sensitive, None));
        let ask = prepare("card.update", &[CARD_ID, "--desc", "x"]).unwrap().ask.unwrap();
        assert_eq!(ask.warnings, [REPLACES]);
    }

    #[test]
    fn what_is_no_id_or_no_flag_is_refused() {
        for (op, args) in [
            ("board.view", &["../members/me"][..]),
            ("board.view", &["aB3dE6g"]),
            ("board.view", &["aB3dE6g?"]),
            ("board.view", &["5abbe4b7ddc1b351ef96141g"]),
            ("board.view", &["５abbe4b"]),
            ("board.view", &[]),
            ("board.view", &["aB3dE6gH", "aB3dE6gH"]),
            ("list.list", &["aB3dE6gH/../x"]),
            ("card.list", &[]),
            ("card.list", &["--list", LIST_ID, "--board", LIST_ID]),
            ("card.list", &["--list", "aB3dE6gH"]),
            ("card.view", &["me%2fx000"]),
            ("card.create", &["--name", "x"]),
            ("card.create", &["--list", LIST_ID]),
            ("card.create", &["--list", LIST_ID, "--name", " "]),
            ("card.create", &["--list", LIST_ID, "--name", "x", "--url", "https://h"]),
            ("card.create", &["--list", LIST_ID, "--name", "x", "--due", "soon"]),
            ("card.create", &["--list", LIST_ID, "--name", "x", "--desc-file", "/etc/passwd"]),
            ("card.create", &["--list", LIST_ID, "--name", "x", "--attach=/etc/passwd"]),
            ("card.move", &[CARD_ID]),
            ("card.update", &[CARD_ID]),
            ("card.update", &[CARD_ID, "--closed", "yes"]),
            ("card.comment", &[CARD_ID]),
            ("card.comment", &[CARD_ID, "--text", "a", "--text", "b"]),
        ] {
            let refusal = prepare(op, args).unwrap_err();
            assert_eq!(refusal.exit_code, 65, "{op} {args:?}");
            assert!(refusal.text.starts_with(&format!("trello {op}: ")), "{refusal}");
        }
        let input = Input { args: &[], stdin: Some("x") };
        assert_eq!((CONNECTOR.op("whoami").unwrap().parse)(&input).unwrap_err().exit_code, 65);
    }

    #[test]
    fn relay_a14_nothing_reaches_tokens_hooks_files_or_deletes() {
        for op in [
            "token.list",
            "token.view",
            "webhook.create",
            "card.delete",
            "board.delete",
            "card.attach",
            "api",
        ] {
            assert!(CONNECTOR.op(op).is_none(), "{op}");
        }
    }

    #[test]
    fn the_header_is_the_documented_one() {
        let (name, value) = authorize(&["k", "t"]);
        assert_eq!(
            (name, value.as_str()),
            ("authorization", r#"OAuth oauth_consumer_key="k", oauth_token="t""#)
        );
    }

    /// The paths there are; `*` is an id.
    const PATHS: &[&str] = &[
        "/members/me",
        "/members/me/boards",
        "/boards/*",
        "/boards/*/lists",
        "/boards/*/cards",
        "/lists/*/cards",
        "/cards",
        "/cards/*",
        "/cards/*/actions/comments",
    ];

    const GRAMMARS: [&Grammar; 10] = [
        &WHOAMI,
        &BOARD_LIST,
        &BOARD_VIEW,
        &LIST_LIST,
        &CARD_LIST,
        &CARD_VIEW,
        &CARD_CREATE,
        &CARD_MOVE,
        &CARD_UPDATE,
        &CARD_COMMENT,
    ];

    fn template(path: &str) -> String {
        // As long as a short link, and none.
        let is_id = |part: &str| is_id_or_link(part) && part != "comments";
        let part = |part: &str| if is_id(part) { "*".to_owned() } else { part.to_owned() };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    proptest! {
        #[test]
        fn no_words_lead_outside_the_table(
            op in 0..CONNECTOR.ops.len(),
            args in prop::collection::vec(
                "(--(list|board|name|desc|due|label|member|position|text|done|closed)(=.{0,8})?|[0-9a-f]{24}|[a-zA-Z0-9]{8}|true|top|none|2026-01-31|[./?#%a]{0,9}|.{0,9})",
                0..7
            )
        ) {
            if let Ok(prepared) = (CONNECTOR.ops[op].parse)(&Input { args: &args, stdin: None }) {
                let request = call(&prepared);
                let template = template(&request.path);
                prop_assert!(PATHS.contains(&template.as_str()), "{}", request.path);
                prop_assert_eq!(prepared.ask.is_some(), CONNECTOR.ops[op].info.write);
                prop_assert_eq!(request.method == HttpMethod::Get, prepared.ask.is_none());
                prop_assert_eq!(request.body.is_some(), prepared.ask.is_some());
            }
        }

        #[test]
        fn every_line_in_its_one_form_is_the_same_request(
            op in 0..CONNECTOR.ops.len(),
            args in prop::collection::vec(
                "(--(list|board|label|member)=[0-9a-f]{24}|--(name|desc|text)(=.{1,8})?|--due=(none|2026-01-31)|--position=top|--(done|closed)(=true)?|[0-9a-f]{24}|[a-zA-Z0-9]{8}|--|.{0,9})",
                0..5
            )
        ) {
            let op = &CONNECTOR.ops[op];
            let grammar = GRAMMARS.iter().find(|g| g.surface == format!("trello {}", op.info.name));
            let grammar = *grammar.unwrap();
            if let Ok(prepared) = (op.parse)(&Input { args: &args, stdin: None }) {
                let rebuilt = grammar.parse(&args).unwrap().argv();
                prop_assert_eq!((op.parse)(&Input { args: &rebuilt, stdin: None }).unwrap(), prepared);
            }
        }

        #[test]
        fn the_same_words_in_their_one_form_are_the_same_request(
            name in ".{1,20}", desc in ".{1,20}", top in any::<bool>()
        ) {
            let position = if top { "top" } else { "bottom" };
            let mut args = vec!["--desc", &desc, "--list", LIST_ID, "--name", &name, "--position", position];
            if let Ok(prepared) = prepare("card.create", &args) {
                args.rotate_left(4);
                let strings: Vec<String> = args.iter().map(ToString::to_string).collect();
                let rebuilt = CARD_CREATE.parse(&strings).unwrap().argv();
                let rebuilt: Vec<&str> = rebuilt.iter().map(String::as_str).collect();
                let again = prepare("card.create", &rebuilt).unwrap();
                prop_assert_eq!(call(&again), call(&prepared));
            }
        }
    }
}
