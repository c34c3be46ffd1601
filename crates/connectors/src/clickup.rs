//! ClickUp, by its REST API: workspaces, spaces, folders, lists and tasks.
//!
//! The API calls a workspace a team, and so does this. A task is known by its own id, or by the id
//! people see (`DEV-42`) together with its team. Nothing deletes, attaches a file, or touches
//! webhooks; archiving a task is always asked.

use crate::connector::{Api, Ask, Connector, HttpMethod, Input, Means, Prepared, SecretUse};
use crate::grammar::{Flag, Grammar, Parsed, Positionals, Value};
use crate::refusal::Refusal;
use crate::rest::{
    A_DATE, Change, FILES, Query, either, id, is_date, is_said, line, needed, op, query, read,
    scopes, when, write,
};
use protocol::question::Tier;
use protocol::text::shortened;
use serde_json::{Value as Json, json};

pub static CONNECTOR: Connector = Connector {
    service: "clickup",
    title: "ClickUp",
    about: "Read lists and tasks; create, change and comment on tasks after asking.",
    on_by_default: false,
    means: Means::Http(Api {
        base_url: "https://api.clickup.com/api/v2",
        probe: "/user",
        authorize,
        login_hint: "make an “API token” in ClickUp under Settings, Apps, then store it: \
                     'agentbox secrets set clickup.token'",
    }),
    secrets: &[SecretUse {
        id: "clickup.token",
        env: "",
        about: "Your key from ClickUp's settings, under Apps: the “API token” that begins with pk_",
    }],
    ops: &[
        op("whoami", false, "", "Show whose account it is.", whoami),
        op("team.list", false, "", "List the workspaces.", team_list),
        op("space.list", false, "<team> [--archived]", "List a workspace's spaces.", space_list),
        op(
            "folder.list",
            false,
            "<space> [--archived]",
            "List a space's folders with their lists.",
            folder_list,
        ),
        op(
            "list.list",
            false,
            "--space <id> | --folder <id> [--archived]",
            "List the lists of a folder, or those of a space that are in no folder.",
            list_list,
        ),
        op(
            "task.list",
            false,
            "--list <id> | --team <id> [--status <name>]… [--assignee <id>]… [--tag <name>]… [--closed] \
             [--subtasks] [--order id|created|updated|due_date] [--reverse] [--page <n>]",
            "List tasks, a hundred at a time.",
            task_list,
        ),
        op("task.view", false, "<task> [--team <id>] [--subtasks]", "Show a task.", task_view),
        op(
            "task.comments",
            false,
            "<task> [--team <id>]",
            "Show a task's newest comments.",
            task_comments,
        ),
        op(
            "task.create",
            true,
            "--list <id> --name <text> [--description <text> | --markdown <text>] [--status <name>] \
             [--priority urgent|high|normal|low] [--due <date>] [--assignee <id>]… [--tag <name>]… [--parent <task>]",
            "Create a task.",
            task_create,
        ),
        op(
            "task.update",
            true,
            "<task> [--team <id>] [--name <text>] [--description <text> | --markdown <text>] [--status <name>] \
             [--priority urgent|high|normal|low|none] [--due <date>|none] [--assign <id>]… [--unassign <id>]… \
             [--archived true|false]",
            "Change a task, or archive it.",
            task_update,
        ),
        op(
            "task.comment",
            true,
            "<task> --text <text> [--team <id>] [--assignee <id>] [--notify-all]",
            "Comment on a task.",
            task_comment,
        ),
    ],
    own_ops: &[],
};

fn authorize(values: &[&str]) -> (&'static str, String) {
    ("authorization", values.first().copied().unwrap_or_default().to_owned())
}

const AN_ID: &str = "an id: up to 32 letters, digits, '-' and '_'";
const A_TASK: &str = "a task's id: up to 32 letters, digits, '-' and '_'";
const A_PERSON: &str = "a person's id: a number";
const ID: Value = Value::Checked(is_id, AN_ID);
const PERSON: Value = Value::Checked(is_person, A_PERSON);
const TEXT: Value = Value::Checked(is_said, "some text");
const PRIORITIES: &[&str] = &["urgent", "high", "normal", "low"];
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

