//! The box image: made once per content, named by it.
//!
//! The tag is a hash of the Dockerfile, `agentbox-ctl` and the certificates, so two installed
//! versions never build over each other and “is it there?” is one question to the engine.

use crate::certificates::{self, Certificate};
use crate::engine::{QUICK, limited};
use crate::progress::{Step, Watcher};
use crate::project::hex;
use crate::{Boxes, Engine, Error, labels};
use bollard::models::{BuildInfo, CreateImageInfo, ImageConfig};
use bollard::query_parameters::{BuildImageOptionsBuilder, CreateImageOptionsBuilder};
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncRead;

/// The built-in Dockerfile.
pub const DOCKERFILE: &str = include_str!("../../../Dockerfile.box");

/// Small files it copies: path in the context, mode, content.
const FILES: [(&str, u32, &[u8]); 9] = [
    ("box/chromium", 0o755, include_bytes!("../../../box/chromium")),
    ("box/claude-settings.json", 0o644, include_bytes!("../../../box/claude-settings.json")),
    ("box/claude.json", 0o600, include_bytes!("../../../box/claude.json")),
    ("box/codex-hooks.json", 0o644, include_bytes!("../../../box/codex-hooks.json")),
    ("box/codex.toml", 0o600, include_bytes!("../../../box/codex.toml")),
    ("box/opencode-state.js", 0o644, include_bytes!("../../../box/opencode-state.js")),
    ("box/profile.sh", 0o644, include_bytes!("../../../box/profile.sh")),
    ("box/sshd_config", 0o600, include_bytes!("../../../box/sshd_config")),
    ("box/tmux.conf", 0o644, include_bytes!("../../../box/tmux.conf")),
];

/// The name all box images have.
pub(crate) const REPOSITORY: &str = "agentbox/box";

/// How long a build or a pull may be silent.
const SILENCE: Duration = Duration::from_secs(600);
/// How many lines of a failed build are kept.
const TAIL: usize = 40;

/// How much is in an image. Each has what the one before it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A shell and git.
    Core,
    /// And a screen in the browser.
    Desktop,
    /// And the agents, an ssh server, a container engine.
    #[default]
    Full,
}

impl Stage {
    pub const ALL: [Stage; 3] = [Stage::Core, Stage::Desktop, Stage::Full];

    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Core => "core",
            Stage::Desktop => "desktop",
            Stage::Full => "full",
        }
    }

    /// By an image's labels, which its checkpoints keep; none for a stranger's image.
    pub(crate) fn of_image(labels: &HashMap<String, String>) -> Option<Self> {
        let name = labels.get(labels::STAGE)?;
        Self::ALL.into_iter().find(|stage| stage.as_str() == name)
    }
}

/// What the image is made of.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    pub stage: Stage,
    pub dockerfile: String,
    /// The static `agentbox-ctl` for the engine's architecture.
    pub ctl: PathBuf,
    pub certificates: Vec<Certificate>,
}

impl ImageSpec {
    pub fn new(stage: Stage, ctl: impl Into<PathBuf>, certificates: Vec<Certificate>) -> Self {
        Self { stage, dockerfile: DOCKERFILE.to_owned(), ctl: ctl.into(), certificates }
    }

    /// `agentbox/box:<stage>-<16 hex digits>`.
    pub fn tag(&self) -> Result<String, Error> {
        let ctl = read(&self.ctl)?;
        let mut digest = Sha256::new();
        let trusted = certificates::hash(&self.certificates);
        let parts = [self.dockerfile.as_bytes(), &ctl, trusted.as_bytes()];
        for part in parts.into_iter().chain(FILES.map(|(_, _, content)| content)) {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let stage = self.stage.as_str();
        Ok(format!("{REPOSITORY}:{stage}-{}", &hex(&digest.finalize())[..16]))
    }

    /// The build context, a few megabytes.
    fn context(&self) -> Result<Vec<u8>, Error> {
        let ctl = read(&self.ctl)?;
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |name: &str, mode: u32, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(mode);
            header.set_size(bytes.len() as u64);
            if name.ends_with('/') {
                header.set_entry_type(tar::EntryType::Directory);
            }
            tar.append_data(&mut header, name, bytes)
        };
        let mut write = || {
            add("Dockerfile", 0o644, self.dockerfile.as_bytes())?;
            add("agentbox-ctl", 0o755, &ctl)?;
            add("box/", 0o755, b"")?;
            for (name, mode, content) in FILES {
                add(name, mode, content)?;
            }
            add("certificates/", 0o755, b"")?;
            for (name, pem) in &self.certificates {
                add(&format!("certificates/{name}"), 0o644, pem)?;
            }
            std::io::Result::Ok(())
        };
        write().map_err(|error| Error::io("pack", &self.ctl, error))?;
        tar.into_inner().map_err(|error| Error::io("pack", &self.ctl, error))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::io("read", path, error))
}

