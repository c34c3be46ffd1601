//! What goes where for this person, and what becomes of what is there. Looks and decides; writes nothing.

use super::record::Record;
use crate::commands::{completions, man};
use crate::error::CommandError;
use clap_complete::Shell;
use files::folder::{Folder, Kind as Found, is_detour};
use host::opener;
use serde::Serialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub const SKILL: &str = include_str!("skill.md");
/// Nothing of ours is longer.
const LONGEST: u64 = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Completions,
    Manual,
    Skill,
}

#[derive(Debug)]
pub struct Wanted {
    pub kind: Kind,
    pub path: PathBuf,
    pub text: String,
}

/// The person's folders, without links on the way.
pub struct Places {
    pub home: PathBuf,
    data: PathBuf,
    config: PathBuf,
    claude: PathBuf,
}

impl Places {
    pub fn of_this_person() -> Result<Self, CommandError> {
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let home = home.ok_or_else(|| {
            CommandError::usage("there is no home folder to install into").hint("set HOME")
        })?;
        Ok(Self::below(home, |name| std::env::var_os(name).map(PathBuf::from)))
    }

    fn below(home: PathBuf, env: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let or = |name: &str, usual: &str| match env(name).filter(|path| path.is_absolute()) {
            Some(path) => path.canonicalize().unwrap_or(path),
            None => home.join(usual),
        };
        let (data, config) =
            (or("XDG_DATA_HOME", ".local/share"), or("XDG_CONFIG_HOME", ".config"));
        let claude = or("CLAUDE_CONFIG_DIR", ".claude");
        Self { home, data, config, claude }
    }

    /// Everything this person has a use for.
    pub fn wanted(&self, skills_only: bool) -> Result<Vec<Wanted>, CommandError> {
        let mut all = Vec::new();
        if !skills_only {
            for (shell, path) in self.completions() {
                let text = completions::generate(shell);
                all.push(Wanted { kind: Kind::Completions, path, text });
            }
            for (name, text) in man::pages()? {
                let path = self.data.join("man/man1").join(name);
                all.push(Wanted { kind: Kind::Manual, path, text });
            }
        }
        for folder in self.skills() {
            let path = folder.join("skills/agentbox/SKILL.md");
            all.push(Wanted { kind: Kind::Skill, path, text: SKILL.to_owned() });
        }
        Ok(all)
    }

    fn completions(&self) -> Vec<(Shell, PathBuf)> {
        let all = [
            (Shell::Bash, "bash", self.data.join("bash-completion/completions/agentbox")),
            (Shell::Zsh, "zsh", self.home.join(".zfunc/_agentbox")),
            (Shell::Fish, "fish", self.config.join("fish/completions/agentbox.fish")),
        ];
        let there = all.into_iter().filter(|(_, program, _)| opener::find(program).is_some());
        there.map(|(shell, _, path)| (shell, path)).collect()
    }

    /// Claude Code reads its own folder; Codex and OpenCode read the one agents share.
    fn skills(&self) -> Vec<PathBuf> {
        let uses = |program: &str, folder: &Path| {
            opener::find(program).is_some() || folder.symlink_metadata().is_ok()
        };
        let shared = self.home.join(".agents");
        let mut folders = Vec::new();
        if uses("claude", &self.claude) {
            folders.push(self.claude.clone());
        }
        let others = uses("codex", &self.home.join(".codex"))
            || uses("opencode", &self.config.join("opencode"))
            || shared.is_dir();
        folders.extend(others.then_some(shared));
        folders
    }

    /// With `~` for the person's home.
    pub fn shown(&self, path: &Path) -> String {
        let text = match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        };
        protocol::text::visible(&text)
    }

    /// Whether zsh looks where its completions go.
    pub fn zsh_knows(&self) -> bool {
        let rc = std::fs::read_to_string(self.home.join(".zshrc")).unwrap_or_default();
        rc.contains(".zfunc")
    }
}

/// What is at a path.
#[derive(Debug)]
pub enum Now {
    Nothing,
    File(Vec<u8>),
    /// Something that is left as it is, and why.
    Else(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    New,
    Same,
    Update,
    /// Somebody else's file goes.
    Replace,
    Remove,
    Leave,
}

/// One file of the plan.
#[derive(Debug, Serialize)]
pub struct Step {
    pub kind: Kind,
    pub path: PathBuf,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    #[serde(skip)]
    pub text: String,
}

const LINK: &str = "it is a link, which is never followed";
const ON_THE_WAY: &str = "a folder on the way is a link or a file";
const THEIRS: &str = "it is there, and not as AgentBox wrote it; --force replaces it";
const CHANGED: &str = "it was changed since AgentBox wrote it; --force removes it";

pub fn look(path: &Path) -> io::Result<Now> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Now::Else(ON_THE_WAY));
    };
    let folder = match Folder::at(parent) {
        Ok(folder) => folder,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Now::Nothing),
        Err(e) if is_detour(&e) => return Ok(Now::Else(ON_THE_WAY)),
        Err(e) => return Err(e),
    };
    let name = Path::new(name);
    match folder.look(name)?.map(|seen| (seen.kind, seen.size)) {
        None => Ok(Now::Nothing),
        Some((Found::Link, _)) => Ok(Now::Else(LINK)),
        Some((Found::File, size)) if size <= LONGEST => {
            let mut text = Vec::new();
            folder.read(name)?.take(LONGEST).read_to_end(&mut text)?;
            Ok(Now::File(text))
        }
        Some(_) => Ok(Now::Else("it is no file of AgentBox")),
    }
}