static WHOAMI: Grammar = grammar("clickup whoami", &[], Positionals::NONE);
static TEAM_LIST: Grammar = grammar("clickup team.list", &[], Positionals::NONE);
static SPACE_LIST: Grammar =
    grammar("clickup space.list", &[Flag::plain("--archived", None)], one("a team's id"));
static FOLDER_LIST: Grammar =
    grammar("clickup folder.list", &[Flag::plain("--archived", None)], one("a space's id"));
static LIST_LIST: Grammar = grammar(
    "clickup list.list",
    &[
        Flag::with("--space", None, ID),
        Flag::with("--folder", None, ID),
        Flag::plain("--archived", None),
    ],
    Positionals::NONE,
);
static TASK_LIST: Grammar = grammar(
    "clickup task.list",
    &[
        Flag::with("--list", None, ID),
        Flag::with("--team", None, ID),
        Flag::with("--status", None, TEXT).repeating(),
        Flag::with("--assignee", None, PERSON).repeating(),
        Flag::with("--tag", None, TEXT).repeating(),
        Flag::plain("--closed", None),
        Flag::plain("--subtasks", None),
        Flag::with("--order", None, Value::OneOf(&["id", "created", "updated", "due_date"])),
        Flag::plain("--reverse", None),
        Flag::with("--page", None, Value::Number(0, 100_000)),
    ],
    Positionals::NONE,
);
static TASK_VIEW: Grammar = grammar(
    "clickup task.view",
    &[Flag::with("--team", None, ID), Flag::plain("--subtasks", None)],
    one(A_TASK),
);
static TASK_COMMENTS: Grammar =
    grammar("clickup task.comments", &[Flag::with("--team", None, ID)], one(A_TASK));
static TASK_CREATE: Grammar = grammar(
    "clickup task.create",
    &[
        Flag::with("--list", None, ID),
        Flag::with("--name", None, TEXT),
        Flag::with("--description", None, TEXT),
        Flag::with("--markdown", None, TEXT),
        Flag::with("--status", None, TEXT),
        Flag::with("--priority", None, Value::OneOf(PRIORITIES)),
        Flag::with("--due", None, Value::Checked(is_date, A_DATE)),
        Flag::with("--assignee", None, PERSON).repeating(),
        Flag::with("--tag", None, TEXT).repeating(),
        Flag::with("--parent", None, ID),
    ],
    Positionals::NONE,
);
static TASK_UPDATE: Grammar = grammar(
    "clickup task.update",
    &[
        Flag::with("--team", None, ID),
        Flag::with("--name", None, TEXT),
        Flag::with("--description", None, TEXT),
        Flag::with("--markdown", None, TEXT),
        Flag::with("--status", None, TEXT),
        Flag::with("--priority", None, Value::OneOf(&["urgent", "high", "normal", "low", "none"])),
        Flag::with(
            "--due",
            None,
            Value::Checked(is_date_or_none, "a date like 2026-01-31, or none"),
        ),
        Flag::with("--assign", None, PERSON).repeating(),
        Flag::with("--unassign", None, PERSON).repeating(),
        Flag::with("--archived", None, Value::OneOf(&["true", "false"])),
    ],
    one(A_TASK),
);
static TASK_COMMENT: Grammar = grammar(
    "clickup task.comment",
    &[
        Flag::with("--text", None, TEXT),
        Flag::with("--team", None, ID),
        Flag::with("--assignee", None, PERSON),
        Flag::plain("--notify-all", None),
    ],
    one(A_TASK),
);

fn is_id(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(fits)
}

fn is_person(text: &str) -> bool {
    (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_date_or_none(text: &str) -> bool {
    text == "none" || is_date(text)
}

fn whoami(input: &Input<'_>) -> Result<Prepared, Refusal> {
    line(&WHOAMI, input)?;
    Ok(read(&["user"], Vec::new()))
}

fn team_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    line(&TEAM_LIST, input)?;
    Ok(read(&["team"], Vec::new()))
}

fn space_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&SPACE_LIST, input)?;
    let team = id(&SPACE_LIST, &line, is_id, AN_ID)?;
    Ok(read(&["team", team, "space"], archived(&line)))
}

