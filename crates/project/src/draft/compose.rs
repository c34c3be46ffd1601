//! A compose file: services of an image become containers of the box's own engine, those that are built
//! are named in a comment.
//!
//! The file may be anybody's and is bounded by the crate's own reader. What of it has no place in
//! `agentbox.yaml`, or is in a variable that nobody knows here, is left out and named.

use super::variables::filled;
use super::{Container, Folder, Found, Unit, write_unit};
use crate::problem::Problems;
use crate::read::{entries, is_image, is_variable, list, scalar};
use protocol::text::{quoted, shortened};
use std::collections::BTreeSet;
use yaml::{Key, Kind, Node};

pub(super) const FILES: [&str; 4] =
    ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// More services and ports than anybody wants to look through.
const MOST: usize = 20;
const MOST_NAMED: usize = 10;
const MOST_VALUES: usize = 100;
const LONGEST: usize = 8 << 10;
/// YAML takes no key that is much longer, and nobody has a variable of such a name.
const LONGEST_NAME: usize = 200;
/// What all containers may take of the draft: aliases make much of little, and it must be readable.
const ROOM: usize = 64 << 10;
/// ssh, the web app, addresses of boxes and the screen are there already in a box.
const OWN_PORTS: [u16; 4] = [22, 80, 1355, 6080];
/// Keys without which a container may not do what it does elsewhere.
const NOT_HERE: [&str; 16] = [
    "cap_add",
    "configs",
    "devices",
    "entrypoint",
    "env_file",
    "extends",
    "extra_hosts",
    "network_mode",
    "platform",
    "privileged",
    "secrets",
    "shm_size",
    "tmpfs",
    "user",
    "volumes",
    "working_dir",
];

/// A service that is in the draft.
struct Taken<'a> {
    /// Its name in the file.
    called: &'a str,
    /// Its place among the draft's services.
    at: usize,
    node: &'a Node,
}

pub(super) fn look(folder: &Folder, found: &mut Found) {
    let Some(file) = folder.first(&FILES) else { return };
    found.from(file);
    let root = match tree(folder.text(file)) {
        Ok(root) => root,
        Err(why) => {
            found.notes.push(format!(
                "{file} was not understood: {why}\n\
                 In a box with an engine a service can run all of it: docker compose up"
            ));
            return;
        }
    };
    let services = get(&root, "services").and_then(entries).unwrap_or_default();
    let (mut taken, mut others) = (Vec::new(), Vec::new());
    let mut room = ROOM;
    for (key, node) in services.iter().take(MOST) {
        match take(key, node, &mut room, found) {
            Ok(at) => taken.push(Taken { called: &key.text, at, node }),
            // After a dash: a comment that begins with a name could be an order to an editor.
            Err(how) => others.push(format!("- {}: {how}", shortened(&key.text, 60))),
        }
    }
    needs(&taken, found);
    if let Some(first) = taken.first() {
        found.services[first.at].comment.insert_str(0, &engine(file));
    }
    if services.len() > MOST {
        others.push(format!("- and {} more", services.len() - MOST));
    }
    if !others.is_empty() {
        let others = others.join("\n");
        found.notes.push(format!(
            "{file} has these, too. What is built runs best as a service with the command of its Dockerfile;\n\
             in a box with an engine, the command here does as well.\n{others}"
        ));
    }
}

fn tree(text: &str) -> Result<Node, String> {
    let mut problems = Problems::default();
    let root = problems.tree(text);
    if let Some(error) = problems.errors.first() {
        return Err(format!("line {}: {}", error.place.line, error.message));
    }
    root.filter(|root| get(root, "services").and_then(entries).is_some_and(|all| !all.is_empty()))
        .ok_or_else(|| "it has no services".to_owned())
}

/// Puts a service of an image among the draft's, and says where; otherwise says what to do about it.
fn take(key: &Key, node: &Node, room: &mut usize, found: &mut Found) -> Result<usize, String> {
    if let Some(build) = get(node, "build").filter(|build| !build.is_null()) {
        return Err(built(&key.text, build));
    }
    let image = get(node, "image").and_then(text).map(|image| image.trim().to_owned());
    let Some(image) = image.filter(|image| is_image(image)) else {
        return Err("its image is not in the file".to_owned());
    };
    let base = unit_name(&key.text);
    let Some(name) = found.free(&[&base, &format!("{base}-image")]) else {
        return Err("its name is taken".to_owned());
    };
    let unit = unit(name, image, node, found);
    let mut written = String::new();
    write_unit(&mut written, &unit);
    *room = room.checked_sub(written.len()).ok_or("there is too much of it")?;
    found.services.push(unit);
    Ok(found.services.len() - 1)
}

