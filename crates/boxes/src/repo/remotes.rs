//! The repository's remotes, from its own config file only.
//!
//! Includes are not followed: what an included file says about remotes is not this repository's.

use super::config_entries;
use super::git::Git;
use crate::{Error, Remote};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) async fn read(common_dir: &Path) -> Result<BTreeMap<String, Remote>, Error> {
    let args = ["config", "--no-includes", "-z", "--get-regexp", r"^remote\..*\.(url|pushurl)$"];
    let git = Git::new("read remotes", common_dir)?.args(["config", "--file"]);
    let answer = git.args([common_dir.join("config")]).args(&args[1..]).ask().await?;
    Ok(collect(config_entries(&answer.stdout)))
}

/// Git fetches from the first `url` and pushes to `pushurl` when there is one.
fn collect(entries: Vec<(String, String)>) -> BTreeMap<String, Remote> {
    let mut fetch: BTreeMap<String, String> = BTreeMap::new();
    let mut push: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in entries {
        let Some((name, field)) =
            key.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.'))
        else {
            continue;
        };
        let map = if field == "url" { &mut fetch } else { &mut push };
        map.entry(name.to_owned()).or_insert(value);
    }
    let complete = |(name, fetch_url): (String, String)| {
        let push_url = push.remove(&name).unwrap_or_else(|| fetch_url.clone());
        (name, Remote { fetch_url, push_url })
    };
    fetch.into_iter().map(complete).collect()
}

/// An address as a box may see it. A password, a token or a person's login is dropped; the `git@`
/// of an SSH address stays, because it names a service, not a person, and tools recognise it.
pub(super) fn without_user(url: &str) -> String {
    if let Some((scheme, rest)) = url.split_once("://") {
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let keep = if scheme.contains("ssh") && user == "git" { "git@" } else { "" };
        let web = scheme.starts_with("http");
        let path = if web { path.split(['?', '#']).next().unwrap_or("") } else { path };
        return format!("{scheme}://{keep}{host}{path}");
    }
    // `user@host:path`; an @ after the colon or a slash belongs to a path.
    match url.split_once('@') {
        Some((user, rest)) if !user.contains(['/', ':']) && rest.contains(':') && user != "git" => {
            rest.to_owned()
        }
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_information_is_dropped() {
        for (url, shown) in [
            ("https://u:p@h/o/r.git", "https://h/o/r.git"),
            ("https://token@h", "https://h"),
            ("https://a@b:c@h/x@y", "https://h/x@y"),
            ("https://h/r?private_token=1#f", "https://h/r"),
            ("ssh://git@h:22/r", "ssh://git@h:22/r"),
            ("ssh://me:pw@h/r", "ssh://h/r"),
            ("git@h:o/r.git", "git@h:o/r.git"),
            ("me@h:o/r.git", "h:o/r.git"),
            ("/srv/a@b:c", "/srv/a@b:c"),
            ("../up", "../up"),
        ] {
            assert_eq!(without_user(url), shown, "{url}");
        }
    }

    #[test]
    fn the_first_url_counts_and_dots_in_names_are_kept() {
        let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let remotes = collect(vec![
            entry("remote.a.b.url", "one"),
            entry("remote.a.b.url", "two"),
            entry("remote.only-push.pushurl", "three"),
        ]);
        assert_eq!(remotes.len(), 1);
        assert_eq!(remotes["a.b"], Remote { fetch_url: "one".into(), push_url: "one".into() });
    }
}