impl Boxes {
    /// Makes sure the image is there and returns its tag.
    pub async fn ensure_image(&self, spec: &ImageSpec, watcher: Watcher) -> Result<String, Error> {
        let tag = spec.tag()?;
        if self.engine.image_labels_of(&tag).await?.is_some() {
            return Ok(tag);
        }
        // Held over the whole build on purpose: whoever comes second finds the image made.
        let _turn = self.building.lock().await;
        if self.engine.image_labels_of(&tag).await?.is_none() {
            self.engine.ensure_base(&spec.dockerfile, &watcher).await?;
            self.build(spec, &tag, false, &watcher).await?;
        }
        Ok(tag)
    }

    /// Makes the image from nothing, with what there is of everything today, and returns its tag.
    /// The one before it stays for the boxes made from it.
    pub async fn rebuild_image(&self, spec: &ImageSpec, watcher: Watcher) -> Result<String, Error> {
        let tag = spec.tag()?;
        let _turn = self.building.lock().await;
        self.engine.ensure_base(&spec.dockerfile, &watcher).await?;
        self.build(spec, &tag, true, &watcher).await?;
        Ok(tag)
    }

    async fn build(
        &self,
        spec: &ImageSpec,
        tag: &str,
        anew: bool,
        watcher: &Watcher,
    ) -> Result<(), Error> {
        let step = Step::start(watcher, "Build the box image");
        let options = BuildImageOptionsBuilder::default()
            .dockerfile("Dockerfile")
            .t(tag)
            .target(spec.stage.as_str())
            .nocache(anew)
            .rm(true)
            .forcerm(true)
            .labels(&self.image_labels(spec.stage, &certificates::hash(&spec.certificates)))
            .build();
        let docker = self.engine.patient(SILENCE);
        let context = bollard::body_full(spec.context()?.into());
        follow_build(docker.build_image(options, None, Some(context)), &step).await?;
        step.done();
        Ok(())
    }
}

impl Engine {
    pub async fn has_image(&self, tag: &str) -> Result<bool, Error> {
        Ok(self.image_labels_of(tag).await?.is_some())
    }

    /// An image's labels; none when there is no such image.
    pub(crate) async fn image_labels_of(
        &self,
        tag: &str,
    ) -> Result<Option<HashMap<String, String>>, Error> {
        let image = self.image_config_of(tag).await?;
        Ok(image.map(|config| config.labels.unwrap_or_default()))
    }

