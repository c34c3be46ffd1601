//! Files from this computer that a project wants in its boxes: where they may come from and go to.
//!
//! Pure: paths are looked at as text. The file is one a box may have written, so a path is checked as
//! it stands and as it is meant, and what it leads to is for whoever opens it to find out.

use crate::problem::Problems;
use crate::{CarryItem, Problem, Project, Rule};
use protocol::text::shortened;
use std::path::{Path, PathBuf};

/// Left out of every folder unless an item says `default_excludes: false`.
pub const DEFAULT_EXCLUDES: [&str; 8] =
    [".git", "node_modules", "bin", "obj", "packages", "dist", ".next", "target"];
/// More than anybody wants, and little enough to read.
pub const MOST_ITEMS: usize = 200;

/// An item that no box takes.
const REFUSED: &str = "Y062";
/// Nothing below these is a file.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// These are the box's own, with everything below.
const OWN: [&str; 6] = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/agentbox",
    "/run/agentbox",
    "/var/run/agentbox",
    "/usr/local/bin/agentbox-ctl",
];

/// An item whose paths are in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    pub item: CarryItem,
    /// Absolute on this computer; it may lead anywhere.
    pub source: PathBuf,
    /// From the project itself.
    pub of_project: bool,
    /// Absolute in the box, without anything odd. One that ends with `/` is a folder to put a file in.
    pub dest: String,
    /// Of the sets it names, then its own.
    pub rules: Vec<Rule>,
}

impl Planned {
    /// It is not copied as it is.
    pub fn is_rendered(&self) -> bool {
        self.item.replace_envs || !self.rules.is_empty()
    }

    pub fn excludes(&self) -> Excludes<'_> {
        Excludes { default: self.item.default_excludes, more: &self.item.exclude }
    }
}

/// Every item with its paths, or everything that is wrong with them.
pub fn plan(
    project: &Project,
    root: &Path,
    home: &Path,
    box_home: &str,
) -> Result<Vec<Planned>, Vec<String>> {
    each(project, root, home, box_home)
        .map_err(|refused| refused.into_iter().map(|(_, why)| why).collect())
}

/// What [`plan`] refuses, with its place in the file.
pub fn problems(project: &Project, root: &Path, home: &Path, box_home: &str) -> Vec<Problem> {
    let mut problems = Problems::default();
    for (index, why) in each(project, root, home, box_home).err().unwrap_or_default() {
        let place = project.carry[index].place;
        problems.error(REFUSED, place, &format!("carry[{index}]"), &why);
    }
    problems.errors
}

/// Every item with its paths, or why some are refused, by their index.
fn each(
    project: &Project,
    root: &Path,
    home: &Path,
    box_home: &str,
) -> Result<Vec<Planned>, Vec<(usize, String)>> {
    if project.carry.len() > MOST_ITEMS {
        let why = format!("the list has more than {MOST_ITEMS} entries");
        return Err(vec![(MOST_ITEMS, why)]);
    }
    let mut planned = Vec::with_capacity(project.carry.len());
    let mut refused = Vec::new();
    for (index, item) in project.carry.iter().enumerate() {
        match one(project, item, root, home, box_home) {
            Ok(one) => planned.push(one),
            Err(why) => refused.push((index, format!("{}: {why}", shown(item)))),
        }
    }
    if refused.is_empty() { Ok(planned) } else { Err(refused) }
}

/// An item as people wrote it.
pub fn shown(item: &CarryItem) -> String {
    format!("{} → {}", shortened(&item.src, 200), shortened(&item.dest, 200))
}

