//! `agentbox-ctl egress trust` (root, and part of every start): makes a box without a network believe the
//! host's own authority, and takes that back from a box that has a network again.
//!
//! Done at every start, before anything of the box's own runs, and done twice it changes nothing. A box
//! made from a checkpoint may bring along what another host left there: whatever is ours and not wanted
//! goes. Each place is one function; one that fails is told about and the others are done, because a box
//! that trusts too little reaches less, never more.
//!
//! The surprising thing: the system's own program for this is not used. It takes a second, and what it
//! would do is one file and a link. But its folder has our certificate, so that it does not undo it.

mod p12;
mod pem;

use crate::error::{Doing, Result};
use crate::passwd::Account;
use crate::{go, input};
use pem::Certificate;
use protocol::ctl::{BOX_USER, Egress, paths, ports};
use protocol::egress_env::variables;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files with everything a system trusts: Debian's and its relatives', and the Red Hat family's.
const BUNDLES: [&str; 2] =
    [paths::SYSTEM_TRUST, "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"];
/// Where a system's own program finds certificates to add.
const SOURCES: [&str; 2] = ["/usr/local/share/ca-certificates", "/etc/pki/ca-trust/source/anchors"];
/// OpenSSL looks here for a file named after what it looks for.
const HASHED: &str = "/etc/ssl/certs";
const NAME: &str = "agentbox-egress-";

const APT: &str = "/etc/apt/apt.conf.d/99agentbox";
const SUDO: &str = "/etc/sudoers.d/agentbox-egress";
const GIT: &str = "/etc/gitconfig";
const GIT_OURS: &str = "/etc/agentbox/gitconfig";
const FIREFOX: &str = "/etc/firefox/policies/policies.json";
const HOSTS: &str = "/etc/hosts";
/// What the browsers' database was last given.
const NSS_MARK: &str = "/etc/agentbox/egress-nss";
const CERTUTIL: &str = "/usr/bin/certutil";
const OPENSSL: &str = "/usr/bin/openssl";
/// The nickname of ours in a database, before its mark.
const NICKNAME: &str = "AgentBox Egress CA";

/// What an agent should know about this box.
const TEXT: &str = include_str!("../../../../../box/egress.md");
const README: &str = "/etc/agentbox/egress.md";
/// Where agents look for such things, from the root or from the box user's home.
const CLAUDE: &str = "/etc/claude-code/CLAUDE.md";

/// `agentbox-ctl egress trust`: for an authority that changes while the box runs.
pub fn run() -> Result<i32> {
    let egress: Egress = input::json_line(&mut io::stdin().lock())?;
    apply(Some(&egress));
    Ok(protocol::exit::OK)
}

/// Everything as it should be now; none is for a box with a network.
pub fn apply(egress: Option<&Egress>) {
    let system = System { root: PathBuf::from("/"), programs: true };
    match egress {
        Some(egress) => system.trust(egress),
        None if system.was_trusted() => system.forget(),
        None => {}
    }
}

/// Where all of it is; tests have one of their own, without programs.
struct System {
    root: PathBuf,
    programs: bool,
}

impl System {
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn was_trusted(&self) -> bool {
        [paths::EGRESS_CA, README, APT].iter().any(|path| self.at(path).exists())
    }

    fn trust(&self, egress: &Egress) {
        let wanted: Vec<Certificate> =
            egress.certificates.iter().flat_map(|text| pem::all(text)).collect();
        let own: String = wanted.iter().map(Certificate::pem).collect();
        told("its own file of certificates", self.write(paths::EGRESS_CA, &own, 0o644));
        told("what the system trusts", self.bundles(&wanted));
        told("the system's certificates", self.sources(&wanted));
        told("OpenSSL's certificates", self.hashed(&wanted));
        told("what Java trusts", self.java());
        told("what browsers trust", self.browsers(&wanted));
        told("what Firefox trusts", self.firefox(true));
        told("apt's proxy", self.apt());
        told("sudo's variables", self.sudo());
        told("git's addresses", self.git());
        told("git's questions", self.askpass());
        told("the box's own name", self.own_name());
        told("what agents should know", self.tell_agents());
    }

