//! Services and tasks.

use super::fields::{At, Fields, entries, list, scalar, string, wrong_type};
use super::once::run_once;
use super::restart::{backoff, restart};
use super::{image, ready};
use crate::problem::Problems;
use crate::shape::{EXPOSE, NOT_TASK, SERVICE, SERVICE_IDE, TASK, Table};
use crate::{BadName, Command, Env, Expose, Place, Run, Service, Task, UnitName};
use protocol::text::shortened;
use yaml::{Key, Kind, Node, Scalar};

/// A unit as far as the graph is concerned, even when something else is wrong with it.
#[derive(Debug)]
pub(super) struct Seen {
    pub name: UnitName,
    pub at: At,
    pub place: Place,
    pub needs: Vec<(UnitName, Place)>,
    /// It is to run by itself.
    pub starts: bool,
    pub is_task: bool,
}

pub(super) fn service(
    key: &Key,
    node: &Node,
    seen: &mut Vec<Seen>,
    problems: &mut Problems,
) -> Option<Service> {
    let (name, fields) = unit(key, node, "services", SERVICE, problems)?;
    fields.warn_unknown(problems);
    let autostart = fields.bool("autostart", "Y016", problems).unwrap_or(true);
    let needs = needs(&fields, problems);
    seen.push(Seen {
        name: name.clone(),
        at: fields.at.clone(),
        place: key.place,
        needs: needs.clone(),
        starts: autostart,
        is_task: false,
    });
    let run = run(&name, &fields, problems);
    let is_image = matches!(run, Some(Run::Image(_))) || fields.has("image");
    let env = match fields.get("env") {
        Some((node, at)) if is_image && !fields.has("command") => {
            let hint = "put it under image.env";
            let message = "env is not for an image service";
            problems.error_hint("Y032", node.place, at.path(), message, hint);
            None
        }
        _ => env(&fields, "Y015", problems),
    };
    let service = Service {
        run: run?,
        cwd: cwd(&fields, problems),
        env,
        autostart,
        restart: restart(&fields, problems),
        backoff: backoff(&fields, problems),
        needs: needs.into_iter().map(|(name, _)| name).collect(),
        ready_when: ready::ready_when(&fields, problems),
        expose: expose(&fields, problems),
        stop_grace: fields.millis_or("stop_grace_ms", "Y018", problems),
        tail: tail(&fields),
        name,
    };
    Some(service)
}

pub(super) fn task(
    key: &Key,
    node: &Node,
    seen: &mut Vec<Seen>,
    problems: &mut Problems,
) -> Option<Task> {
    let (name, fields) = unit(key, node, "tasks", TASK, problems)?;
    fields.warn_unknown_but(NOT_TASK, problems);
    fields.warn_meaningless(NOT_TASK, "a task", problems);
    let needs = needs(&fields, problems);
    seen.push(Seen {
        name: name.clone(),
        at: fields.at.clone(),
        place: key.place,
        needs: needs.clone(),
        starts: true,
        is_task: true,
    });
    let command = match fields.get("command") {
        Some((node, at)) => command(node, &at, problems),
        None => {
            problems.error("Y011", key.place, fields.at.path(), "a task needs a command");
            None
        }
    };
    Some(Task {
        cwd: cwd(&fields, problems),
        env: env(&fields, "Y015", problems),
        needs: needs.into_iter().map(|(name, _)| name).collect(),
        run_once: run_once(&fields, problems),
        timeout: fields.millis("timeout_ms", "Y018", problems),
        command: command?,
        name,
    })
}

fn unit<'a>(
    key: &Key,
    node: &'a Node,
    section: &str,
    table: Table,
    problems: &mut Problems,
) -> Option<(UnitName, Fields<'a>)> {
    let at = At::root().key(section).key(&key.text);
    let name = key.text.parse::<UnitName>();
    if let Err(why) = name {
        let hint = match why {
            BadName::Letters => "such as web or db_seed",
            BadName::Reserved => "the box has a part of its own with this name",
        };
        problems.error_hint("Y004", key.place, at.path(), &why.to_string(), hint);
    }
    if entries(node).is_none() {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error("Y005", node.place, at.path(), &message);
        return None;
    }
    Some((name.ok()?, Fields::new(node, at, table)))
}

fn run(name: &UnitName, fields: &Fields<'_>, problems: &mut Problems) -> Option<Run> {
    let place = fields.node.place;
    match (fields.get("command"), fields.get("image")) {
        (Some((node, at)), None) => command(node, &at, problems).map(Run::Command),
        (None, Some((node, at))) => image::image(name, node, &at, problems).map(Run::Image),
        (Some(_), Some(_)) => {
            let message = "has both command and image; a service has one of them";
            problems.error("Y010", place, fields.at.path(), message);
            None
        }
        (None, None) => {
            problems.error("Y011", place, fields.at.path(), "needs command or image");
            None
        }
    }
}

/// What a program can be given: no NUL.
pub(super) fn is_passable(text: &str) -> bool {
    !text.contains('\0')
}

