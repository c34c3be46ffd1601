//! What a box's policy is made of, as it lies on this computer.
//!
//! The person's own files are below the home, where no box writes. A repository's file is only read from a
//! commit that has come to this computer, and counts at a text a person has said yes to
//! ([`super::repository`]).

use crate::project_dirs::project_dir;
use egress::policy::{Layer, LayerText};
use protocol::egress::{EgressPlace, LayerState, LayerView, PolicyProblem};
use protocol::sessions::Agent;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file's name, in the home and in a project's folder there.
pub const FILE: &str = "egress.yaml";
/// What the reader takes at most.
const MOST: u64 = 1 << 20;

/// One place a layer may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub layer: Layer,
    pub path: PathBuf,
}

/// Everything that was found, in order.
#[derive(Debug, Default)]
pub struct Found {
    pub texts: Vec<LayerText>,
    pub views: Vec<LayerView>,
    pub problems: Vec<PolicyProblem>,
}

pub fn file_name(agent: Option<Agent>) -> String {
    match agent {
        Some(agent) => format!("egress.{}.yaml", agent.as_str()),
        None => FILE.to_owned(),
    }
}

/// Where one of the person's own files lies.
pub fn own_file(
    home: &Path,
    root: Option<&Path>,
    place: EgressPlace,
    agent: Option<Agent>,
) -> Option<PathBuf> {
    let dir = match (place, root) {
        (EgressPlace::Global, _) => home.to_owned(),
        (EgressPlace::Project, Some(root)) => project_dir(home, root),
        (EgressPlace::Project, None) | (EgressPlace::Box, _) => return None,
    };
    Some(dir.join(file_name(agent)))
}

/// Where the layers of a project's boxes may lie. What holds for a folder holds for those in it.
pub fn places(home: &Path, root: Option<&Path>, agents: &[Agent]) -> Vec<Place> {
    let mut all = vec![Place { layer: Layer::Global, path: home.join(FILE) }];
    let of_agents = |dir: &Path, layer: Layer| {
        let one = |agent: &Agent| Place { layer, path: dir.join(file_name(Some(*agent))) };
        agents.iter().map(one).collect::<Vec<_>>()
    };
    all.extend(of_agents(home, Layer::GlobalAgent));
    let mut roots: Vec<&Path> = root.into_iter().flat_map(Path::ancestors).collect();
    roots.reverse();
    let dirs: Vec<PathBuf> = roots.into_iter().map(|root| project_dir(home, root)).collect();
    all.extend(dirs.iter().map(|dir| Place { layer: Layer::Project, path: dir.join(FILE) }));
    all.extend(dirs.iter().flat_map(|dir| of_agents(dir, Layer::ProjectAgent)));
    all
}

/// Reads what is there. A file that cannot be read is a mistake, not an absence: it may hold back.
pub fn read(places: &[Place]) -> Found {
    let mut found = Found::default();
    for place in places {
        let file = place.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut state = LayerState::InForce;
        match read_file(&place.path) {
            Ok(Some(text)) => {
                found.texts.push(LayerText { layer: place.layer, file, text });
            }
            Ok(None) => state = LayerState::Absent,
            Err(why) => {
                state = LayerState::Invalid;
                found.problems.push(PolicyProblem {
                    layer: place.layer.word().to_owned(),
                    file: place.path.display().to_string(),
                    message: format!("cannot be read: {why}"),
                    ..PolicyProblem::default()
                });
            }
        }
        // Projects around a project seldom have one.
        let of_project = matches!(place.layer, Layer::Project | Layer::ProjectAgent);
        let last = places.iter().rfind(|other| other.layer == place.layer) == Some(place);
        if state != LayerState::Absent || !of_project || last {
            let (layer, path) = (place.layer.word().to_owned(), place.path.display().to_string());
            found.views.push(LayerView { layer, file: Some(path), state });
        }
    }
    found
}

/// The text of a policy file; none when there is none. Never waits.
pub fn read_file(path: &Path) -> Result<Option<String>, String> {
    let mut options = std::fs::OpenOptions::new();
    let open = options.read(true).custom_flags(nix::libc::O_NONBLOCK).open(path);
    let file = match open {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| e.to_string())?,
    };
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return Err("it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > MOST {
        return Err("it is larger than 1 MiB".to_owned());
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_from_the_widest_to_the_narrowest() {
        let home = tempfile::tempdir().unwrap();
        let root = Path::new("/home/ada/shop/api");
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(home.path().join(FILE), "domains: [a.ex.com]");
        write(home.path().join("egress.claude.yaml"), "domains: [b.ex.com]");
        write(project_dir(home.path(), root).join(FILE), "domains: [d.ex.com]");
        write(project_dir(home.path(), root.parent().unwrap()).join(FILE), "domains: [c.ex.com]");
        let places = places(home.path(), Some(root), &[Agent::Claude]);
        let found = read(&places);
        let texts: Vec<&str> = found.texts.iter().map(|t| &t.text[10..11]).collect();
        assert_eq!(texts, ["a", "b", "c", "d"]);
        assert!(found.problems.is_empty());
        let absent = found.views.iter().filter(|v| v.state == LayerState::Absent).count();
        assert_eq!(absent, 1, "the project's file for the agent: {:?}", found.views);
    }

    #[test]
    fn what_is_no_file_is_a_mistake_and_never_waited_for() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(FILE)).unwrap();
        let found = read(&places(home.path(), None, &[]));
        assert_eq!(found.problems.len(), 1);
        assert_eq!(found.views[0].state, LayerState::Invalid);
        let pipe = home.path().join("egress.codex.yaml");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_file(&pipe).is_err());
        let large = home.path().join("large");
        std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(read_file(&large).unwrap_err().contains("1 MiB"));
    }
}