fn unit(name: String, image: String, node: &Node, found: &Found) -> Unit {
    let mut left = Vec::new();
    let container = Container {
        image,
        ports: ports(node, found, &mut left),
        env: env(node, &mut left),
        args: args(node, &mut left),
    };
    left.extend(NOT_HERE.into_iter().filter(|key| get(node, key).is_some()).map(str::to_owned));
    Unit {
        name,
        comment: left_out(&left),
        port: container.ports.first().map(|(host, _)| *host),
        // Those of a profile start when somebody asks for it.
        waits: get(node, "profiles").and_then(list).is_some_and(|all| !all.is_empty()),
        container: Some(container),
        ..Unit::default()
    }
}

/// How to have a service that is built.
fn built(name: &str, build: &Node) -> String {
    let context = text(build).or_else(|| get(build, "context").and_then(text));
    let from = context.map(|path| format!("built from {}, ", shortened(&path, 60)));
    let name = quoted(&shortened(name, 60));
    format!("{}docker compose up --build --no-deps {name}", from.unwrap_or_default())
}

fn engine(file: &str) -> String {
    format!(
        "Containers of {file} need an engine in the box: agentbox config set box.docker on, then a new box.\n\
         Their ports are at 127.0.0.1 in the box; the names they have in {file} lead nowhere there.\n"
    )
}

/// One line, or none.
fn left_out(left: &[String]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let named: Vec<String> = left.iter().take(MOST_NAMED).map(|one| shortened(one, 100)).collect();
    let more = left.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    format!("Left out: {}{more}", named.join("; "))
}

/// A name for a unit and its container, such as `my-db` for `my.db`.
fn unit_name(called: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = called.chars().map(fits).collect();
    let name = name.trim_matches(['-', '_']);
    if name.is_empty() { "container".to_owned() } else { name.chars().take(60).collect() }
}

/// Those that can be reached at the box's own address, once each.
fn ports(service: &Node, found: &Found, left: &mut Vec<String>) -> Vec<(u16, u16)> {
    let Some(all) = get(service, "ports").and_then(list) else { return Vec::new() };
    let mut ports: Vec<(u16, u16)> = Vec::new();
    for node in all.iter().take(MOST) {
        let shown = scalar(node).map(|scalar| scalar.text.clone());
        let shown = || shown.unwrap_or_else(|| "in its long form".to_owned());
        match port(node) {
            None => left.push(format!("port {}", shown())),
            Some((host, _)) if OWN_PORTS.contains(&host) => {
                left.push(format!("port {} ({host} is the box's own)", shown()));
            }
            Some((host, _)) if ports.iter().any(|one| one.0 == host) || found.listens(host) => {
                left.push(format!("port {} ({host} is taken)", shown()));
            }
            Some(port) => ports.push(port),
        }
    }
    if all.len() > MOST {
        left.push(format!("{} more ports", all.len() - MOST));
    }
    ports
}

/// The port in the box and the container's. One without the other is the same: in a box it has no
/// competitors. Ranges and other protocols are none.
fn port(node: &Node) -> Option<(u16, u16)> {
    let number = |text: &str| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u16>().ok().filter(|port| *port != 0))?
    };
    if entries(node).is_some() {
        if get(node, "protocol").is_some_and(|node| text(node).as_deref() != Some("tcp")) {
            return None;
        }
        let target = number(&get(node, "target").and_then(text)?)?;
        return match get(node, "published").filter(|node| !node.is_null()) {
            Some(published) => Some((number(&text(published)?)?, target)),
            None => Some((target, target)),
        };
    }
    let text = text(node)?;
    let text = text.strip_suffix("/tcp").unwrap_or(&text);
    // An address before the ports is of no use: a box has its own.
    let mut parts = text.rsplit(':');
    let container = number(parts.next()?)?;
    match parts.next().filter(|host| !host.is_empty()) {
        Some(host) => Some((number(host)?, container)),
        None => Some((container, container)),
    }
}