    /// Takes everything back.
    fn forget(&self) {
        told("what the system trusts", self.bundles(&[]));
        told("the system's certificates", self.sources(&[]));
        told("OpenSSL's certificates", self.hashed(&[]));
        told("what browsers trust", self.browsers(&[]));
        told("what Firefox trusts", self.firefox(false));
        told("git's addresses", self.git_forgets());
        told("what agents should know", self.agents_forget());
        for path in [APT, SUDO, GIT_OURS, paths::JAVA_TRUST, README, NSS_MARK, paths::EGRESS_CA] {
            told(path, self.remove(path));
        }
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        replace(&self.at(path), text.as_ref(), mode)
    }

    fn remove(&self, path: &str) -> Result<()> {
        match fs::remove_file(self.at(path)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done.doing(|| format!("remove {path}")),
        }
    }

    /// Debian's is made where there is none: programs are told of it by name.
    fn bundles(&self, wanted: &[Certificate]) -> Result<()> {
        for path in BUNDLES {
            let file = self.at(path);
            if !file.exists() && (path != paths::SYSTEM_TRUST || wanted.is_empty()) {
                continue;
            }
            let file = fs::canonicalize(&file).unwrap_or(file);
            let text = fs::read(&file).unwrap_or_default();
            if let Some(text) = pem::with(&String::from_utf8_lossy(&text), wanted) {
                replace(&file, text.as_bytes(), 0o644)?;
            }
        }
        Ok(())
    }

    fn sources(&self, wanted: &[Certificate]) -> Result<()> {
        for folder in SOURCES.map(|folder| self.at(folder)).into_iter().filter(|f| f.is_dir()) {
            let name = |one: &Certificate| format!("{NAME}{}.crt", one.mark());
            let names: Vec<String> = wanted.iter().map(name).collect();
            for old in ours_in(&folder).into_iter().filter(|old| !names.contains(old)) {
                let path = folder.join(old);
                fs::remove_file(&path).doing(|| format!("remove {}", path.display()))?;
            }
            for (name, one) in names.iter().zip(wanted) {
                replace(&folder.join(name), one.pem().as_bytes(), 0o644)?;
            }
        }
        Ok(())
    }

    /// A link by each certificate's name, and one to that by the hash of its subject.
    fn hashed(&self, wanted: &[Certificate]) -> Result<()> {
        let folder = self.at(HASHED);
        let doing = || format!("change {}", folder.display());
        let Ok(entries) = fs::read_dir(&folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let leads = fs::read_link(entry.path()).unwrap_or_default();
            let name = leads.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(NAME) {
                fs::remove_file(entry.path()).doing(doing)?;
            }
        }
        for one in wanted {
            let source = self.at(SOURCES[0]).join(format!("{NAME}{}.crt", one.mark()));
            let name = format!("{NAME}{}.pem", one.mark());
            if !source.exists() {
                continue;
            }
            symlink(&source, folder.join(&name)).doing(doing)?;
            let Some(hash) = self.subject_hash(&source) else { continue };
            let free = (0..10).map(|n| folder.join(format!("{hash}.{n}")));
            if let Some(free) = free.into_iter().find(|path| !path.is_symlink() && !path.exists()) {
                symlink(&name, free).doing(doing)?;
            }
        }
        Ok(())
    }

    fn subject_hash(&self, file: &Path) -> Option<String> {
        if !self.programs || !Path::new(OPENSSL).exists() {
            return None;
        }
        let mut command = Command::new(OPENSSL);
        command.args(["x509", "-noout", "-hash", "-in"]).arg(file);
        let output = command.env_clear().stdin(Stdio::null()).output().ok()?;
        let hash = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(hash)
    }

