//! The keys of a box's ssh server, made and kept by the host.
//!
//! Two pairs per box, in a folder only the person can enter: the one to come in with, and the
//! server's own. The server's is brought to the box at every start and lies in memory there, so it
//! is in no image and no checkpoint; and because the host made it, a client knows whom to expect
//! (`known_hosts`, under [`alias`]) before it connects for the first time.

use crate::home;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use protocol::BoxId;
use protocol::ctl::SshKeys;
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const KIND: &[u8] = b"ssh-ed25519";

/// The name the box's server has in its `known_hosts` (`HostKeyAlias`): its port changes.
pub fn alias(id: &BoxId) -> String {
    format!("agentbox-{id}")
}

/// The private key to come in with.
pub fn client_key(home: &Path, id: &BoxId) -> PathBuf {
    folder(home, id).join("id_ed25519")
}

pub fn known_hosts(home: &Path, id: &BoxId) -> PathBuf {
    folder(home, id).join("known_hosts")
}

fn folder(home: &Path, id: &BoxId) -> PathBuf {
    home::box_dir(home, id).join("ssh")
}

/// The box's keys; made when they are not there.
pub fn ensure(home: &Path, id: &BoxId) -> io::Result<SshKeys> {
    let dir = folder(home, id);
    home::private_dir(&home::box_dir(home, id))?;
    home::private_dir(&dir)?;
    let comment = alias(id);
    let (client, host) = (dir.join("id_ed25519"), dir.join("host_ed25519"));
    let authorized_key = pair(&client, &comment)?;
    let server_key = pair(&host, &comment)?;
    let known = format!("{comment} {server_key}\n");
    if std::fs::read_to_string(known_hosts(home, id)).ok().as_deref() != Some(&known) {
        write(&known_hosts(home, id), &known)?;
    }
    Ok(SshKeys { authorized_key, host_key: std::fs::read_to_string(host)? })
}

/// The public key of a pair that is there afterwards. It is written last: with it, the pair is whole.
fn pair(private: &Path, comment: &str) -> io::Result<String> {
    let public = private.with_extension("pub");
    if let Ok(line) = std::fs::read_to_string(&public) {
        return Ok(line.trim_end().to_owned());
    }
    let mut random = [0; 36];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(format!("no randomness: {e}")))?;
    let (check, seed) = random.split_at(4);
    let made =
        Ed25519KeyPair::from_seed_unchecked(seed).map_err(|e| io::Error::other(e.to_string()))?;
    let key = made.public_key().as_ref();
    write(private, &private_text(check, seed, key, comment))?;
    let line = format!("ssh-ed25519 {} {comment}", BASE64.encode(public_blob(key)));
    write(&public, &format!("{line}\n"))?;
    Ok(line)
}

/// For its owner alone from the first moment, and whole or not there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&fresh, path)
}

/// A string as ssh writes one: its length, then itself.
fn push(blob: &mut Vec<u8>, part: &[u8]) {
    let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
    blob.extend(length.to_be_bytes());
    blob.extend(part);
}

fn public_blob(key: &[u8]) -> Vec<u8> {
    let mut blob = Vec::new();
    push(&mut blob, KIND);
    push(&mut blob, key);
    blob
}

/// The file OpenSSH keeps an unencrypted key in: `PROTOCOL.key` of its sources.
fn private_text(check: &[u8], seed: &[u8], key: &[u8], comment: &str) -> String {
    let mut inner = [check, check].concat();
    push(&mut inner, KIND);
    push(&mut inner, key);
    push(&mut inner, &[seed, key].concat());
    push(&mut inner, comment.as_bytes());
    let padding = (8 - inner.len() % 8) % 8;
    inner.extend((1u8..).take(padding));

    let mut blob = b"openssh-key-v1\0".to_vec();
    push(&mut blob, b"none");
    push(&mut blob, b"none");
    push(&mut blob, b"");
    blob.extend(1u32.to_be_bytes());
    push(&mut blob, &public_blob(key));
    push(&mut blob, &inner);
    let text = BASE64.encode(blob);
    let lines = text.as_bytes().chunks(70).map(|line| String::from_utf8_lossy(line).into_owned());
    let lines: Vec<String> = lines.collect();
    let (begin, end) = ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----");
    format!("{begin}\n{}\n{end}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn openssh_reads_the_keys_and_they_stay_the_same() {
        let home = tempfile::tempdir().unwrap();
        let id: BoxId = "b00000001".parse().unwrap();
        let keys = ensure(home.path(), &id).unwrap();
        assert!(ensure(home.path(), &id).unwrap() == keys);
        let other = ensure(home.path(), &"b00000002".parse().unwrap()).unwrap();
        assert_ne!(other.authorized_key, keys.authorized_key);
        assert_ne!(other.host_key, keys.host_key);
        let host = home.path().join("boxes/b00000001/ssh/host_ed25519");
        for private in [client_key(home.path(), &id), host] {
            let mode = private.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            let output =
                Command::new("ssh-keygen").arg("-y").arg("-f").arg(&private).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let public = std::fs::read_to_string(private.with_extension("pub")).unwrap();
            assert_eq!(said, public.trim(), "{output:?}");
        }
        let known = std::fs::read_to_string(known_hosts(home.path(), &id)).unwrap();
        assert!(known.starts_with("agentbox-b00000001 ssh-ed25519 "), "{known}");
    }
}