fn one(
    project: &Project,
    item: &CarryItem,
    root: &Path,
    home: &Path,
    box_home: &str,
) -> Result<Planned, String> {
    let up = |path: &str| path.split('/').any(|part| part == "..");
    if up(&item.src) || up(&item.dest) {
        return Err("a path with .. is not taken".to_owned());
    }
    let (source, of_project) = match (item.src.strip_prefix("~/"), item.src.strip_prefix("./")) {
        (Some(rest), _) => (home.join(rest.trim_start_matches('/')), false),
        (_, Some(rest)) => (root.join(rest.trim_start_matches('/')), true),
        _ => (PathBuf::from(&item.src), false),
    };
    let dest = match item.dest.strip_prefix("~/") {
        Some(rest) => format!("{box_home}/{rest}"),
        None => item.dest.clone(),
    };
    let dest = normal(&dest);
    if let Some(why) = denied(&dest) {
        return Err(why);
    }
    let mut rules = Vec::new();
    for name in &item.rules {
        let Some(set) = project.rule_set(name) else {
            let known: Vec<&str> = project.replacements.iter().map(|s| s.name.as_str()).collect();
            let known = if known.is_empty() { "there are none".into() } else { known.join(", ") };
            return Err(format!("no replacement set {name}; known: {known}"));
        };
        rules.extend(set.rules.iter().cloned());
    }
    rules.extend(item.replace.iter().cloned());
    Ok(Planned { item: item.clone(), source, of_project, dest, rules })
}

/// Without `//` and `/./`; a slash at the end stays.
fn normal(path: &str) -> String {
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let folder = path.ends_with('/') || path.ends_with("/.");
    let end = if folder && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// Why nothing goes to this path in a box, if so. It is absolute and without `..`.
pub fn denied(path: &str) -> Option<String> {
    let path = normal(path);
    let bare = path.trim_end_matches('/');
    let at_or_below = |top: &str| {
        bare.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if bare.is_empty() {
        return Some("the whole box is no destination".to_owned());
    }
    if bare.chars().any(char::is_control) {
        return Some("the destination has a control character".to_owned());
    }
    if let Some(top) = NO_FILES.iter().find(|top| at_or_below(top)) {
        return Some(format!("nothing can be copied to {top}"));
    }
    let sudoers = bare.strip_prefix("/etc/").is_some_and(|name| name.starts_with("sudoers"));
    if sudoers || OWN.iter().any(|top| at_or_below(top)) {
        return Some("this is the box's own".to_owned());
    }
    None
}

/// What is left out of a folder. The same for its size, its hash and its copy.
#[derive(Debug, Clone, Copy)]
pub struct Excludes<'a> {
    default: bool,
    more: &'a [String],
}

impl Excludes<'_> {
    /// Whether this is left out, with all below it; the path is from the folder.
    pub fn leaves_out(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        if self.default && DEFAULT_EXCLUDES.contains(&name) {
            return true;
        }
        self.more.iter().any(|pattern| {
            let pattern = pattern.trim_end_matches('/');
            if pattern.contains(['/', '*', '?']) {
                glob(pattern.strip_prefix("./").unwrap_or(pattern), path)
            } else {
                pattern == name
            }
        })
    }
}

