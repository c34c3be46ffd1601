//! A service that is a container.

use super::fields::{At, Fields, entries, list, scalar, string, wrong_type};
use super::units;
use crate::problem::Problems;
use crate::shape::IMAGE;
use crate::{Env, Image, PortMapping, UnitName};
use protocol::text::shortened;
use yaml::Node;

pub(super) fn image(
    service: &UnitName,
    node: &Node,
    at: &At,
    problems: &mut Problems,
) -> Option<Image> {
    if let Some(name) = string(node) {
        return Some(Image {
            name: image_name(name, node, at, problems)?,
            ports: Vec::new(),
            env: Env::new(),
            args: Vec::new(),
            container_name: default_name(service, node, at, problems)?,
        });
    }
    if entries(node).is_none() {
        let message = format!("must be a string or a mapping, not {}", node.what());
        problems.error("Y030", node.place, at.path(), &message);
        return None;
    }
    let fields = Fields::new(node, at.clone(), IMAGE);
    fields.warn_unknown(problems);
    let name = match fields.get("name") {
        None => {
            problems.error("Y030", node.place, at.path(), "needs a name");
            None
        }
        Some((node, at)) => match string(node) {
            Some(name) => image_name(name, node, &at, problems),
            None => {
                wrong_type(node, &at, "Y030", "a string", problems);
                None
            }
        },
    };
    let ports = ports(&fields, problems);
    let env = units::env(&fields, "Y031", problems).unwrap_or_default();
    let args = args(&fields, problems);
    let container_name = match fields.get("container_name") {
        None => default_name(service, node, at, problems),
        Some((node, at)) => match string(node).filter(|name| is_container_name(name)) {
            Some(name) => Some(name.to_owned()),
            None => {
                let message = "a container's name has letters, digits, _, . and -, and begins with a letter or digit";
                problems.error("Y031", node.place, at.path(), message);
                None
            }
        },
    };
    Some(Image { name: name?, ports, env, args, container_name: container_name? })
}

fn image_name(text: &str, node: &Node, at: &At, problems: &mut Problems) -> Option<String> {
    let name = text.trim();
    if !is_image(name) {
        let message = format!("{} is no image, such as postgres:17", shortened(text, 60));
        problems.error("Y030", node.place, at.path(), &message);
        return None;
    }
    Some(name.to_owned())
}

/// An option where an image is expected would be one for the engine's program.
pub(crate) fn is_image(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && name.bytes().all(|b| b.is_ascii_graphic())
}

fn is_container_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    first && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

fn default_name(
    service: &UnitName,
    node: &Node,
    at: &At,
    problems: &mut Problems,
) -> Option<String> {
    if is_container_name(service.as_str()) {
        return Some(service.to_string());
    }
    let message = format!("{service} cannot be a container's name");
    let hint = "set image.container_name, or call the service otherwise";
    problems.error_hint("Y031", node.place, at.path(), &message, hint);
    None
}

fn ports(fields: &Fields<'_>, problems: &mut Problems) -> Vec<PortMapping> {
    let Some((node, at)) = fields.get("ports") else { return Vec::new() };
    let Some(all) = list(node) else {
        let message = format!("must be a list, not {}", node.what());
        problems.error("Y031", node.place, at.path(), &message);
        return Vec::new();
    };
    let mut ports = Vec::new();
    for (index, one) in all.iter().enumerate() {
        match scalar(one).and_then(|scalar| mapping(&scalar.text)) {
            Some(port) => ports.push(port),
            None => {
                let message = "must be a port, or two such as \"5437:5432\"";
                problems.error("Y031", one.place, at.item(index).path(), message);
            }
        }
    }
    ports
}

fn mapping(text: &str) -> Option<PortMapping> {
    let port = |text: &str| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok().filter(|port| *port != 0))?
    };
    match text.split_once(':') {
        Some((host, container)) => {
            Some(PortMapping { host: Some(port(host)?), container: port(container)? })
        }
        None => Some(PortMapping { host: None, container: port(text)? }),
    }
}

fn args(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let Some((node, at)) = fields.get("args") else { return Vec::new() };
    if let Some(all) = list(node) {
        return units::strings(all, &at, "Y031", problems);
    }
    let Some(text) = string(node) else {
        wrong_type(node, &at, "Y031", "a string or a list of strings", problems);
        return Vec::new();
    };
    let words = shlex::split(text).filter(|_| units::is_passable(text));
    words.unwrap_or_else(|| {
        problems.error("Y031", node.place, at.path(), "a quote is not closed");
        Vec::new()
    })
}
