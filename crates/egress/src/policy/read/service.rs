//! Entries of `services`: a name of the catalog, and what it may be told.

use super::fields::{Fields, string};
use super::{origin, replaces, transform};
use crate::host_name::HostName;
use crate::policy::catalog::{self, Auth, Gives, Service};
use crate::policy::git_services::{ApiSurface, GitAuth, GitSurface, Provider, Scoped};
use crate::policy::problem::{At, Notes};
use crate::policy::push::RefPattern;
use crate::policy::{HostPattern, Origin, PushRule, RISKY_PORTS, THIS_COMPUTER};
use crate::request::Scheme;
use protocol::text::shortened;
use yaml::{Kind, Node, Place, Scalar};

#[derive(Debug)]
pub(in crate::policy) struct ServiceEntry {
    pub service: &'static Service,
    pub replace: bool,
    pub readonly: bool,
    pub auth: Option<Auth>,
    /// For a git service without repositories.
    pub host: Option<HostName>,
    pub scoped: Option<Scoped>,
    pub origin: Origin,
    pub at: At,
    pub place: Place,
}

pub(super) fn entry(node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<ServiceEntry> {
    let bare = |service, notes: &Notes<'_>| ServiceEntry {
        service,
        replace: false,
        readonly: false,
        auth: None,
        host: None,
        scoped: None,
        origin: origin(node, notes),
        at: at.clone(),
        place: node.place,
    };
    if let Kind::Scalar(_) = &node.kind {
        let service = named(string(node, at, notes)?, node, at, notes)?;
        if let Gives::Git(Provider { git_host: None, .. }) = service.gives {
            notes.error(node.place, at, format!("{} needs a host", service.name));
            return None;
        }
        return Some(bare(service, notes));
    }
    let Kind::Map(pairs) = &node.kind else {
        super::fields::wrong_type(node, at, "a name or a mapping", notes);
        return None;
    };
    let Some((_, name)) = pairs.iter().find(|(key, _)| key.text == "name") else {
        notes.error(node.place, at, "name is missing");
        return None;
    };
    let name_at = at.key("name");
    let service = named(string(name, &name_at, notes)?, name, &name_at, notes)?;
    let entry = bare(service, notes);
    match &service.gives {
        Gives::Git(provider) => git(node, at, provider, entry, notes),
        _ => hosts(node, at, entry, notes),
    }
}

