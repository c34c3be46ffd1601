//! Images of this computer that a person pastes: they go into the box, and their path there is pasted.
//!
//! A paste is the person's own act, but its text may not be: a box can have put it on the clipboard. So
//! only what begins as an image does goes, whatever a file is called.

use super::clipboard;
use crate::copying::{shown, stream};
use crate::error::CommandError;
use host::client::Client;
use protocol::control::Target;
use protocol::ctl::paths;
use protocol::text::size;
use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The box may take this long; nobody can type meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
const HEAD: usize = 12;

/// Something to copy, and what its name ends with.
pub struct Image {
    content: Box<dyn Read + Send>,
    ending: &'static str,
    /// For the person.
    pub from: String,
}

/// The image a paste names; none when it names none. What is too large is an error.
pub fn named(paste: &[u8], limit: impl FnOnce() -> u64) -> Result<Option<Image>, String> {
    let Ok(text) = std::str::from_utf8(paste) else { return Ok(None) };
    let found = candidates(text.trim()).into_iter().find_map(|path| Some((open(&path)?, path)));
    let Some((mut file, path)) = found else { return Ok(None) };
    let bytes = file.metadata().map_or(0, |data| data.len());
    let mut head = Vec::new();
    let read = file.by_ref().take(HEAD as u64).read_to_end(&mut head);
    let Some(ending) = read.ok().and_then(|_| kind(&head)) else { return Ok(None) };
    let limit = limit();
    if bytes > limit {
        return Err(too_large(&shown(&path), bytes, limit));
    }
    // As it is now: a file that grows meanwhile is not followed.
    let rest = file.take(bytes.saturating_sub(head.len() as u64));
    let from = path.display().to_string();
    Ok(Some(Image { content: Box::new(Cursor::new(head).chain(rest)), ending, from }))
}

/// The image on this computer's clipboard.
pub fn of_clipboard(limit: u64) -> Result<Option<Image>, String> {
    let Some(bytes) = clipboard::png(limit) else { return Ok(None) };
    if bytes.len() as u64 > limit {
        return Err(too_large("the image", bytes.len() as u64, limit));
    }
    let ending = kind(&bytes);
    let from = "The image on the clipboard".to_owned();
    Ok(ending.map(|ending| Image { content: Box::new(Cursor::new(bytes)), ending, from }))
}

fn too_large(what: &str, bytes: u64, limit: u64) -> String {
    format!("{what} is {}, more than {} (box.cpMaxBytes)", size(bytes), size(limit))
}

/// What the text may mean: a path as it is, as a shell or a file manager writes it, or an address.
fn candidates(text: &str) -> Vec<PathBuf> {
    let mut all = vec![text.to_owned()];
    if let Some(mut words) = shlex::split(text)
        && words.len() == 1
    {
        all.extend(words.pop());
    }
    let of = |text: String| {
        if let Some(address) = text.strip_prefix("file://") {
            let path = address.strip_prefix("localhost").unwrap_or(address);
            return unescaped(path).map(PathBuf::from);
        }
        match text.strip_prefix("~/") {
            Some(below) => std::env::home_dir().map(|home| home.join(below)),
            None => Some(PathBuf::from(text)),
        }
    };
    let fits = |path: &PathBuf| path.is_absolute() && is_called_image(path);
    all.into_iter().filter_map(of).filter(fits).collect()
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            out.push(*first);
            rest = after;
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.contains('\0'))
}

fn is_called_image(path: &Path) -> bool {
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    ["png", "jpg", "jpeg", "gif", "webp"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// A regular file; opening one never waits, as it would for a pipe.
fn open(path: &Path) -> Option<File> {
    let flags = nix::fcntl::OFlag::O_NONBLOCK | nix::fcntl::OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// By how it begins.
fn kind(head: &[u8]) -> Option<&'static str> {
    let webp = head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP");
    match head {
        _ if head.starts_with(b"\x89PNG\r\n\x1a\n") => Some("png"),
        _ if head.starts_with(b"\xff\xd8\xff") => Some("jpg"),
        _ if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") => Some("gif"),
        _ if webp => Some("webp"),
        _ => None,
    }
}

/// Copies an image into the box; its path there. A box that does not take it is not waited for.
pub fn copy(client: &Client, target: &Target, image: Image) -> Result<String, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let name = format!("{now}-{}.{}", std::process::id(), image.ending);
    let path = format!("{}/{name}", paths::PASTES);
    let (tell, told) = sync_channel(1);
    let (client, target) = (client.clone(), target.clone());
    std::thread::spawn(move || {
        let mut content = image.content;
        let words = ["keep-paste", &name];
        let done = stream::feed(&client, &target, &words, stream::Moving::unseen(), |input| {
            io::copy(&mut content, input).map(drop).map_err(CommandError::from)
        });
        let _ = tell.send(done.map(drop).map_err(|e| e.error));
    });
    match told.recv_timeout(PATIENCE) {
        Ok(done) => done.map(|()| path),
        Err(RecvTimeoutError::Timeout) => Err("the box did not take it in time".to_owned()),
        Err(RecvTimeoutError::Disconnected) => Err("the copy broke off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest of it";

    #[test]
    fn only_the_path_of_an_image_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(dir.path().join(name), bytes).unwrap();
            dir.path().join(name).display().to_string()
        };
        let shot = write("My Shot.PNG", PNG);
        let escaped = shot.replace(' ', "\\ ");
        let address = format!("file://{}", shot.replace(' ', "%20"));
        for text in [shot.clone(), format!("'{shot}'\n"), escaped, address] {
            let mut image = named(text.as_bytes(), || 1000).unwrap().expect(&text);
            let mut bytes = Vec::new();
            image.content.read_to_end(&mut bytes).unwrap();
            assert_eq!((bytes.as_slice(), image.ending), (PNG, "png"), "{text}");
        }
        let key = write("key.png", b"-----BEGIN OPENSSH PRIVATE KEY-----");
        let text = write("notes.txt", PNG);
        std::fs::create_dir(dir.path().join("dir.png")).unwrap();
        let folder = dir.path().join("dir.png").display().to_string();
        let there = format!("look at {shot}");
        for other in [key, text, folder, there, "shot.png".into(), String::new(), "/no.png".into()]
        {
            assert!(named(other.as_bytes(), || 1000).unwrap().is_none(), "{other}");
        }
        let error = named(shot.as_bytes(), || 5).err().unwrap();
        assert!(error.contains("box.cpMaxBytes"), "{error}");
    }

    #[test]
    fn images_by_their_first_bytes() {
        assert_eq!(kind(b"GIF89a.."), Some("gif"));
        assert_eq!(kind(b"RIFF\0\0\0\0WEBP"), Some("webp"));
        assert_eq!(kind(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(kind(b"\xff\xd8\xff\xe0"), Some("jpg"));
        assert_eq!(kind(b""), None);
    }
}
