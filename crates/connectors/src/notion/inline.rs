//! `ntn`'s inline inputs: `name==value`, `path=value`, `path:=json`, `Header:Value`.
//!
//! An input is what its earliest separator says. `ntn` itself goes by an order of precedence, so
//! that `title=a==b` could be a body to one and a query to the other; therefore bodies never reach
//! it as inputs but as the object that is put together here.

use super::quoted;
use serde_json::{Map, Value as Json};

/// Keys inside keys.
const MAX_STEPS: usize = 16;

/// The query, as inputs `ntn` cannot read otherwise, and the body.
pub(super) fn read(inputs: &[&str]) -> Result<(Vec<String>, Option<Json>), String> {
    let mut query = Vec::new();
    let mut body = None;
    for input in inputs {
        let shown = quoted(input);
        match split(input) {
            Some((_, _, value)) if value.starts_with('@') => {
                return Err(format!("{shown} is refused: it names a file of the host."));
            }
            Some((name, "==", value)) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-[]".contains(&b);
                if name.is_empty() || !name.bytes().all(plain) || value.contains(":=") {
                    return Err(format!(
                        "{shown} is no query input; name==value is, without ':='."
                    ));
                }
                query.push(format!("{name}=={value}"));
            }
            Some((path, "=", value)) => assign(&mut body, path, Json::from(value))
                .ok_or_else(|| format!("{shown} does not fit the body. Give the body with -d."))?,
            Some((path, ":=", value)) => {
                let value = serde_json::from_str(value)
                    .map_err(|e| format!("{shown} holds no JSON: {e}."))?;
                assign(&mut body, path, value).ok_or_else(|| {
                    format!("{shown} does not fit the body. Give the body with -d.")
                })?;
            }
            Some(_) => return Err(format!("{shown} is refused: it sets a header.")),
            None => {
                return Err(format!(
                    "{shown} is no input; name==value, path=value and path:=json are."
                ));
            }
        }
    }
    Ok((query, body))
}

/// By the earliest separator, the longest of those that start there.
fn split(input: &str) -> Option<(&str, &str, &str)> {
    let at = input.find(['=', ':'])?;
    let (name, rest) = input.split_at(at);
    let separator = [":=", "==", ":", "="].into_iter().find(|s| rest.starts_with(s))?;
    Some((name, separator, rest.strip_prefix(separator)?))
}

enum Step<'p> {
    Key(&'p str),
    Index(usize),
    Append,
}

/// Sets what a path like `filter[and][0][property]` or `sorts[]` names. None when it cannot be.
fn assign(body: &mut Option<Json>, path: &str, value: Json) -> Option<()> {
    let steps = steps(path)?;
    let mut at = body.get_or_insert_with(|| Json::Object(Map::new()));
    for step in steps {
        if at.is_null() {
            *at = match step {
                Step::Key(_) => Json::Object(Map::new()),
                _ => Json::Array(Vec::new()),
            };
        }
        at = match step {
            Step::Key(key) => at.as_object_mut()?.entry(key).or_insert(Json::Null),
            Step::Index(index) => slot(at.as_array_mut()?, Some(index))?,
            Step::Append => slot(at.as_array_mut()?, None)?,
        };
    }
    *at = value;
    Some(())
}

/// A place in a list, or a new one right after its end; never beyond, where there would be holes.
fn slot(list: &mut Vec<Json>, index: Option<usize>) -> Option<&mut Json> {
    let index = index.unwrap_or(list.len());
    if index == list.len() {
        list.push(Json::Null);
    }
    list.get_mut(index)
}

fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let plain = |key: &str| {
        !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '))
    };
    let (first, rest) = path.split_at(path.find('[').unwrap_or(path.len()));
    let mut steps = vec![Step::Key(first)];
    if !rest.is_empty() {
        for part in rest.strip_prefix('[')?.strip_suffix(']')?.split("][") {
            steps.push(match part {
                "" => Step::Append,
                digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
                    Step::Index(digits.parse().ok()?)
                }
                key if plain(key) => Step::Key(key),
                _ => return None,
            });
        }
    }
    (plain(first) && steps.len() <= MAX_STEPS).then_some(steps)
}