fn folder_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&FOLDER_LIST, input)?;
    let space = id(&FOLDER_LIST, &line, is_id, AN_ID)?;
    Ok(read(&["space", space, "folder"], archived(&line)))
}

fn list_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&LIST_LIST, input)?;
    let (flag, of) = either(&LIST_LIST, &line, ["--space", "--folder"])?;
    let place = if flag == "--space" { "space" } else { "folder" };
    Ok(read(&[place, of, "list"], archived(&line)))
}

fn archived(line: &Parsed) -> Query {
    query(&[("archived", if line.has("--archived") { "true" } else { "false" })])
}

fn task_list(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_LIST, input)?;
    let (flag, of) = either(&TASK_LIST, &line, ["--list", "--team"])?;
    let place = if flag == "--list" { "list" } else { "team" };
    let mut pairs = query(&[("page", line.value("--page").unwrap_or("0"))]);
    for (flag, name) in
        [("--closed", "include_closed"), ("--subtasks", "subtasks"), ("--reverse", "reverse")]
    {
        if line.has(flag) {
            pairs.extend(query(&[(name, "true")]));
        }
    }
    pairs.extend(line.value("--order").map(|order| ("order_by".to_owned(), order.to_owned())));
    for (flag, name) in
        [("--status", "statuses[]"), ("--assignee", "assignees[]"), ("--tag", "tags[]")]
    {
        pairs.extend(line.values(flag).map(|value| (name.to_owned(), value.to_owned())));
    }
    Ok(read(&[place, of, "task"], pairs))
}

fn task_view(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_VIEW, input)?;
    let task = id(&TASK_VIEW, &line, is_id, A_TASK)?;
    let mut pairs = by_team(&line);
    pairs.extend(query(&[("include_markdown_description", "true")]));
    if line.has("--subtasks") {
        pairs.extend(query(&[("include_subtasks", "true")]));
    }
    Ok(read(&["task", task], pairs))
}

fn task_comments(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_COMMENTS, input)?;
    let task = id(&TASK_COMMENTS, &line, is_id, A_TASK)?;
    Ok(read(&["task", task, "comment"], by_team(&line)))
}

/// The task's id is the one people see.
fn by_team(line: &Parsed) -> Query {
    match line.value("--team") {
        Some(team) => query(&[("custom_task_ids", "true"), ("team_id", team)]),
        None => Vec::new(),
    }
}

fn task_create(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_CREATE, input)?;
    let list = needed(&TASK_CREATE, &line, "--list")?;
    let name = needed(&TASK_CREATE, &line, "--name")?;
    let mut change = Change::default();
    change.set("name", "Name", name);
    describe(&TASK_CREATE, &line, &mut change)?;
    change.maybe("status", "Status", line.value("--status"));
    prioritise(&line, &mut change);
    due(&line, &mut change);
    people(&line, "--assignee", |numbers, shown| {
        change.json("assignees", "Assignees", numbers, shown);
    });
    let tags: Vec<&str> = line.values("--tag").collect();
    if !tags.is_empty() {
        change.json("tags", "Tags", json!(tags), &tags.join(", "));
    }
    change.maybe("parent", "Subtask of", line.value("--parent"));
    let ask = Ask {
        tier: Tier::Routine,
        title: format!("Create the ClickUp task “{}”", shortened(name, 80)),
        target: format!("list {list} in ClickUp"),
        facts: change.facts,
        body: change.text,
        warnings: Vec::new(),
        remember: scopes(
            "clickup task.create",
            list,
            format!("create tasks in list {list} in ClickUp"),
            "create tasks in any list in ClickUp",
        ),
    };
    Ok(write(HttpMethod::Post, &["list", list, "task"], Vec::new(), change.body, ask))
}

