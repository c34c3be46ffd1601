//! Extra certificate authorities of the host, for the boxes to trust.
//!
//! A company's proxy is trusted on the host because somebody added its certificate; without it
//! nothing over HTTPS works in a box either. Only certificates are taken: a file may hold more,
//! and a private key must never get into an image.

use crate::project::hex;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file name ending in `.crt` and one certificate in PEM form.
pub type Certificate = (String, Vec<u8>);

/// Where distributions keep what was added locally.
const USUAL: [&str; 3] = [
    "/usr/local/share/ca-certificates",
    "/etc/pki/ca-trust/source/anchors",
    "/etc/ca-certificates/trust-source/anchors",
];
const LARGEST_FILE: u64 = 256 * 1024;
const MOST: usize = 64;
const DEEPEST: usize = 4;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The certificates in the given files and folders, or those the host has added locally.
pub fn host_certificates(setting: Option<&[PathBuf]>) -> Vec<Certificate> {
    let usual: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).collect();
    let mut found = Vec::new();
    for path in setting.unwrap_or(&usual) {
        collect(path, DEEPEST, &mut found);
    }
    found.sort();
    found.dedup_by(|a, b| a.1 == b.1);
    found.truncate(MOST);
    found
}

/// A short name for a set of certificates.
pub(crate) fn hash(certificates: &[Certificate]) -> String {
    let mut sorted: Vec<&Certificate> = certificates.iter().collect();
    sorted.sort();
    let mut digest = Sha256::new();
    for (name, pem) in sorted {
        for part in [name.as_bytes(), pem] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    hex(&digest.finalize())[..16].to_owned()
}

fn collect(path: &Path, depth: usize, found: &mut Vec<Certificate>) {
    let Ok(data) = path.metadata() else { return };
    if data.is_dir() && depth > 0 {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        for entry in entries.flatten() {
            collect(&entry.path(), depth - 1, found);
        }
    } else if data.is_file() && data.len() <= LARGEST_FILE {
        let mut text = String::new();
        let file = std::fs::File::open(path);
        // Not text means not PEM.
        if file.and_then(|file| file.take(LARGEST_FILE).read_to_string(&mut text)).is_ok() {
            found.extend(blocks(&text).map(|pem| named(path, pem)));
        }
    }
}

/// Every certificate in a PEM file, without whatever else is in it.
fn blocks(text: &str) -> impl Iterator<Item = String> {
    text.split(BEGIN).skip(1).filter_map(|rest| {
        let (body, _) = rest.split_once(END)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "+/=\r\n \t".contains(c);
        body.chars().all(plain).then(|| format!("{BEGIN}{body}{END}\n"))
    })
}

/// The content's hash keeps two files of one name apart.
fn named(path: &Path, pem: String) -> Certificate {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let safe: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let digest = hex(&Sha256::digest(pem.as_bytes()));
    (format!("{safe}-{}.crt", &digest[..8]), pem.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(body: &str) -> String {
        format!("{BEGIN}\n{body}\n{END}\n")
    }

    #[test]
    fn only_certificates_are_taken() {
        let temp = tempfile::tempdir().unwrap();
        let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        std::fs::create_dir(temp.path().join("deeper")).unwrap();
        std::fs::write(temp.path().join("a b.pem"), format!("{key}{}{}", pem("QQ=="), pem("Qg==")))
            .unwrap();
        std::fs::write(temp.path().join("deeper/same.crt"), pem("QQ==")).unwrap();
        std::fs::write(temp.path().join("der.crt"), [0x30, 0x82, 0xff]).unwrap();
        std::fs::write(temp.path().join("cut.crt"), format!("{BEGIN}\nQQ==")).unwrap();
        let folder = [temp.path().to_owned()];
        let found = host_certificates(Some(&folder));
        assert_eq!(found.len(), 3);
        for (name, content) in &found {
            let text = std::str::from_utf8(content).unwrap();
            assert!(Path::new(name).extension().is_some_and(|e| e == "crt"), "{name}");
            assert!(!name.contains(' '), "{name}");
            assert_eq!(text.matches(BEGIN).count(), 1);
            assert!(!text.contains("PRIVATE"));
        }
        assert!(host_certificates(Some(&[])).is_empty());
    }

    #[test]
    fn the_hash_is_of_the_set() {
        let a = ("a.crt".to_owned(), b"1".to_vec());
        let b = ("b.crt".to_owned(), b"2".to_vec());
        assert_eq!(hash(&[a.clone(), b.clone()]), hash(&[b.clone(), a.clone()]));
        assert_ne!(hash(std::slice::from_ref(&a)), hash(&[a, b]));
        assert_eq!(hash(&[]).len(), 16);
    }
}