pub fn decide(
    now: &Now,
    wanted: &Wanted,
    record: &Record,
    force: bool,
) -> (Action, Option<&'static str>) {
    match now {
        Now::Nothing => (Action::New, None),
        Now::Else(why) => (Action::Leave, Some(why)),
        Now::File(text) if text == wanted.text.as_bytes() => (Action::Same, None),
        Now::File(text) if record.wrote(&wanted.path, text) => (Action::Update, None),
        Now::File(_) if force => (Action::Replace, None),
        Now::File(_) => (Action::Leave, Some(THEIRS)),
    }
}

/// What becomes of a file of the record that goes.
pub fn decide_removal(
    now: &Now,
    path: &Path,
    record: &Record,
    force: bool,
) -> Option<(Action, Option<&'static str>)> {
    match now {
        Now::Nothing => None,
        Now::Else(why) => Some((Action::Leave, Some(why))),
        Now::File(text) if force || record.wrote(path, text) => Some((Action::Remove, None)),
        Now::File(_) => Some((Action::Leave, Some(CHANGED))),
    }
}

/// What a file of the record is, by where it is.
pub fn kind_of(path: &Path) -> Kind {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("SKILL.md") => Kind::Skill,
        Some(name) if Path::new(name).extension().is_some_and(|e| e == "1") => Kind::Manual,
        _ => Kind::Completions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser;
    use std::collections::BTreeSet;

    #[test]
    fn only_what_was_written_is_written_over() {
        let path = PathBuf::from("/h/f");
        let wanted = Wanted { kind: Kind::Skill, path: path.clone(), text: "new".into() };
        let mut record = Record::default();
        let file = |text: &str| Now::File(text.into());
        let action = |now: &Now, record: &Record, force| decide(now, &wanted, record, force).0;
        assert_eq!(action(&Now::Nothing, &record, false), Action::New);
        assert_eq!(action(&file("new"), &record, false), Action::Same);
        assert_eq!(action(&file("old"), &record, false), Action::Leave);
        assert_eq!(action(&file("old"), &record, true), Action::Replace);
        for force in [false, true] {
            assert_eq!(action(&Now::Else(LINK), &record, force), Action::Leave);
        }
        let sums = BTreeSet::from([super::super::record::sum(b"old")]);
        record.files.insert(path.clone(), sums);
        assert_eq!(action(&file("old"), &record, false), Action::Update);
        assert_eq!(action(&file("changed"), &record, false), Action::Leave);
        let removal = |now: &Now, force| decide_removal(now, &path, &record, force).map(|d| d.0);
        assert_eq!(removal(&file("old"), false), Some(Action::Remove));
        assert_eq!(removal(&file("changed"), false), Some(Action::Leave));
        assert_eq!(removal(&Now::Nothing, false), None);
    }

    #[test]
    fn the_skill_is_one_and_its_commands_are_real() {
        let front = SKILL.strip_prefix("---\nname: agentbox\ndescription: ").unwrap();
        let description = front.split('\n').next().unwrap();
        assert!((50..1024).contains(&description.len()) && !description.contains(": "));
        let in_blocks = SKILL.lines().filter(|line| line.starts_with("agentbox "));
        let inline = SKILL
            .split('`')
            .filter(|code| code.starts_with("agentbox ") && code.contains("fix-login"));
        let mut seen = 0;
        for line in in_blocks.chain(inline) {
            let words = shlex::split(line).unwrap();
            Cli::try_parse_from(&words).unwrap_or_else(|e| panic!("{line}: {e}"));
            seen += 1;
        }
        assert!(seen > 8, "{seen}");
    }

    #[test]
    fn folders_are_where_the_person_says() {
        let at = |env: &dyn Fn(&str) -> Option<PathBuf>| Places::below("/h".into(), env);
        let usual = at(&|_| None);
        assert_eq!(usual.data, Path::new("/h/.local/share"));
        assert_eq!(usual.claude, Path::new("/h/.claude"));
        let said = at(&|name| (name == "XDG_DATA_HOME").then(|| "/d".into()));
        assert_eq!((said.data, said.config), ("/d".into(), "/h/.config".into()));
        let odd = at(&|_| Some("relative".into()));
        assert_eq!(odd.data, Path::new("/h/.local/share"));
        assert_eq!(usual.shown(Path::new("/h/x")), "~/x");
    }
}
