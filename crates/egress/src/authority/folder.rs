//! Authorities on disk: `<id>-<day it expires>.key` (0600) and `.crt`, in a folder only we can read.

use super::{AuthorityError, DAY};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Far above what a key or a certificate takes.
const MOST: u64 = 64 * 1024;

pub(super) struct Folder {
    path: PathBuf,
    dir: OwnedFd,
}

/// What tells one authority from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    /// 8 hex digits.
    pub id: String,
    /// The beginning of a day.
    pub expires: SystemTime,
}

impl Name {
    pub fn new(id: [u8; 4], expires: SystemTime) -> Self {
        let days = expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY.as_secs();
        let id = id.iter().map(|b| format!("{b:02x}")).collect();
        Self { id, expires: UNIX_EPOCH + DAY * u32::try_from(days).unwrap_or(u32::MAX) }
    }

    fn parse(stem: &str) -> Option<Self> {
        let (id, days) = stem.split_once('-')?;
        let hex = id.len() == 8 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let days: u32 = days.parse().ok()?;
        let name = Self { id: id.into(), expires: UNIX_EPOCH.checked_add(DAY.checked_mul(days)?)? };
        (hex && name.stem() == stem).then_some(name)
    }

    fn stem(&self) -> String {
        let since = self.expires.duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", self.id, since.as_secs() / DAY.as_secs())
    }

    fn key(&self) -> String {
        format!("{}.key", self.stem())
    }

    fn certificate(&self) -> String {
        format!("{}.crt", self.stem())
    }
}

impl Folder {
    pub fn open(path: &Path) -> Result<Self, AuthorityError> {
        let bad = |why: String| AuthorityError::Unusable { path: path.display().to_string(), why };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|e| bad(e.to_string()))?;
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let dir = open(path, flags, Mode::empty()).map_err(|e| match e {
            Errno::ELOOP | Errno::ENOTDIR => bad("it is not a folder, or a link to one".into()),
            e => bad(e.to_string()),
        })?;
        let stat = fstat(&dir).map_err(|e| bad(e.to_string()))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(bad("it belongs to somebody else".into()));
        }
        if stat.st_mode & 0o077 != 0 {
            return Err(bad("others can read or write it; chmod 700 puts that right".into()));
        }
        Ok(Self { path: path.to_owned(), dir })
    }

    pub fn certificate_file(&self, name: &Name) -> PathBuf {
        self.path.join(name.certificate())
    }

    /// Whole pairs only: what a crash left behind while writing has no certificate.
    pub fn names(&self) -> Result<Vec<Name>, AuthorityError> {
        let entries = std::fs::read_dir(&self.path).map_err(|e| self.bad("", e.to_string()))?;
        let files = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(files.filter_map(|file| Name::parse(file.strip_suffix(".crt")?)).collect())
    }

    /// The key and the certificate, as PEM.
    pub fn read(&self, name: &Name) -> Result<(Zeroizing<String>, String), AuthorityError> {
        let key = self.read_file(&name.key(), 0o077)?;
        Ok((key, self.read_file(&name.certificate(), 0o022)?.to_string()))
    }

    /// The certificate comes last: with it, there is an authority.
    pub fn write(&self, name: &Name, key: &str, pem: &str) -> Result<(), AuthorityError> {
        self.write_file(&name.key(), key, 0o600)?;
        self.write_file(&name.certificate(), pem, 0o644)?;
        let synced = self.dir.try_clone().and_then(|dir| File::from(dir).sync_all());
        synced.map_err(|e| self.bad("", e.to_string()))
    }

    pub fn remove(&self, name: &Name) -> Result<(), AuthorityError> {
        for file in [name.certificate(), name.key()] {
            match unlinkat(&self.dir, file.as_str(), UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(e) => return Err(self.bad(&file, e.to_string())),
            }
        }
        Ok(())
    }

    pub fn unusable(&self, name: &Name, why: String) -> AuthorityError {
        self.bad(&name.key(), why)
    }

    fn bad(&self, file: &str, why: String) -> AuthorityError {
        AuthorityError::Unusable { path: self.path.join(file).display().to_string(), why }
    }

    fn read_file(&self, file: &str, forbidden: u32) -> Result<Zeroizing<String>, AuthorityError> {
        let bad = |why: String| self.bad(file, why);
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let opened = openat(&self.dir, file, flags, Mode::empty());
        let opened = File::from(opened.map_err(|e| match e {
            Errno::ELOOP => bad("it is a symbolic link".into()),
            e => bad(e.to_string()),
        })?);
        check(&fstat(&opened).map_err(|e| bad(e.to_string()))?, forbidden).map_err(bad)?;
        let mut text = Zeroizing::new(String::new());
        opened.take(MOST).read_to_string(&mut text).map_err(|e| bad(e.to_string()))?;
        Ok(text)
    }

    fn write_file(&self, file: &str, text: &str, mode: u32) -> Result<(), AuthorityError> {
        let new = format!(".{file}.new");
        let written = || -> std::io::Result<()> {
            match unlinkat(&self.dir, new.as_str(), UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(e) => return Err(e.into()),
            }
            let flags = OFlag::O_WRONLY
                | OFlag::O_CREAT
                | OFlag::O_EXCL
                | OFlag::O_NOFOLLOW
                | OFlag::O_CLOEXEC;
            let made = openat(&self.dir, new.as_str(), flags, Mode::from_bits_truncate(mode))?;
            let mut made = File::from(made);
            made.write_all(text.as_bytes())?;
            made.sync_all()?;
            Ok(renameat(&self.dir, new.as_str(), &self.dir, file)?)
        };
        written().map_err(|e| self.bad(file, e.to_string()))
    }
}

fn check(stat: &FileStat, forbidden: u32) -> Result<(), String> {
    let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
    let why = if kind != SFlag::S_IFREG {
        "it is not a regular file"
    } else if stat.st_uid != geteuid().as_raw() {
        "it belongs to somebody else"
    } else if stat.st_mode & forbidden != 0 {
        "others can read or write it; chmod 600 puts that right"
    } else if stat.st_nlink != 1 {
        "it has a second name"
    } else {
        return Ok(());
    };
    Err(why.into())
}

/// Whether boxes that trust the certificate trust what the key signs.
pub(super) fn check_pair(issuer: &Issuer<'_, KeyPair>, pem: &str) -> Result<(), String> {
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let root = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|e| told(&e))?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).map_err(|e| told(&e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| told(&e))?;
    let key = KeyPair::generate().map_err(|e| told(&e))?;
    let params = CertificateParams::new(vec!["a.invalid".to_owned()]).map_err(|e| told(&e))?;
    let leaf = params.signed_by(&key, issuer).map_err(|e| told(&e))?;
    let name = ServerName::try_from("a.invalid").map_err(|e| told(&e))?;
    let checked = verifier.verify_server_cert(leaf.der(), &[], &name, &[], UnixTime::now());
    checked.map(drop).map_err(|e| format!("key and certificate do not belong together: {e}"))
}