fn task_update(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_UPDATE, input)?;
    let task = id(&TASK_UPDATE, &line, is_id, A_TASK)?;
    let mut change = Change::default();
    change.maybe("name", "Name", line.value("--name"));
    describe(&TASK_UPDATE, &line, &mut change)?;
    change.maybe("status", "Status", line.value("--status"));
    prioritise(&line, &mut change);
    due(&line, &mut change);
    let mut assignees = json!({});
    for (flag, key, label) in [("--assign", "add", "Assign"), ("--unassign", "rem", "Unassign")] {
        people(&line, flag, |numbers, shown| {
            assignees[key] = numbers;
            change.json("assignees", label, assignees.clone(), shown);
        });
    }
    change.flag("archived", "Archived", line.value("--archived"));
    if change.body.is_empty() {
        return Err(TASK_UPDATE.refuse("nothing to change. Give at least one flag."));
    }
    let archive = line.value("--archived") == Some("true");
    let ask = Ask {
        // A task that is put away is out of everybody's sight: asked every time.
        tier: if archive { Tier::Sensitive } else { Tier::Routine },
        title: format!("{} a ClickUp task", if archive { "Archive" } else { "Change" }),
        target: target(&line, task),
        warnings: change.text.iter().map(|_| REPLACES.to_owned()).collect(),
        facts: change.facts,
        body: change.text,
        remember: scopes(
            "clickup task.update",
            &place(&line, task),
            format!("change {}", target(&line, task)),
            "change any task in ClickUp",
        )
        .filter(|_| !archive),
    };
    Ok(write(HttpMethod::Put, &["task", task], by_team(&line), change.body, ask))
}

fn task_comment(input: &Input<'_>) -> Result<Prepared, Refusal> {
    let line = line(&TASK_COMMENT, input)?;
    let task = id(&TASK_COMMENT, &line, is_id, A_TASK)?;
    let mut change = Change::default();
    change.long("comment_text", Some(needed(&TASK_COMMENT, &line, "--text")?));
    if let Some(person) = line.value("--assignee") {
        change.json("assignee", "Assigned to", number(person), person);
    }
    let everybody = line.has("--notify-all");
    change.body.insert("notify_all".to_owned(), everybody.into());
    let ask = Ask {
        tier: Tier::Routine,
        title: "Comment on a ClickUp task".to_owned(),
        target: target(&line, task),
        facts: change.facts,
        body: change.text,
        warnings: everybody
            .then(|| "notifies everybody, its author too".to_owned())
            .into_iter()
            .collect(),
        remember: scopes(
            "clickup task.comment",
            &place(&line, task),
            format!("comment on {}", target(&line, task)),
            "comment on any task in ClickUp",
        )
        .filter(|_| !everybody),
    };
    Ok(write(HttpMethod::Post, &["task", task, "comment"], by_team(&line), change.body, ask))
}

/// Which task, in words.
fn target(line: &Parsed, task: &str) -> String {
    match line.value("--team") {
        Some(team) => format!("task {task} of team {team} in ClickUp"),
        None => format!("task {task} in ClickUp"),
    }
}

/// Which task, to be compared.
fn place(line: &Parsed, task: &str) -> String {
    match line.value("--team") {
        Some(team) => format!("{team} {task}"),
        None => task.to_owned(),
    }
}

fn describe(grammar: &Grammar, line: &Parsed, change: &mut Change) -> Result<(), Refusal> {
    match (line.value("--description"), line.value("--markdown")) {
        (Some(_), Some(_)) => {
            Err(grammar.refuse("give '--description' or '--markdown', not both."))
        }
        (plain, markdown) => {
            change.long("description", plain);
            change.long("markdown_content", markdown);
            Ok(())
        }
    }
}

fn prioritise(line: &Parsed, change: &mut Change) {
    let Some(name) = line.value("--priority") else { return };
    let rank = PRIORITIES.iter().position(|p| *p == name).map(|at| at + 1);
    change.json("priority", "Priority", json!(rank), name);
}

fn due(line: &Parsed, change: &mut Change) {
    let Some(text) = line.value("--due") else { return };
    match when(text) {
        Some(when) => {
            change.json("due_date", "Due", when.millis, text);
            change.body.insert("due_date_time".to_owned(), when.timed.into());
        }
        None => change.json("due_date", "Due", Json::Null, "none"),
    }
}