fn command(node: &Node, at: &At, problems: &mut Problems) -> Option<Command> {
    let mut bad = |place, path: &str, code, message: &str| {
        problems.error(code, place, path, message);
        None
    };
    match &node.kind {
        Kind::Scalar(scalar) if scalar.is_string() => {
            if scalar.text.trim().is_empty() {
                return bad(node.place, at.path(), "Y012", "the command is empty");
            }
            if !is_passable(&scalar.text) {
                return bad(node.place, at.path(), "Y012", "the command has a NUL in it");
            }
            Some(Command::Shell(scalar.text.clone()))
        }
        Kind::List(all) if all.is_empty() => {
            bad(node.place, at.path(), "Y012", "the command is an empty list")
        }
        Kind::List(all) => {
            let before = problems.errors.len();
            let argv = strings(all, at, "Y013", problems);
            (problems.errors.len() == before).then_some(Command::Argv(argv))
        }
        _ => {
            let message = format!("must be a string or a list of strings, not {}", node.what());
            bad(node.place, at.path(), "Y012", &message)
        }
    }
}

/// Those that are strings; the others are problems.
pub(super) fn strings(
    all: &[Node],
    at: &At,
    code: &'static str,
    problems: &mut Problems,
) -> Vec<String> {
    let mut found = Vec::with_capacity(all.len());
    for (index, one) in all.iter().enumerate() {
        match string(one) {
            Some(text) if is_passable(text) => found.push(text.to_owned()),
            Some(_) => problems.error(code, one.place, at.item(index).path(), "has a NUL in it"),
            None => wrong_type(one, &at.item(index), code, "a string", problems),
        }
    }
    found
}

fn cwd(fields: &Fields<'_>, problems: &mut Problems) -> Option<String> {
    let text = fields.string("cwd", "Y014", problems)?;
    if text.is_empty() || !is_passable(text) {
        let (node, at) = fields.get("cwd")?;
        problems.error("Y014", node.place, at.path(), "must be a folder");
        return None;
    }
    Some(text.to_owned())
}

pub(super) fn env(fields: &Fields<'_>, code: &'static str, problems: &mut Problems) -> Option<Env> {
    let (node, at) = fields.get("env")?;
    let Some(pairs) = entries(node) else {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error(code, node.place, at.path(), &message);
        return None;
    };
    let mut env = Env::new();
    for (key, value) in pairs {
        let at = at.key(&key.text);
        if !is_variable(&key.text) {
            let message = "a variable's name has letters, digits and _, and begins with no digit";
            problems.error(code, key.place, at.path(), message);
        }
        match scalar(value).filter(|scalar| !scalar.is_null()) {
            Some(scalar) if is_passable(&scalar.text) => {
                env.insert(key.text.clone(), scalar.text.clone());
            }
            Some(_) => problems.error(code, value.place, at.path(), "has a NUL in it"),
            None => {
                let message = format!("must be a string, number or boolean, not {}", value.what());
                problems.error(code, value.place, at.path(), &message);
            }
        }
    }
    Some(env)
}

pub(crate) fn is_variable(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.bytes().all(fits) && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

fn needs(fields: &Fields<'_>, problems: &mut Problems) -> Vec<(UnitName, Place)> {
    let Some((node, at)) = fields.get("needs") else { return Vec::new() };
    let Some(all) = list(node) else {
        let message = format!("must be a list of names, not {}", node.what());
        problems.error("Y019", node.place, at.path(), &message);
        return Vec::new();
    };
    let mut needs: Vec<(UnitName, Place)> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let name = scalar(one).filter(|scalar| !scalar.is_null()).map(|scalar| &scalar.text);
        match name.map(|name| name.parse::<UnitName>()) {
            Some(Ok(name)) if needs.iter().any(|(other, _)| *other == name) => {}
            Some(Ok(name)) => needs.push((name, one.place)),
            Some(Err(_)) => {
                let shown = shortened(name.map_or("", String::as_str), 60);
                let message = format!("{shown} is no name of a unit");
                problems.error("Y019", one.place, at.item(index).path(), &message);
            }
            None => wrong_type(one, &at.item(index), "Y019", "a name", problems),
        }
    }
    needs
}

fn expose(fields: &Fields<'_>, problems: &mut Problems) -> Option<Expose> {
    let (node, at) = fields.get("expose")?;
    if entries(node).is_none() {
        let message = format!("must be a mapping, not {}", node.what());
        problems.error("Y023", node.place, at.path(), &message);
        return None;
    }
    let fields = Fields::new(node, at.clone(), EXPOSE);
    fields.warn_unknown(problems);
    if let Some((node, at)) = fields.get("as")
        && scalar(node).and_then(Scalar::int) != Some(80)
    {
        problems.error("Y023", node.place, at.path(), "must be 80");
    }
    if !fields.has("port") {
        problems.error("Y023", node.place, at.path(), "needs a port");
    }
    let port = fields.int("port", "Y023", problems)?;
    u16::try_from(port).ok().map(|port| Expose { port })
}

fn tail(fields: &Fields<'_>) -> Option<bool> {
    let (node, at) = fields.get("ide")?;
    let (tail, _) = Fields::new(node, at, SERVICE_IDE).get("tail")?;
    scalar(tail).and_then(Scalar::bool)
}