/// `*` is any text, slashes among it; `?` is one letter.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            // The last star takes one letter more.
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Whether a name looks like one of a credential: people should look twice.
pub fn looks_secret(path: &Path) -> bool {
    path.iter().any(|part| {
        let name = part.to_string_lossy().to_lowercase();
        let ends = |end: &str| name.ends_with(end);
        let begins = |begin: &str| name.starts_with(begin);
        begins(".env")
            || begins("id_")
            || begins("credentials")
            || begins(".git-credentials")
            || [".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore", ".jks"].into_iter().any(ends)
            || [
                ".ssh",
                ".aws",
                ".azure",
                ".gnupg",
                ".kube",
                ".netrc",
                ".npmrc",
                ".pypirc",
                ".docker",
                ".vault-token",
                ".pgpass",
                "auth.json",
                ".credentials.json",
                "secrets",
                "hosts.yml",
            ]
            .contains(&name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(carry: &str) -> Result<Vec<Planned>, Vec<String>> {
        let text = format!("replacements: {{a: [{{from: x, to: y}}]}}\ncarry: {carry}\n");
        let parsed = Project::parse(&text);
        let project = parsed.project.unwrap_or_else(|| panic!("{:?}", parsed.errors));
        plan(&project, Path::new("/src/shop"), Path::new("/home/ada"), "/home/vscode")
    }

    #[test]
    fn paths_are_meant_from_somewhere() {
        let all =
            planned("[~/.npmrc, './a=~/b', '/etc/hosts=/opt//x/./y/', {src: ~/x, dest: ~/y/}]")
                .unwrap();
        let paths: Vec<_> =
            all.iter().map(|p| (p.source.to_str().unwrap(), p.dest.as_str())).collect();
        assert_eq!(
            paths,
            [
                ("/home/ada/.npmrc", "/home/vscode/.npmrc"),
                ("/src/shop/a", "/home/vscode/b"),
                ("/etc/hosts", "/opt/x/y/"),
                ("/home/ada/x", "/home/vscode/y/"),
            ]
        );
        assert!(all[1].of_project && !all[0].of_project);
        assert_eq!(
            planned("['~//etc/passwd=/x']").unwrap()[0].source,
            Path::new("/home/ada/etc/passwd")
        );
    }

    #[test]
    fn yaml_13_49_what_leads_out_is_refused_all_at_once() {
        let refused = planned(
            "['./../../etc/x=/x', '/a=//proc/1', '/a=/etc//shadow', '~/a=~/../x', '/a=/etc/sudoers.d/me', '/a=/./run/agentbox/x', '/a=/', '/a=//', '/a=/dev', '/a=/usr/local/bin/agentbox-ctl', '/a=/etc/./passwd/']",
        );
        assert_eq!(refused.unwrap_err().len(), 11);
        for fine in ["/process", "/etc/passwd.d", "/etc/agentbox2", "/etc/hosts", "/workspace/..x"]
        {
            assert!(planned(&format!("['/a={fine}']")).is_ok(), "{fine}");
        }
        let unknown = planned("[{src: ~/a, rules: [b]}]").unwrap_err();
        assert_eq!(unknown, ["~/a → ~/a: no replacement set b; known: a"]);
        assert_eq!(
            planned("[{src: ~/a, rules: [a], replace: [{from: p, to: q}]}]").unwrap()[0]
                .rules
                .len(),
            2
        );
    }

    #[test]
    fn what_is_refused_has_its_place() {
        let too_many = vec!["~/a"; MOST_ITEMS + 1].join(", ");
        for (carry, path, column) in [
            ("[~/a, '~/b=/proc/1', '~/c=~/c']".to_owned(), "carry[1]", 14),
            (format!("[{too_many}]"), "carry[200]", 1009),
        ] {
            let text = format!("\ncarry: {carry}\n");
            let project = Project::parse(&text).project.unwrap();
            let found = problems(&project, Path::new("/r"), Path::new("/h"), "/home/vscode");
            let [one] = found.as_slice() else { panic!("{found:?}") };
            let place = crate::Place { line: 2, column };
            assert_eq!((one.code, one.path.as_str(), one.place), (REFUSED, path, place));
        }
    }

    #[test]
    fn one_matcher_leaves_out() {
        let more = ["*.log".to_owned(), "docs/*".to_owned(), "tmp".to_owned(), "a?c/".to_owned()];
        let excludes = Excludes { default: true, more: &more };
        for out in ["node_modules", "x/target", "a.log", "x/y.log", "docs/a/b", "x/tmp", "abc"] {
            assert!(excludes.leaves_out(out), "{out}");
        }
        for stays in ["src", "docs", "tmp2", "x.logs", "ac", "binary"] {
            assert!(!excludes.leaves_out(stays), "{stays}");
        }
        assert!(!Excludes { default: false, more: &[] }.leaves_out("bin"));
        let begun = std::time::Instant::now();
        assert!(!glob(&"*a".repeat(500), &"a".repeat(400)));
        assert!(begun.elapsed().as_secs() < 5);
    }

    #[test]
    fn credentials_look_like_it() {
        for secret in
            ["/h/.ssh/config", "/h/.env.local", "/h/x/id_ed25519", "/h/a.PEM", "/h/.netrc"]
        {
            assert!(looks_secret(Path::new(secret)), "{secret}");
        }
        for plain in ["/h/notes.txt", "/h/environment", "/h/keys.md", "/h/hosts"] {
            assert!(!looks_secret(Path::new(plain)), "{plain}");
        }
    }
}