    /// What an image says of itself; none when there is no such image.
    pub(crate) async fn image_config_of(&self, tag: &str) -> Result<Option<ImageConfig>, Error> {
        let what = "inspect an image";
        match self.ask(what, QUICK, self.docker().inspect_image(tag)).await {
            Ok(image) => Ok(Some(image.config.unwrap_or_default())),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Pulls the Dockerfile's base image unless it is there.
    async fn ensure_base(&self, dockerfile: &str, watcher: &Watcher) -> Result<(), Error> {
        let base = base_image(dockerfile);
        if self.image_labels_of(&base).await?.is_some() {
            return Ok(());
        }
        let step = Step::start(watcher, "Get the base image");
        let (repository, tag) = split_tag(&base);
        let options = CreateImageOptionsBuilder::default().from_image(repository).tag(tag).build();
        let pull = self.patient(SILENCE);
        let pulled = follow_pull(pull.create_image(Some(options), None, None), &step).await;
        pulled.map_err(|error| match error.to_string() {
            why if crate::room::is_full(&why) => error,
            why => Error::NoBaseImage { image: base, why },
        })?;
        step.done();
        Ok(())
    }

    /// Imports a root file system (a tar stream) as the built-in Dockerfile's base image, for
    /// machines without a registry. Answers its name.
    pub async fn import_base(&self, tar: impl AsyncRead + Send + 'static) -> Result<String, Error> {
        let base = base_image(DOCKERFILE);
        self.import_image(&base, tar).await?;
        Ok(base)
    }

    /// Imports a root file system under any name.
    pub async fn import_image(
        &self,
        image: &str,
        tar: impl AsyncRead + Send + 'static,
    ) -> Result<(), Error> {
        let what = "import an image";
        let (repository, tag) = split_tag(image);
        let options =
            CreateImageOptionsBuilder::default().from_src("-").repo(repository).tag(tag).build();
        let tar = tokio_util::io::ReaderStream::with_capacity(tar, 64 * 1024);
        let docker = self.patient(SILENCE);
        let mut answers =
            docker.create_image(Some(options), Some(bollard::body_try_stream(tar)), None);
        while let Some(answer) = limited(what, SILENCE, answers.next()).await? {
            answer.map_err(|error| Error::engine(what, error))?;
        }
        Ok(())
    }
}

/// The image a Dockerfile starts from.
pub fn base_image(dockerfile: &str) -> String {
    let from = dockerfile.lines().find_map(|line| line.strip_prefix("FROM "));
    from.and_then(|rest| rest.split_whitespace().next()).unwrap_or("scratch").to_owned()
}

fn split_tag(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (image, "latest"),
    }
}

async fn follow_build(
    mut answers: impl Stream<Item = Result<BuildInfo, bollard::errors::Error>> + Unpin,
    step: &Step,
) -> Result<(), Error> {
    let what = "build the box image";
    let mut log = BuildLog::default();
    while let Some(answer) = limited(what, SILENCE, answers.next()).await? {
        match answer {
            Ok(info) => {
                for line in info.stream.as_deref().unwrap_or_default().lines() {
                    if let Some(fraction) = log.line(line) {
                        step.detail(log.step.clone(), Some(fraction));
                    }
                }
            }
            Err(error) => {
                let why = match Error::engine(what, error) {
                    Error::Engine { why, .. } => why,
                    other => return Err(other),
                };
                return Err(Error::Build { step: log.step, why, output: log.tail.join("\n") });
            }
        }
    }
    Ok(())
}

/// What a build has said so far: the step it is at and the last lines of that step.
#[derive(Default)]
struct BuildLog {
    step: String,
    tail: Vec<String>,
}

impl BuildLog {
    /// Takes a line; answers how far the build is when a new step starts.
    fn line(&mut self, line: &str) -> Option<f32> {
        if line.trim().is_empty() {
            return None;
        }
        if let Some((at, of, command)) = parse_step(line) {
            self.step = format!("Step {at}/{of}: {command}");
            self.tail.clear();
            return Some(f32::from(at - 1) / f32::from(of));
        }
        if self.tail.len() == TAIL {
            self.tail.remove(0);
        }
        self.tail.push(line.to_owned());
        None
    }
}

/// `Step 4/9 : RUN …` of Docker, `STEP 4/9: RUN …` of Podman.
fn parse_step(line: &str) -> Option<(u16, u16, &str)> {
    let rest = line.strip_prefix("Step ").or_else(|| line.strip_prefix("STEP "))?;
    let (numbers, command) = rest.split_once(':')?;
    let (at, of) = numbers.trim().split_once('/')?;
    let (at, of) = (at.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&at).then_some((at, of, command.trim()))
}

async fn follow_pull(
    mut answers: impl Stream<Item = Result<CreateImageInfo, bollard::errors::Error>> + Unpin,
    step: &Step,
) -> Result<(), Error> {
    let what = "pull the base image";
    let mut layers: HashMap<String, (i64, i64)> = HashMap::new();
    while let Some(answer) = limited(what, SILENCE, answers.next()).await? {
        let info = answer.map_err(|error| Error::engine(what, error))?;
        let (Some(id), Some(status)) = (info.id, info.status) else { continue };
        if let Some(detail) = info.progress_detail.filter(|_| status == "Downloading")
            && let (Some(current), Some(total)) = (detail.current, detail.total)
        {
            layers.insert(id, (current, total));
            step.detail(status, fraction(layers.values()));
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // a share for a progress bar
fn fraction<'a>(layers: impl Iterator<Item = &'a (i64, i64)>) -> Option<f32> {
    let (current, total) = layers.fold((0, 0), |sum, layer| (sum.0 + layer.0, sum.1 + layer.1));
    (total > 0).then(|| (current as f32 / total as f32).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_follows_every_part() {
        let temp = tempfile::tempdir().unwrap();
        let ctl = temp.path().join("ctl");
        std::fs::write(&ctl, "one").unwrap();
        let mut spec = ImageSpec::new(Stage::Core, &ctl, vec![]);
        let first = spec.tag().unwrap();
        assert!(first.starts_with("agentbox/box:core-") && first.len() == 18 + 16, "{first}");
        assert_eq!(spec.tag().unwrap(), first);
        spec.certificates.push(("a.crt".to_owned(), b"x".to_vec()));
        let second = spec.tag().unwrap();
        std::fs::write(&ctl, "two").unwrap();
        let third = spec.tag().unwrap();
        spec.dockerfile.push('#');
        let all = [first, second, third, spec.tag().unwrap()];
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }

    #[test]
    fn the_base_image_is_read_from_the_dockerfile() {
        assert_eq!(base_image(DOCKERFILE), "debian:bookworm-slim");
        assert_eq!(split_tag("debian:bookworm-slim"), ("debian", "bookworm-slim"));
        assert_eq!(split_tag("host:5000/debian"), ("host:5000/debian", "latest"));
    }

    #[test]
    fn build_lines_become_progress_and_a_tail() {
        let mut log = BuildLog::default();
        assert_eq!(log.line("Step 3/6 : RUN apt-get update"), Some(2.0 / 6.0));
        assert_eq!(log.step, "Step 3/6: RUN apt-get update");
        for n in 0..100 {
            assert_eq!(log.line(&format!("line {n}")), None);
        }
        assert_eq!(log.tail.len(), TAIL);
        assert_eq!(log.tail[TAIL - 1], "line 99");
        assert_eq!(log.line("STEP 4/6: COPY a b"), Some(0.5));
        assert!(log.tail.is_empty());
        assert_eq!(parse_step("Step 0/0 : X"), None);
        assert_eq!(parse_step("Step one : X"), None);
    }

    #[test]
    fn the_context_holds_an_executable_and_the_certificates() {
        let temp = tempfile::tempdir().unwrap();
        let ctl = temp.path().join("ctl");
        std::fs::write(&ctl, "binary").unwrap();
        let spec = ImageSpec::new(Stage::Full, &ctl, vec![("a.crt".to_owned(), b"x".to_vec())]);
        let bytes = spec.context().unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap())
        });
        let expected = [
            ("Dockerfile", 0o644),
            ("agentbox-ctl", 0o755),
            ("box/", 0o755),
            ("box/chromium", 0o755),
            ("box/claude-settings.json", 0o644),
            ("box/claude.json", 0o600),
            ("box/codex-hooks.json", 0o644),
            ("box/codex.toml", 0o600),
            ("box/opencode-state.js", 0o644),
            ("box/profile.sh", 0o644),
            ("box/sshd_config", 0o600),
            ("box/tmux.conf", 0o644),
            ("certificates/", 0o755),
            ("certificates/a.crt", 0o644),
        ];
        assert_eq!(
            entries.collect::<Vec<_>>(),
            expected.map(|(name, mode)| (name.to_owned(), mode))
        );
    }
}