/// As a mapping or as a list of `KEY=value`; the last of a name counts.
fn env(service: &Node, left: &mut Vec<String>) -> Vec<(String, String)> {
    let Some(node) = get(service, "environment") else { return Vec::new() };
    let pairs: Vec<(String, Option<String>)> = match &node.kind {
        Kind::Map(pairs) => pairs
            .iter()
            .take(MOST_VALUES)
            .map(|(key, value)| (key.text.clone(), text(value)))
            .collect(),
        Kind::List(all) => all.iter().take(MOST_VALUES).map(assignment).collect(),
        Kind::Scalar(_) => Vec::new(),
    };
    let mut env: Vec<(String, String)> = Vec::new();
    for (name, value) in pairs {
        match value {
            _ if !is_variable(&name) || name.len() > LONGEST_NAME => {
                left.push(format!("{name} (no name of a variable here)"));
            }
            None => left.push(format!("{name} (its value is not in the file)")),
            Some(value) => {
                env.retain(|(other, _)| *other != name);
                env.push((name, value));
            }
        }
    }
    let many = entries(node).map(<[_]>::len).or_else(|| list(node).map(<[_]>::len)).unwrap_or(0);
    if many > MOST_VALUES {
        left.push(format!("{} more variables", many - MOST_VALUES));
    }
    env
}

fn assignment(node: &Node) -> (String, Option<String>) {
    let raw = scalar(node).map_or("", |scalar| scalar.text.as_str());
    let name = raw.split('=').next().unwrap_or_default().to_owned();
    let value = text(node).and_then(|text| text.split_once('=').map(|(_, value)| value.to_owned()));
    (name, value)
}

/// What the image is given to run: all of it, or nothing.
fn args(service: &Node, left: &mut Vec<String>) -> Vec<String> {
    let Some(node) = get(service, "command").filter(|node| !node.is_null()) else {
        return Vec::new();
    };
    let words = match list(node) {
        Some(all) if all.len() <= MOST_VALUES => all.iter().map(text).collect(),
        Some(_) => None,
        None => text(node).and_then(|line| shlex::split(&line)),
    };
    words.filter(|words: &Vec<String>| words.len() <= MOST_VALUES).unwrap_or_else(|| {
        left.push("command (not all of it is in the file)".to_owned());
        Vec::new()
    })
}

/// What a service waits for, as far as it is among the containers and nothing waits for itself.
fn needs(taken: &[Taken<'_>], found: &mut Found) {
    for one in taken {
        let Some(node) = get(one.node, "depends_on") else { continue };
        let wanted: Vec<&str> = match &node.kind {
            Kind::Map(pairs) => pairs.iter().map(|(key, _)| key.text.as_str()).collect(),
            Kind::List(all) => all.iter().filter_map(scalar).map(|s| s.text.as_str()).collect(),
            Kind::Scalar(_) => Vec::new(),
        };
        let wanted: BTreeSet<&str> = wanted.into_iter().collect();
        for other in taken.iter().filter(|other| wanted.contains(other.called)) {
            let (unit, need) = (&found.services[one.at], &found.services[other.at]);
            let name = need.name.clone();
            // A unit that starts by itself would wait for somebody.
            let waits = need.waits && !unit.waits;
            if !waits && !reaches(&found.services, &name, &unit.name) {
                found.services[one.at].needs.push(name);
            }
        }
    }
}

/// Whether one unit is, or needs, the other. There are few, and no way leads round.
fn reaches(units: &[Unit], from: &str, to: &str) -> bool {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            let unit = units.iter().find(|unit| unit.name == name);
            next.extend(unit.into_iter().flat_map(|unit| &unit.needs).map(String::as_str));
        }
    }
    false
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    entries(node)?.iter().find(|(one, _)| one.text == key).map(|(_, node)| node)
}

/// A value with its variables filled in, if that can be, and if a program can be given it.
fn text(node: &Node) -> Option<String> {
    let scalar = scalar(node).filter(|scalar| !scalar.is_null() && scalar.text.len() <= LONGEST)?;
    filled(&scalar.text).filter(|text| !text.contains('\0'))
}
