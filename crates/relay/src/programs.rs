//! Which host programs there are, and whether they work.
//!
//! A program is looked up at every call: only in folders that nobody but their owner can write and
//! that belong to no project of a box, so that a `gh` a box put into its own `bin` is never run.
//! Whether it works is asked rarely: a good answer is believed for a minute, a bad one for five
//! seconds, so that somebody who has just logged in is not told otherwise.

use crate::call::{Call, Stop};
use crate::integration::own_variables;
use crate::process::{Limit, Tool, is_trusted};
use connectors::connector::{Connector, Program};
use protocol::exit;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const GOOD_FOR: Duration = Duration::from_secs(60);
const BAD_FOR: Duration = Duration::from_secs(5);
/// Folders of the search path are the person's own and change rarely.
const FOLDERS_FOR: Duration = Duration::from_secs(2);
const VERSION: Limit = Limit::of(Duration::from_secs(10));
const LOGIN: Limit = Limit::of(Duration::from_secs(15));

fn found(
    name: &str,
    dirs: impl Iterator<Item = PathBuf>,
    projects: &[PathBuf],
) -> Result<Tool, crate::process::ProcessError> {
    let tool = Tool::find_in(name, dirs)?;
    // A link in a good folder may lead into a project.
    if is_within(&tool.path, projects) {
        return Err(crate::process::ProcessError::Missing(name.to_owned()));
    }
    Ok(tool)
}

/// Folders of the search path that may hold the host's programs. Which of them lie in projects is
/// looked up on the disk again after a moment, and whenever there are other projects; whether others
/// can write there, every time.
#[derive(Default)]
pub(crate) struct SearchPath(Mutex<Option<KnownFolders>>);

struct KnownFolders {
    at: Instant,
    projects: Vec<PathBuf>,
    outside: Arc<[PathBuf]>,
}

impl SearchPath {
    fn of(&self, path: &OsStr, projects: &[PathBuf]) -> Vec<PathBuf> {
        let outside = self.outside_of(path, projects);
        outside.iter().filter(|dir| is_trusted(dir)).cloned().collect()
    }

    fn outside_of(&self, path: &OsStr, projects: &[PathBuf]) -> Arc<[PathBuf]> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known
            && known.at.elapsed() < FOLDERS_FOR
            && known.projects == projects
        {
            return known.outside.clone();
        }
        let outside: Arc<[PathBuf]> =
            std::env::split_paths(path).filter(|dir| !is_within(dir, projects)).collect();
        let (at, projects) = (Instant::now(), projects.to_vec());
        *known = Some(KnownFolders { at, projects, outside: outside.clone() });
        outside
    }

    /// Finds a program in a search path, away from the projects of boxes.
    pub fn find(
        &self,
        name: &str,
        path: &OsStr,
        projects: &[PathBuf],
    ) -> Result<Tool, crate::process::ProcessError> {
        found(name, self.of(path, projects).into_iter(), projects)
    }

    /// A search path without the folders of projects.
    pub fn outside(&self, path: &OsStr, projects: &[PathBuf]) -> OsString {
        let dirs = self.of(path, projects);
        std::env::join_paths(dirs.iter()).unwrap_or_else(|_| "/usr/bin:/bin".into())
    }
}

fn is_within(path: &Path, projects: &[PathBuf]) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    projects.iter().any(|project| real.starts_with(project))
}

/// What was found out about programs lately.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<HashMap<Question, Known>>);

/// One question about one file: a new version is asked anew.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Question {
    path: PathBuf,
    /// Inode, and when it was last changed in any way.
    stamp: (u64, i64, i64),
    args: Vec<String>,
}

struct Known {
    at: Instant,
    answer: Result<(), (i32, String)>,
}

impl Readiness {
    fn known(&self, question: &Question) -> Option<Result<(), (i32, String)>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(question)?;
        let good_for = if known.answer.is_ok() { GOOD_FOR } else { BAD_FOR };
        (known.at.elapsed() < good_for).then(|| known.answer.clone())
    }

    fn learn(&self, question: Question, answer: Result<(), (i32, String)>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, known| known.at.elapsed() < GOOD_FOR);
        all.insert(question, Known { at: Instant::now(), answer });
    }
}

impl Call {
    /// The connector's program, if it is there and answers.
    pub async fn ready(
        &self,
        connector: &Connector,
        program: &'static Program,
        env: &[(OsString, OsString)],
    ) -> Result<Tool, Stop> {
        let foreign = |why| Stop::fail(exit::BAD_ENVIRONMENT, why);
        own_variables(connector.secrets, program).map_err(foreign)?;
        let tool = self.tool(program.name).map_err(|_| {
            let text = format!("{} not installed on host ({})", program.name, program.install_hint);
            Stop::fail(exit::NO_PROGRAM, text)
        })?;
        let failed = |code: i32, said: String| {
            let text = format!("{} --version failed on the host: {said}", connector.service);
            (code, text)
        };
        self.probe(&tool, program.version_args, env, VERSION, failed).await?;
        Ok(tool)
    }