/// The people a flag names, if it was given.
fn people(line: &Parsed, flag: &'static str, mut given: impl FnMut(Json, &str)) {
    let all: Vec<&str> = line.values(flag).collect();
    if !all.is_empty() {
        given(all.iter().map(|id| number(id)).collect(), &all.join(", "));
    }
}

fn number(digits: &str) -> Json {
    digits.parse::<u64>().map_or(Json::Null, Json::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::{Action, ApiCall};
    use proptest::prelude::*;

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

    fn pairs(request: &ApiCall) -> Vec<String> {
        request.query.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn reads_ask_nobody() {
        for (op, args, path, query) in [
            ("whoami", &[][..], "/user", &[][..]),
            ("team.list", &[], "/team", &[]),
            ("space.list", &["900"], "/team/900/space", &["archived=false"]),
            ("folder.list", &["90"], "/space/90/folder", &["archived=false"]),
            ("list.list", &["--space", "90"], "/space/90/list", &["archived=false"]),
            ("list.list", &["--folder", "91", "--archived"], "/folder/91/list", &["archived=true"]),
            (
                "task.list",
                &[
                    "--list",
                    "12",
                    "--status",
                    "to do",
                    "--assignee",
                    "7",
                    "--assignee=8",
                    "--closed",
                ],
                "/list/12/task",
                &[
                    "page=0",
                    "include_closed=true",
                    "statuses[]=to do",
                    "assignees[]=7",
                    "assignees[]=8",
                ],
            ),
            (
                "task.list",
                &["--team", "900", "--page", "3", "--order", "updated", "--reverse"],
                "/team/900/task",
                &["page=3", "reverse=true", "order_by=updated"],
            ),
            ("task.view", &["86abc"], "/task/86abc", &["include_markdown_description=true"]),
            (
                "task.view",
                &["DEV-42", "--team", "900", "--subtasks"],
                "/task/DEV-42",
                &[
                    "custom_task_ids=true",
                    "team_id=900",
                    "include_markdown_description=true",
                    "include_subtasks=true",
                ],
            ),
            ("task.comments", &["86abc"], "/task/86abc/comment", &[]),
        ] {
            let prepared = prepare(op, args).unwrap();
            let request = call(&prepared);
            assert_eq!((request.method, request.path.as_str()), (HttpMethod::Get, path), "{op}");
            assert_eq!(pairs(request), query, "{op}");
            assert_eq!((&request.body, &prepared.ask), (&None, &None), "{op}");
        }
    }

    #[test]
    fn a_task_is_created_from_what_was_shown() {
        let args = [
            "--list",
            "12",
            "--name",
            "Fix login",
            "--markdown",
            "# Why",
            "--priority",
            "high",
            "--due",
            "2026-01-31",
            "--assignee",
            "7",
            "--tag",
            "bug",
            "--parent",
            "86abc",
        ];
        let prepared = prepare("task.create", &args).unwrap();
        let request = call(&prepared);
        assert_eq!((request.method, request.path.as_str()), (HttpMethod::Post, "/list/12/task"));
        let body = json!({
            "name": "Fix login", "markdown_content": "# Why", "priority": 2, "due_date": 1_769_817_600_000_i64,
            "due_date_time": false, "assignees": [7], "tags": ["bug"], "parent": "86abc",
        });
        assert_eq!(request.body, Some(body));
        let ask = prepared.ask.unwrap();
        assert_eq!(ask.title, "Create the ClickUp task “Fix login”");
        assert_eq!(ask.body.as_deref(), Some("# Why"));
        let labels: Vec<&str> = ask.facts.iter().map(|f| f.label.as_str()).collect();
        assert_eq!(labels, ["Name", "Priority", "Due", "Assignees", "Tags", "Subtask of"]);
    }

    #[test]
    fn other_writes_go_to_the_task_alone() {
        let args = [
            "DEV-42",
            "--team",
            "900",
            "--status",
            "done",
            "--priority",
            "none",
            "--due",
            "none",
            "--assign",
            "7",
            "--unassign",
            "8",
            "--unassign",
            "9",
        ];
        let prepared = prepare("task.update", &args).unwrap();
        let request = call(&prepared);
        assert_eq!((request.method, request.path.as_str()), (HttpMethod::Put, "/task/DEV-42"));
        assert_eq!(pairs(request), ["custom_task_ids=true", "team_id=900"]);
        let assignees = json!({"add": [7], "rem": [8, 9]});
        let body =
            json!({"status": "done", "priority": null, "due_date": null, "assignees": assignees});
        assert_eq!(request.body, Some(body));
        let ask = prepared.ask.unwrap();
        assert_eq!(ask.target, "task DEV-42 of team 900 in ClickUp");
        assert_eq!(ask.remember.unwrap().exact.key, "clickup task.update 900 DEV-42");

        let prepared =
            prepare("task.comment", &["86abc", "--text", "../list?x", "--assignee", "7"]).unwrap();
        let request = call(&prepared);
        assert_eq!(
            (request.method, request.path.as_str()),
            (HttpMethod::Post, "/task/86abc/comment")
        );
        let body = json!({"comment_text": "../list?x", "assignee": 7, "notify_all": false});
        assert_eq!(request.body, Some(body));
    }

    #[test]
    fn what_reaches_further_says_so() {
        let ask = prepare("task.update", &["86abc", "--archived", "true"]).unwrap().ask.unwrap();
        assert_eq!((ask.tier, ask.remember), (Tier::Sensitive, None));
        let ask = prepare("task.update", &["86abc", "--description", "x"]).unwrap().ask.unwrap();
        assert_eq!(ask.warnings, [REPLACES]);
        let ask = prepare("task.comment", &["86abc", "--text", "x", "--notify-all"])
            .unwrap()
            .ask
            .unwrap();
        assert_eq!((ask.warnings.len(), ask.remember), (1, None));
    }

    #[test]
    fn what_is_no_id_or_no_flag_is_refused() {
        let long = "a".repeat(33);
        for (op, args) in [
            ("space.list", &["../user"][..]),
            ("space.list", &[""]),
            ("space.list", &["9/0"]),
            ("space.list", &["9?x"]),
            ("folder.list", &["９"]),
            ("list.list", &[]),
            ("list.list", &["--space", "1", "--folder", "2"]),
            ("list.list", &["--space", "1/2"]),
            ("task.list", &["--page", "1"]),
            ("task.list", &["--list", "1", "--assignee", "me"]),
            ("task.list", &["--list", "1", "--order", "name"]),
            ("task.view", &[&long]),
            ("task.view", &["a%2e"]),
            ("task.view", &["86abc", "--team", "a b"]),
            ("task.create", &["--list", "1"]),
            ("task.create", &["--name", "x"]),
            (
                "task.create",
                &["--list", "1", "--name", "x", "--description", "a", "--markdown", "b"],
            ),
            ("task.create", &["--list", "1", "--name", "x", "--description-file", "/etc/passwd"]),
            ("task.create", &["--list", "1", "--name", "x", "--priority", "1"]),
            ("task.create", &["--list", "1", "--name", "x", "--due", "none"]),
            ("task.update", &["86abc"]),
            ("task.update", &["86abc", "--team", "900"]),
            ("task.update", &["86abc", "--due", "2026-02-30"]),
            ("task.comment", &["86abc"]),
            ("task.comment", &["86abc", "--text", "  "]),
        ] {
            let refusal = prepare(op, args).unwrap_err();
            assert_eq!(refusal.exit_code, 65, "{op} {args:?}");
            assert!(refusal.text.starts_with(&format!("clickup {op}: ")), "{refusal}");
        }
    }

    #[test]
    fn relay_a14_nothing_reaches_tokens_hooks_files_or_deletes() {
        for op in [
            "oauth.token",
            "webhook.list",
            "webhook.create",
            "task.delete",
            "list.delete",
            "task.attach",
            "api",
        ] {
            assert!(CONNECTOR.op(op).is_none(), "{op}");
        }
        assert_eq!(authorize(&["pk_1"]), ("authorization", "pk_1".to_owned()));
    }

    /// The paths there are; `*` is an id. An id may look like a word of the path.
    const PATHS: &[&[&str]] = &[
        &["user"],
        &["team"],
        &["team", "*", "space"],
        &["team", "*", "task"],
        &["space", "*", "folder"],
        &["space", "*", "list"],
        &["folder", "*", "list"],
        &["list", "*", "task"],
        &["task", "*"],
        &["task", "*", "comment"],
    ];

    const GRAMMARS: [&Grammar; 11] = [
        &WHOAMI,
        &TEAM_LIST,
        &SPACE_LIST,
        &FOLDER_LIST,
        &LIST_LIST,
        &TASK_LIST,
        &TASK_VIEW,
        &TASK_COMMENTS,
        &TASK_CREATE,
        &TASK_UPDATE,
        &TASK_COMMENT,
    ];

    fn is_in_table(path: &str) -> bool {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
        let same = |known: &&[&str]| {
            let fits =
                |(known, part): (&&str, &&str)| known == part || (*known == "*" && is_id(part));
            known.len() == parts.len() && known.iter().zip(&parts).all(fits)
        };
        PATHS.iter().any(same)
    }

    proptest! {
        #[test]
        fn no_words_lead_outside_the_table(
            op in 0..CONNECTOR.ops.len(),
            args in prop::collection::vec(
                "(--(list|team|space|folder|name|status|due|assignee|assign|text|priority|archived|page)(=.{0,8})?|[0-9]{1,6}|DEV-[0-9]|true|high|none|2026-01-31|[./?#%a]{0,9}|.{0,9})",
                0..7
            )
        ) {
            if let Ok(prepared) = (CONNECTOR.ops[op].parse)(&Input { args: &args, stdin: None }) {
                let request = call(&prepared);
                prop_assert!(is_in_table(&request.path), "{}", request.path);
                prop_assert_eq!(prepared.ask.is_some(), CONNECTOR.ops[op].info.write);
                prop_assert_eq!(request.method == HttpMethod::Get, prepared.ask.is_none());
                prop_assert_eq!(request.body.is_some(), prepared.ask.is_some());
            }
        }

        #[test]
        fn every_line_in_its_one_form_is_the_same_request(
            op in 0..CONNECTOR.ops.len(),
            args in prop::collection::vec(
                "(--(list|team|space|folder|parent)=[0-9a-z-]{1,4}|--(name|status|tag|text|description|markdown)(=.{1,8})?|--due=(none|2026-01-31)|--(assignee|assign|unassign)=[0-9]{1,3}|--priority=(high|none)|--(archived)(=true)?|--(closed|subtasks|reverse|notify-all)|--(page=[0-9]|order=id)|[0-9]{1,6}|DEV-[0-9]|--|.{0,9})",
                0..6
            )
        ) {
            let op = &CONNECTOR.ops[op];
            let grammar = GRAMMARS.iter().find(|g| g.surface == format!("clickup {}", op.info.name));
            let grammar = *grammar.unwrap();
            if let Ok(prepared) = (op.parse)(&Input { args: &args, stdin: None }) {
                let rebuilt = grammar.parse(&args).unwrap().argv();
                prop_assert_eq!((op.parse)(&Input { args: &rebuilt, stdin: None }).unwrap(), prepared);
            }
        }

        #[test]
        fn the_same_words_in_their_one_form_are_the_same_request(
            name in ".{1,20}", text in ".{1,20}", people in prop::collection::vec(1_u32..99_999, 0..3)
        ) {
            let mut args = vec!["--markdown".to_owned(), text, "--list".into(), "12".into(), "--name".into(), name];
            for person in people {
                args.extend(["--assignee".to_owned(), person.to_string()]);
            }
            let parse = CONNECTOR.op("task.create").unwrap().parse;
            if let Ok(prepared) = parse(&Input { args: &args, stdin: None }) {
                let rebuilt = TASK_CREATE.parse(&args).unwrap().argv();
                let again = parse(&Input { args: &rebuilt, stdin: None }).unwrap();
                prop_assert_eq!(again, prepared);
            }
        }
    }
}