    fn java(&self) -> Result<()> {
        let text = fs::read(self.at(paths::SYSTEM_TRUST)).unwrap_or_default();
        let all = pem::all(&String::from_utf8_lossy(&text));
        self.write(paths::JAVA_TRUST, p12::store(all.iter().map(|one| one.der.as_slice())), 0o644)
    }

    /// The database of Chromium and its relatives, as the box user, whose it is.
    fn browsers(&self, wanted: &[Certificate]) -> Result<()> {
        if !self.programs || !Path::new(CERTUTIL).exists() {
            return Ok(());
        }
        let user = Account::of_system(BOX_USER)?;
        let folder = Path::new(&user.home).join(".pki/nssdb");
        let has = folder.join("cert9.db").exists();
        let marks: Vec<String> = wanted.iter().map(Certificate::mark).collect();
        let before = fs::read_to_string(self.at(NSS_MARK)).unwrap_or_default();
        if before == marks.join(" ") && (has || wanted.is_empty()) {
            return Ok(());
        }
        let database = Database { folder, user };
        if !has {
            database.make()?;
        }
        for mark in before.split_whitespace().filter(|mark| !marks.iter().any(|m| m == mark)) {
            database.drop(mark)?;
        }
        for (one, mark) in wanted.iter().zip(&marks) {
            database.drop(mark)?;
            database.add(one, mark)?;
        }
        self.write(NSS_MARK, marks.join(" "), 0o644)
    }

    /// Firefox has a database for each profile, and a file that counts for all of them.
    fn firefox(&self, trusted: bool) -> Result<()> {
        let file = self.at(FIREFOX);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut all: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({}));
        if !all.is_object() || (text.is_empty() && !trusted) {
            return Ok(());
        }
        let list = &mut all["policies"]["Certificates"]["Install"];
        let mut names: Vec<Value> = list.as_array().cloned().unwrap_or_default();
        let before = names.clone();
        names.retain(|name| name != paths::EGRESS_CA);
        if trusted {
            names.push(paths::EGRESS_CA.into());
        }
        if names == before {
            return Ok(());
        }
        *list = names.into();
        if all == json!({ "policies": { "Certificates": { "Install": [] } } }) {
            return self.remove(FIREFOX);
        }
        self.write(FIREFOX, format!("{all:#}\n"), 0o644)
    }

    /// sudo takes the variables away from it.
    fn apt(&self) -> Result<()> {
        if !self.at(APT).parent().is_some_and(Path::is_dir) {
            return Ok(());
        }
        let proxy = format!("http://127.0.0.1:{}/", ports::PROXY);
        let line = |scheme: &str| format!("Acquire::{scheme}::Proxy \"{proxy}\";\n");
        self.write(APT, line("http") + &line("https"), 0o644)
    }

    /// `sudo npm install` must find the proxy, too.
    fn sudo(&self) -> Result<()> {
        if !self.at(SUDO).parent().is_some_and(Path::is_dir) {
            return Ok(());
        }
        let names: Vec<&str> = variables(false).iter().map(|variable| variable.name).collect();
        self.write(SUDO, format!("Defaults env_keep += \"{}\"\n", names.join(" ")), 0o440)
    }

    /// Addresses for ssh, which goes nowhere here, become ones for the proxy.
    fn git(&self) -> Result<()> {
        let text = "[url \"https://github.com/\"]\n\tinsteadOf = git@github.com:\n\
            \tinsteadOf = ssh://git@github.com/\n";
        self.write(GIT_OURS, text, 0o644)?;
        let system = fs::read_to_string(self.at(GIT)).unwrap_or_default();
        if system.contains(&included()) {
            return Ok(());
        }
        let end = if system.is_empty() || system.ends_with('\n') { "" } else { "\n" };
        self.write(GIT, format!("{system}{end}{}", included()), 0o644)
    }

    fn git_forgets(&self) -> Result<()> {
        let system = fs::read_to_string(self.at(GIT)).unwrap_or_default();
        if !system.contains(&included()) {
            return Ok(());
        }
        self.write(GIT, system.replace(&included(), ""), 0o644)
    }

    /// The link an image from before there was a choice lacks.
    fn askpass(&self) -> Result<()> {
        let link = self.at(paths::ASKPASS);
        if link.is_symlink() || link.exists() {
            return Ok(());
        }
        symlink(paths::CTL, &link).doing(|| format!("make {}", link.display()))
    }

    /// Without a network, engines do not write down which name is the box's own; sudo looks for it.
    fn own_name(&self) -> Result<()> {
        let Ok(name) = fs::read_to_string(self.at("/etc/hostname")) else { return Ok(()) };
        let (name, hosts) = (name.trim(), self.at(HOSTS));
        let text = fs::read_to_string(&hosts).unwrap_or_default();
        let known = text.lines().any(|line| line.split_whitespace().skip(1).any(|n| n == name));
        if known || name.is_empty() {
            return Ok(());
        }
        // It is a mount of the engine's, which cannot be replaced.
        let line = format!("127.0.0.1\t{name}\n");
        let mut options = fs::OpenOptions::new();
        let file = options.append(true).open(&hosts);
        let written = file.and_then(|mut file| io::Write::write_all(&mut file, line.as_bytes()));
        written.doing(|| format!("write {}", hosts.display()))
    }

    fn tell_agents(&self) -> Result<()> {
        self.write(README, TEXT, 0o644)?;
        let claude = self.at(CLAUDE);
        if claude.is_symlink() || claude.exists() || !claude.parent().is_some_and(Path::is_dir) {
            return Ok(());
        }
        symlink(README, &claude).doing(|| format!("make {}", claude.display()))
    }

    fn agents_forget(&self) -> Result<()> {
        let ours = fs::read_link(self.at(CLAUDE)).is_ok_and(|leads| leads == Path::new(README));
        if ours { self.remove(CLAUDE) } else { Ok(()) }
    }
}