    /// The program has a login. The text is what the box is told when it has none.
    pub async fn logged_in(
        &self,
        tool: &Tool,
        args: &[&str],
        env: &[(OsString, OsString)],
        text: String,
    ) -> Result<(), Stop> {
        let failed = |_: i32, _: String| (exit::NOT_LOGGED_IN, text);
        self.probe(tool, args, env, LOGIN, failed).await
    }

    /// Asks a program something, unless the answer is still known.
    async fn probe(
        &self,
        tool: &Tool,
        args: &[&str],
        env: &[(OsString, OsString)],
        limit: Limit,
        failed: impl FnOnce(i32, String) -> (i32, String),
    ) -> Result<(), Stop> {
        let meta = std::fs::metadata(&tool.path);
        let stamp = meta.map_or((0, 0, 0), |m| (m.ino(), m.ctime(), m.ctime_nsec()));
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let question = Question { path: tool.path.clone(), stamp, args };
        let readiness = &self.shared.readiness;
        let answer = match readiness.known(&question) {
            Some(answer) => answer,
            None => {
                let output = self.run(tool, &question.args, None, env, limit).await?;
                let answer = if output.ok() {
                    Ok(())
                } else {
                    let said = secrets::redact(output.err().lines().next().unwrap_or_default());
                    Err(failed(output.code, protocol::text::shortened(&said, 300)))
                };
                readiness.learn(question, answer.clone());
                answer
            }
        };
        answer.map_err(|(code, text)| Stop::fail(code, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Folders with a program `gh` each, one of them a project's.
    struct Folders(tempfile::TempDir);

    impl Folders {
        fn new() -> Self {
            let folders = Self(tempfile::tempdir().unwrap());
            for name in ["shop/bin", "usr"] {
                std::fs::create_dir_all(folders.at(name)).unwrap();
                let file = folders.at(name).join("gh");
                std::fs::write(&file, "#!/bin/sh\n").unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            folders
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn path(&self, names: &[&str]) -> OsString {
            std::env::join_paths(names.iter().map(|name| self.at(name))).unwrap()
        }

        /// Which `gh` is taken, with this search path and the project `shop`.
        fn gh(&self, names: &[&str]) -> Option<PathBuf> {
            SearchPath::default()
                .find("gh", &self.path(names), &[self.at("shop")])
                .ok()
                .map(|tool| tool.path)
        }
    }

    #[test]
    fn relay_a35_a_projects_folder_on_the_path_is_passed_over() {
        let folders = Folders::new();
        assert_eq!(folders.gh(&["shop/bin", "usr"]), Some(folders.at("usr/gh")));
        assert_eq!(folders.gh(&["shop/bin"]), None);
        // Another folder whose name only begins like the project's is no part of it.
        std::fs::rename(folders.at("usr"), folders.at("shop-tools")).unwrap();
        assert_eq!(folders.gh(&["shop-tools"]), Some(folders.at("shop-tools/gh")));
    }

    #[test]
    fn relay_a35_no_link_leads_into_a_project() {
        let folders = Folders::new();
        symlink(folders.at("shop/bin"), folders.at("link")).unwrap();
        assert_eq!(folders.gh(&["link", "usr"]), Some(folders.at("usr/gh")));
        assert_eq!(folders.gh(&["usr/../shop/bin"]), None);
        std::fs::create_dir(folders.at("links")).unwrap();
        symlink(folders.at("shop/bin/gh"), folders.at("links/gh")).unwrap();
        assert_eq!(folders.gh(&["links"]), None);
    }

    #[test]
    fn relay_a35_what_a_program_starts_by_name_is_not_a_projects_either() {
        let folders = Folders::new();
        symlink(folders.at("shop/bin"), folders.at("link")).unwrap();
        let path = folders.path(&["shop/bin", "usr", "link", "shop"]);
        assert_eq!(
            SearchPath::default().outside(&path, &[folders.at("shop")]),
            folders.path(&["usr"])
        );
    }

    #[test]
    fn relay_a35_a_new_project_is_passed_over_at_once() {
        let folders = Folders::new();
        let (known, path) = (SearchPath::default(), folders.path(&["shop/bin", "usr"]));
        let gh = |projects: &[PathBuf]| known.find("gh", &path, projects).unwrap().path;
        assert_eq!(gh(&[]), folders.at("shop/bin/gh"));
        assert_eq!(gh(&[folders.at("shop")]), folders.at("usr/gh"));
        assert_eq!(gh(&[folders.at("shop")]), folders.at("usr/gh"));
    }

    #[test]
    fn relay_a35_a_folder_others_can_write_is_passed_over_at_once() {
        let folders = Folders::new();
        let (known, path) = (SearchPath::default(), folders.path(&["shop/bin", "usr"]));
        let gh = || known.find("gh", &path, &[]).unwrap().path;
        assert_eq!(gh(), folders.at("shop/bin/gh"));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folders.at("shop/bin"), open).unwrap();
        assert_eq!(gh(), folders.at("usr/gh"));
        assert_eq!(known.outside(&path, &[]), folders.path(&["usr"]));
    }

    #[test]
    fn a_relative_folder_is_not_searched() {
        let folders = Folders::new();
        let path = format!("bin:.::{}", folders.at("usr").display());
        let found = SearchPath::default().find("gh", OsStr::new(&path), &[]).unwrap();
        assert_eq!(found.path, folders.at("usr/gh"));
    }
}