fn named(text: &str, node: &Node, at: &At, notes: &mut Notes<'_>) -> Option<&'static Service> {
    let found = catalog::service(text);
    if found.is_none() {
        let known: Vec<_> = catalog::services().map(|service| service.name).collect();
        let known = known.join(", ");
        let message = format!("{} is not a service; known are {known}", shortened(text, 60));
        notes.error(node.place, at, message);
    }
    found
}

fn hosts(
    node: &Node,
    at: &At,
    mut entry: ServiceEntry,
    notes: &mut Notes<'_>,
) -> Option<ServiceEntry> {
    let credentials = entry.service.credentials();
    let mut known = vec!["name", "merge_mode", "readonly"];
    if !credentials.is_empty() {
        known.push("auth");
    }
    let fields = Fields::of(node, at.clone(), &known, notes)?;
    entry.replace = replaces(&fields, notes);
    entry.readonly = fields.flag("readonly", notes);
    if let Some((node, at)) = fields.get("auth").filter(|_| !credentials.is_empty()) {
        let fields = Fields::of(node, at.clone(), &["secret", "type", "client_shim"], notes)?;
        let words: Vec<_> = credentials.iter().map(|one| (one.word, *one)).collect();
        let credential = if fields.has("type") {
            fields.word("type", &words, notes)?
        } else {
            credentials.first()?
        };
        let secret = transform::secret(&fields, notes)?;
        let shim = shim(&fields, "env", notes);
        if shim && credential.env.is_none() {
            let message = format!(
                "{} takes type: {} from no variable; put a made-up one where it looks",
                entry.service.name, credential.word
            );
            notes.error(node.place, &at.key("client_shim"), message);
        }
        entry.auth = Some(Auth { secret, credential, shim });
    }
    Some(entry)
}

/// Whether the box gets a made-up credential of the one kind that is possible here.
fn shim(fields: &Fields<'_>, kind: &str, notes: &mut Notes<'_>) -> bool {
    let Some((node, at)) = fields.get("client_shim") else { return false };
    let Some(fields) = Fields::of(node, at, &["kind"], notes) else { return false };
    if fields.required("kind", notes).is_none() {
        return false;
    }
    fields.word("kind", &[(kind, true)], notes).unwrap_or(false)
}

/// Keys of older files and common slips, and what stands for them.
const MOVED: &[(&str, &str)] = &[
    ("surfaces", "is gone: name git and api, each with its access"),
    ("access", "belongs under git or api"),
    ("auth", "belongs under git or api"),
    ("push", "belongs under git"),
    ("lfs", "belongs under git"),
];

fn git(
    node: &Node,
    at: &At,
    provider: &'static Provider,
    mut entry: ServiceEntry,
    notes: &mut Notes<'_>,
) -> Option<ServiceEntry> {
    let own = provider.git_host.is_none() || provider.api_host.is_none();
    let mut known = vec!["name", "merge_mode", "readonly", "repos", "git", "exclusive"];
    if provider.api.is_some() {
        known.push("api");
    }
    if own {
        known.extend(["host", "port", "allow_private"]);
    }
    let moved = MOVED.iter().map(|(key, _)| *key);
    let all: Vec<&str> = known.iter().copied().chain(moved).collect();
    let fields = Fields::of(node, at.clone(), &all, notes)?;
    for (key, say) in MOVED.iter().filter(|(key, _)| fields.has(key)) {
        notes.error(node.place, &at.key(key), *say);
    }
    entry.replace = replaces(&fields, notes);
    entry.readonly = fields.flag("readonly", notes);
    let allow_private = fields.flag("allow_private", notes);
    entry.host = host(&fields, allow_private, notes);
    if provider.git_host.is_none() && !fields.has("host") {
        notes.error(node.place, at, format!("{} needs a host", entry.service.name));
    }
    let port = port(&fields, notes);
    if !fields.has("repos") {
        for key in ["git", "api", "exclusive", "port", "allow_private"]
            .iter()
            .filter(|key| fields.has(key))
        {
            notes.error(
                node.place,
                &at.key(key),
                "needs repos; without it all of the host is meant",
            );
        }
        return Some(entry);
    }
    if fields.has("readonly") {
        let message = "is said with access: read under git and api where repos are named";
        notes.error(node.place, &at.key("readonly"), message);
    }
    if !fields.has("git") && !fields.has("api") {
        notes.error(node.place, at, "repos alone say nothing: name git or api with its access");
    }
    let repos = repos(&fields, provider, notes);
    let git = fields.get("git").and_then(|(node, at)| surface(node, at, provider, notes));
    let api = fields.get("api").and_then(|(node, at)| api(node, at, provider, notes));
    let exclusive = fields.bool("exclusive", notes).unwrap_or(true);
    if let (Some(git), Some(api)) = (&git, &api)
        && api.write
        && git.push.refs.is_some()
    {
        let message = "git.push.refs holds pushes only: with api.access: readwrite refs can be changed by the API";
        notes.warning("push_scope_bypassed", node.place, &at.key("api"), message);
    }
    let host = entry.host.clone();
    entry.scoped = Some(Scoped { host, port, allow_private, repos, git, api, exclusive });
    Some(entry)
}

fn host(fields: &Fields<'_>, allow_private: bool, notes: &mut Notes<'_>) -> Option<HostName> {
    let text = fields.string("host", notes)?;
    let (node, at) = fields.get("host")?;
    match HostPattern::parse(text, allow_private) {
        // A server of this computer is known by its port.
        Ok(HostPattern::Exact(host)) if host.as_str() != THIS_COMPUTER || fields.has("port") => {
            return Some(host);
        }
        Ok(_) => notes.error(node.place, &at, "must be one host"),
        Err(why) => notes.error(node.place, &at, why.to_string()),
    }
    None
}

fn port(fields: &Fields<'_>, notes: &mut Notes<'_>) -> u16 {
    let usual = Scheme::Https.port();
    let Some((node, at)) = fields.get("port") else { return usual };
    let number =
        super::fields::scalar(node).and_then(Scalar::int).and_then(|n| u16::try_from(n).ok());
    let port = number.filter(|n| *n > 0 && !RISKY_PORTS.contains(n));
    if port.is_none() {
        notes.error(node.place, &at, "must be the port of a web server");
    }
    port.unwrap_or(usual)
}

fn repos(fields: &Fields<'_>, provider: &Provider, notes: &mut Notes<'_>) -> Vec<String> {
    let mut repos: Vec<String> = Vec::new();
    for (text, node, at) in fields.strings("repos", notes).unwrap_or_default() {
        match repo(text, provider) {
            Ok(repo) if repos.contains(&repo) => {}
            Ok(repo) => repos.push(repo),
            Err(why) => notes.error(node.place, &at, why),
        }
    }
    repos
}

fn repo(text: &str, provider: &Provider) -> Result<String, String> {
    let text = text.trim();
    let text = if provider.ignore_case { text.to_ascii_lowercase() } else { text.to_owned() };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let good = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
    let parts = text.split('/').count();
    if !provider.depth.contains(&parts) || !text.split('/').all(good) {
        return Err("must be the name of a repository, such as owner/name".to_owned());
    }
    if text.strip_suffix(".git").is_some() {
        return Err("is written without .git; both spellings are meant".to_owned());
    }
    Ok(text)
}

const ACCESS: &[(&str, bool)] = &[("read", false), ("readwrite", true)];

fn access(fields: &Fields<'_>, notes: &mut Notes<'_>) -> Option<bool> {
    fields.required("access", notes)?;
    fields.word("access", ACCESS, notes)
}

fn surface(node: &Node, at: At, provider: &Provider, notes: &mut Notes<'_>) -> Option<GitSurface> {
    let fields = Fields::of(node, at.clone(), &["access", "auth", "push", "lfs"], notes)?;
    let write = access(&fields, notes);
    let auth = fields.get("auth").and_then(|(node, at)| git_auth(node, at, provider, notes));
    if write == Some(true) && !fields.has("auth") {
        notes.error(
            node.place,
            &at,
            "access: readwrite needs auth: nobody pushes without a credential",
        );
    }
    if write == Some(false) && fields.has("push") {
        notes.error(node.place, &at.key("push"), "means nothing with access: read");
    }
    let push = fields.get("push").and_then(|(node, at)| push(node, at, notes));
    let lfs = fields.flag("lfs", notes);
    Some(GitSurface { write: write?, auth, push: push.unwrap_or_default(), lfs })
}

fn git_auth(node: &Node, at: At, provider: &Provider, notes: &mut Notes<'_>) -> Option<GitAuth> {
    let fields = Fields::of(node, at, &["secret", "username", "client_shim"], notes)?;
    let secret = transform::secret(&fields, notes);
    let username = match (fields.has("username"), provider.username) {
        (false, Some(usual)) => Some(usual.to_owned()),
        _ => transform::username(&fields, notes),
    };
    let shim = shim(&fields, "git-askpass", notes);
    Some(GitAuth { secret: secret?, username: username?, shim })
}

fn push(node: &Node, at: At, notes: &mut Notes<'_>) -> Option<PushRule> {
    let fields = Fields::of(node, at, &["refs", "allow_delete", "allow_create"], notes)?;
    let mut refs = fields.has("refs").then(Vec::new);
    if let Some(refs) = &mut refs {
        for (text, node, at) in fields.strings("refs", notes)? {
            match RefPattern::parse(text) {
                Ok(pattern) => refs.push(pattern.to_string()),
                Err(why) => notes.error(node.place, &at, why),
            }
        }
    }
    let allow_delete = fields.flag("allow_delete", notes);
    let allow_create = fields.bool("allow_create", notes).unwrap_or(true);
    Some(PushRule { refs, allow_delete, allow_create })
}

fn api(node: &Node, at: At, provider: &Provider, notes: &mut Notes<'_>) -> Option<ApiSurface> {
    let api = provider.api.as_ref()?;
    let fields = Fields::of(node, at, &["access", "auth", "allow_admin"], notes)?;
    let write = access(&fields, notes);
    let auth = match fields.get("auth") {
        Some((node, at)) => {
            let known: &[&str] =
                if api.env.is_some() { &["secret", "client_shim"] } else { &["secret"] };
            let fields = Fields::of(node, at, known, notes)?;
            let secret = transform::secret(&fields, notes);
            let shim = shim(&fields, "env", notes);
            secret.map(|secret| (secret, shim))
        }
        None => None,
    };
    let mut admin = Vec::new();
    if fields.has("allow_admin") {
        for (text, node, at) in fields.strings("allow_admin", notes).unwrap_or_default() {
            match api.admin.iter().find(|(word, ..)| *word == text) {
                Some((word, ..)) => admin.push(*word),
                None => {
                    let mut known: Vec<_> = api.admin.iter().map(|(word, ..)| *word).collect();
                    known.dedup();
                    notes.error(node.place, &at, format!("must be one of {}", known.join(", ")));
                }
            }
        }
    }
    Some(ApiSurface { write: write?, auth, admin })
}