/// How the system's configuration of git takes in ours. A file that is not there is none.
fn included() -> String {
    format!("[include]\n\tpath = {GIT_OURS}\n")
}

fn told(what: &str, done: Result<()>) {
    if let Err(e) = done {
        go::note(&format!("{what} may not be as it should be for a box of its kind: {e}"));
    }
}

/// Names of our files in a folder.
fn ours_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(NAME)).collect()
}

/// Whole or not at all, and not touched when it is so already.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let doing = || format!("write {}", path.display());
    if fs::read(path).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).doing(doing)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".agentbox-new");
    let fresh = path.with_file_name(name);
    let _ = fs::remove_file(&fresh);
    fs::write(&fresh, bytes).doing(doing)?;
    fs::set_permissions(&fresh, Permissions::from_mode(mode)).doing(doing)?;
    fs::rename(&fresh, path).doing(doing)
}

/// A database of certificates that browsers share.
struct Database {
    folder: PathBuf,
    user: Account,
}

impl Database {
    fn make(&self) -> Result<()> {
        let doing = || format!("make {}", self.folder.display());
        let above = self.folder.parent().unwrap_or(Path::new("/"));
        for folder in [above, &self.folder] {
            match fs::create_dir(folder) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.doing(doing)?,
            }
            fs::set_permissions(folder, Permissions::from_mode(0o700)).doing(doing)?;
            chown(folder, Some(self.user.uid), Some(self.user.gid)).doing(doing)?;
        }
        self.run(&["-N", "--empty-password"], None).map(drop)
    }

    fn add(&self, one: &Certificate, mark: &str) -> Result<()> {
        let nickname = format!("{NICKNAME} {mark}");
        let words = ["-A", "-n", &nickname, "-t", "C,,", "-a"];
        if self.run(&words, Some(one.pem()))? {
            return Ok(());
        }
        Err(crate::error::Error::Failed(format!("{CERTUTIL} did not take {nickname}")))
    }

    /// One that is not there is as wanted.
    fn drop(&self, mark: &str) -> Result<()> {
        self.run(&["-D", "-n", &format!("{NICKNAME} {mark}")], None).map(drop)
    }

    fn run(&self, words: &[&str], input: Option<String>) -> Result<bool> {
        let doing = || format!("run {CERTUTIL}");
        let mut command = Command::new(CERTUTIL);
        command.arg("-d").arg(format!("sql:{}", self.folder.display())).args(words);
        command.env_clear().env("HOME", &self.user.home).uid(self.user.uid).gid(self.user.gid);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().doing(doing)?;
        if let (Some(mut to), Some(text)) = (child.stdin.take(), input) {
            let _ = io::Write::write_all(&mut to, text.as_bytes());
        }
        Ok(child.wait().doing(doing)?.success())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(number: u8) -> Certificate {
        let der = format!("30 AgentBox Egress CA 0000000{number} {}", "x".repeat(100));
        Certificate { der: der.into_bytes() }
    }

    fn egress(certificates: &[Certificate]) -> Egress {
        Egress { certificates: certificates.iter().map(Certificate::pem).collect() }
    }

    /// A Debian without programs, and everything in it by path.
    struct Debian {
        dir: tempfile::TempDir,
        system: System,
    }

    type Files = std::collections::BTreeMap<String, String>;

    impl Debian {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let system = System { root: dir.path().to_owned(), programs: false };
            for folder in [
                "etc/ssl/certs",
                "usr/local/share/ca-certificates",
                "etc/apt/apt.conf.d",
                "etc/agentbox",
            ] {
                fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            for folder in ["etc/sudoers.d", "etc/claude-code", "usr/local/bin"] {
                fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            let put = |path: &str, text: &str| fs::write(dir.path().join(path), text).unwrap();
            let other = Certificate { der: b"somebody else".to_vec() };
            put("etc/ssl/certs/ca-certificates.crt", &other.pem());
            put("etc/gitconfig", "[safe]\n\tdirectory = *");
            put("etc/hostname", "fix\n");
            put("etc/hosts", "127.0.0.1\tlocalhost\n");
            Self { dir, system }
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.system.at(path)).unwrap_or_default()
        }

        fn files(&self) -> Files {
            let mut found = Files::new();
            let mut folders = vec![self.dir.path().to_owned()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap().flatten() {
                    let path = entry.path();
                    let name = path.strip_prefix(self.dir.path()).unwrap().display().to_string();
                    if path.is_symlink() {
                        found.insert(name, fs::read_link(&path).unwrap().display().to_string());
                    } else if path.is_dir() {
                        folders.push(path);
                    } else {
                        let bytes = fs::read(&path).unwrap();
                        found.insert(name, String::from_utf8_lossy(&bytes).into_owned());
                    }
                }
            }
            found
        }
    }

    #[test]
    fn everything_is_told_once_and_told_again_nothing_changes() {
        let at = Debian::new();
        at.system.trust(&egress(&[ours(1)]));
        let once = at.files();
        at.system.trust(&egress(&[ours(1)]));
        assert_eq!(at.files(), once);
        assert_eq!(pem::all(&at.read(paths::EGRESS_CA)), [ours(1)]);
        assert!(pem::all(&at.read(paths::SYSTEM_TRUST)).contains(&ours(1)));
        assert!(at.read(APT).contains("Acquire::https::Proxy \"http://127.0.0.1:3128/\";"));
        assert!(
            at.read(GIT).contains("directory = *\n[include]\n\tpath = /etc/agentbox/gitconfig")
        );
        assert!(at.read(SUDO).contains("https_proxy"));
        assert!(at.read(FIREFOX).contains(paths::EGRESS_CA));
        assert!(at.read(HOSTS).ends_with("127.0.0.1\tfix\n"));
        assert!(at.read(README).contains("X-AgentBox-Reason"));
        let mode = fs::metadata(at.system.at(SUDO)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o440);
        assert!(fs::read(at.system.at(paths::JAVA_TRUST)).unwrap().len() > 200);
    }

    #[test]
    fn what_a_checkpoint_brings_along_of_another_authority_goes() {
        let at = Debian::new();
        at.system.trust(&egress(&[ours(1)]));
        at.system.trust(&egress(&[ours(2)]));
        for (path, text) in at.files() {
            let der = ours(1).der;
            assert!(!text.contains(&ours(1).pem()), "{path}");
            assert!(!text.as_bytes().windows(der.len()).any(|part| part == der), "{path}");
            assert!(!path.contains(&ours(1).mark()), "{path}");
        }
        assert_eq!(pem::all(&at.read(paths::EGRESS_CA)), [ours(2)]);
    }

    #[test]
    fn a_box_that_has_a_network_again_trusts_nothing_of_ours() {
        let at = Debian::new();
        let before = at.files();
        assert!(!at.system.was_trusted());
        at.system.trust(&egress(&[ours(1), ours(2)]));
        assert!(at.system.was_trusted());
        at.system.forget();
        assert!(!at.system.was_trusted());
        let mut after = at.files();
        // Its own name is no harm to know, and a link to a program of the image is none either.
        assert_eq!(after.remove("etc/hosts").unwrap(), "127.0.0.1\tlocalhost\n127.0.0.1\tfix\n");
        after.remove("usr/local/bin/agentbox-askpass");
        after.insert("etc/hosts".into(), before["etc/hosts"].clone());
        after.insert("etc/gitconfig".into(), before["etc/gitconfig"].clone());
        assert_eq!(at.read(GIT), format!("{}\n", before["etc/gitconfig"]));
        assert_eq!(after, before);
    }

    #[test]
    fn what_somebody_else_wrote_into_the_same_files_stays() {
        let at = Debian::new();
        let firefox = at.system.at(FIREFOX);
        fs::create_dir_all(firefox.parent().unwrap()).unwrap();
        let theirs =
            r#"{"policies":{"Certificates":{"Install":["/mine.pem"]},"DisableTelemetry":true}}"#;
        fs::write(&firefox, theirs).unwrap();
        fs::write(at.system.at(CLAUDE), "theirs").unwrap();
        at.system.trust(&egress(&[ours(1)]));
        assert!(at.read(FIREFOX).contains("/mine.pem") && at.read(FIREFOX).contains("ca.crt"));
        at.system.forget();
        let value: Value = serde_json::from_str(&at.read(FIREFOX)).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(theirs).unwrap());
        assert_eq!(at.read(CLAUDE), "theirs");
    }

    #[test]
    fn a_system_of_another_family_is_told_where_it_looks() {
        let at = Debian::new();
        let (bundle, anchors) = (at.system.at(BUNDLES[1]), at.system.at(SOURCES[1]));
        fs::create_dir_all(bundle.parent().unwrap()).unwrap();
        fs::create_dir_all(&anchors).unwrap();
        fs::write(&bundle, "").unwrap();
        at.system.trust(&egress(&[ours(1)]));
        assert_eq!(pem::all(&at.read(BUNDLES[1])), [ours(1)]);
        assert_eq!(ours_in(&anchors).len(), 1);
    }

    #[test]
    fn a_box_without_any_certificates_gets_a_bundle() {
        let at = Debian::new();
        fs::remove_file(at.system.at(paths::SYSTEM_TRUST)).unwrap();
        at.system.trust(&egress(&[ours(1)]));
        assert_eq!(pem::all(&at.read(paths::SYSTEM_TRUST)), [ours(1)]);
    }
}
